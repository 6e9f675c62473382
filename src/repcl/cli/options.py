"""Options that several commands take, said once."""

from pathlib import Path
from typing import Annotated

import typer

from repcl.errors import InvalidSetting

# headings under which `--help` shows options
DATA = "Data"
MACHINE = "How it is run"
NEW_MODEL = "For a new model"

TasksOption = Annotated[int | None, typer.Option(help="Number of tasks.", rich_help_panel=DATA)]
ClassesPerTaskOption = Annotated[int | None, typer.Option(help="Classes in each task.", rich_help_panel=DATA)]
ClassOrderOption = Annotated[
    Path | None,
    typer.Option(
        help="File with the class order: one name per line, or a JSON list of tasks.", rich_help_panel=DATA
    ),
]
MaxTrainOption = Annotated[
    int | None, typer.Option(help="Use at most this many training texts per class.", rich_help_panel=DATA)
]
TestFileOption = Annotated[
    Path | None,
    typer.Option(
        help="File with test texts for your own data file; default: a fifth of each class.",
        rich_help_panel=DATA,
    ),
]
TextColumnOption = Annotated[
    str, typer.Option(help="Column with the texts in your own data file.", rich_help_panel=DATA)
]
LabelColumnOption = Annotated[
    str, typer.Option(help="Column with the labels in your own data file.", rich_help_panel=DATA)
]
ProtocolOption = Annotated[
    str,
    typer.Option(
        help="code or paper: which to follow where a paper and its code differ.", rich_help_panel=DATA
    ),
]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder with one subfolder per benchmark; default: REPCL_DATA, else your cache folder.",
        rich_help_panel=DATA,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(help="cpu, cuda, cuda:1 or mps; default: the best one available.", rich_help_panel=MACHINE),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="How many runs to make at a time; default: one per core.", rich_help_panel=MACHINE
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Ray cluster: HOST:PORT, ray://HOST:PORT, auto or local.",
        rich_help_panel=MACHINE,
    ),
]
EncoderOption = Annotated[
    str | None, typer.Option(help="A name from `repcl list encoders`, a folder or a Hugging Face id.")
]
SaveRepresentationsOption = Annotated[
    bool,
    typer.Option(
        "--save-representations", help="Save representations for `repcl analyze`.", rich_help_panel=MACHINE
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Start over instead of resuming.", rich_help_panel=MACHINE)
]
OutOption = Annotated[Path, typer.Option(help="Folder for results; a stopped run resumes from there.")]
PresetOption = Annotated[str, typer.Option(help="Settings to start from: cpu, paper, smoke or a TOML file.")]
RoundsOption = Annotated[list[int] | None, typer.Option(min=0, help="Run only this round. Repeatable.")]
ReportToOption = Annotated[
    list[str] | None,
    typer.Option(help="Also report to a tracker: tensorboard or wandb. Repeatable.", rich_help_panel=MACHINE),
]

# Of the commands on a model folder.
Model = Annotated[Path, typer.Argument(help="The model folder.")]
Wait = Annotated[
    float,
    typer.Option(
        min=0, help="Seconds to wait while another process changes the model.", rich_help_panel=MACHINE
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
TextColumn = Annotated[str, typer.Option(help="Column with the texts.", rich_help_panel=DATA)]
LabelColumn = Annotated[str, typer.Option(help="Column with the labels.", rich_help_panel=DATA)]
Revision = Annotated[int | None, typer.Option(help="Revision to ask; default: the one in use.")]
Threshold = Annotated[
    str,
    typer.Option(
        help="Confidence below which a text is unknown (multilabel: a label is dropped): auto, or 0 to 1."
    ),
]


def require_use(threshold: str, **may_be_unknown: bool) -> None:
    """Refuse a threshold that would decide nothing: every text gets its most likely class.

    Args:
        threshold: what was typed.
        may_be_unknown: options by which texts may be called unknown, and whether they were typed.
    """
    if threshold != "auto" and not any(may_be_unknown.values()):
        options = " or ".join(f"--{name.replace('_', '-')}" for name in may_be_unknown)
        raise InvalidSetting(
            f"Expected {options} beside --threshold {threshold}, found the threshold alone: otherwise "
            "every text gets its most likely class."
        )


Device = Annotated[
    str | None,
    typer.Option(help="cpu, cuda or mps; default: the best one available.", rich_help_panel=MACHINE),
]
