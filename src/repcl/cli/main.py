"""The `repcl` command: its sub-commands, and errors without traceback."""

import os
from typing import Annotated

import typer

import repcl
from repcl.cli.analyze import analyze
from repcl.cli.bench import bench
from repcl.cli.classes import classes_app
from repcl.cli.data import data_app
from repcl.cli.demo import demo
from repcl.cli.discover import discover_command
from repcl.cli.drift import drift_command
from repcl.cli.evaluate import evaluate
from repcl.cli.examples import end_with_examples
from repcl.cli.export import export_command
from repcl.cli.forget import forget_command
from repcl.cli.guarded import run_guarded
from repcl.cli.history import accept, discard, history, rollback
from repcl.cli.improve import improve_command
from repcl.cli.launch import is_launched, launched
from repcl.cli.learn import learn
from repcl.cli.lists import list_things
from repcl.cli.predict import predict
from repcl.cli.report import report
from repcl.cli.reproduce import reproduce
from repcl.cli.serve import serve_command
from repcl.cli.suggest import suggest_command
from repcl.cli.tune import tune
from repcl.errors import InvalidSetting

MAKE_RUNS = ("bench", "reproduce")

app = typer.Typer(
    help="A text classifier that keeps learning new classes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Add --debug to any command to see the traceback of an error.",
)
START, MODEL, RESEARCH = "Start here", "A model that keeps learning", "Compare methods"
app.command(rich_help_panel=START)(demo)
app.command("list", rich_help_panel=START)(list_things)
app.command(rich_help_panel=MODEL)(learn)
app.command(rich_help_panel=MODEL)(predict)
app.command(rich_help_panel=MODEL)(evaluate)
app.add_typer(classes_app, name="classes", rich_help_panel=MODEL)
app.command("improve", rich_help_panel=MODEL)(improve_command)
app.command("forget", rich_help_panel=MODEL)(forget_command)
app.command(rich_help_panel=MODEL)(history)
app.command(rich_help_panel=MODEL)(rollback)
app.command(rich_help_panel=MODEL)(accept)
app.command(rich_help_panel=MODEL)(discard)
app.command("discover", rich_help_panel=MODEL)(discover_command)
app.command("suggest", rich_help_panel=MODEL)(suggest_command)
app.command("export", rich_help_panel=MODEL)(export_command)
app.command("drift", rich_help_panel=MODEL)(drift_command)
app.command("serve", rich_help_panel=MODEL)(serve_command)
app.command(rich_help_panel=RESEARCH)(bench)
app.command(rich_help_panel=RESEARCH)(report)
app.command(rich_help_panel=RESEARCH)(reproduce)
app.command(rich_help_panel=RESEARCH)(analyze)
app.command(rich_help_panel=RESEARCH)(tune)
app.add_typer(data_app, name="data", rich_help_panel=RESEARCH)
end_with_examples(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(repcl.__version__)
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself; a launcher's processes serve the commands that make runs."""
    if is_launched() and context.invoked_subcommand not in MAKE_RUNS:
        raise InvalidSetting(
            f"accelerate launch is for {' and '.join(MAKE_RUNS)}; "
            f"start `repcl {context.invoked_subcommand}` without it."
        )
    context.obj = context.with_resource(launched())


def main() -> None:
    """Run the command line; whatever goes wrong is one sentence and an exit code."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them takes time
    run_guarded(app)
