"""The `repcl` command: its sub-commands, and errors without traceback."""

import os
from typing import Annotated

import typer

import repcl
from repcl.cli.analyze import analyze
from repcl.cli.bench import bench
from repcl.cli.classes import classes_app
from repcl.cli.data import data_app
from repcl.cli.discover import discover_command
from repcl.cli.drift import drift_command
from repcl.cli.evaluate import evaluate
from repcl.cli.export import export_command
from repcl.cli.forget import forget_command
from repcl.cli.guarded import run_guarded
from repcl.cli.history import accept, discard, history, rollback
from repcl.cli.launch import is_launched, launched
from repcl.cli.learn import learn
from repcl.cli.lists import list_things
from repcl.cli.predict import predict
from repcl.cli.report import report
from repcl.cli.reproduce import reproduce
from repcl.cli.suggest import suggest_command
from repcl.cli.tune import tune
from repcl.errors import InvalidSetting

MAKE_RUNS = ("bench", "reproduce")

app = typer.Typer(
    help="A text classifier that keeps learning new classes and does not forget the old ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="--debug with any command shows the trace of an error.",
)
app.command()(bench)
app.command()(report)
app.command()(reproduce)
app.command()(analyze)
app.command()(tune)
app.command()(learn)
app.command()(predict)
app.command()(evaluate)
app.add_typer(classes_app, name="classes")
app.command()(history)
app.command()(rollback)
app.command()(accept)
app.command()(discard)
app.command("forget")(forget_command)
app.command("discover")(discover_command)
app.command("suggest")(suggest_command)
app.command("drift")(drift_command)
app.command("export")(export_command)
app.command("list")(list_things)
app.add_typer(data_app, name="data")


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
    run_guarded(app)
