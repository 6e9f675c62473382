"""`repcl export`: let a model answer without torch, in a fraction of the time."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from repcl.cli.console import print_json, sentence_console
from repcl.cli.options import Json, Model, Wait

if TYPE_CHECKING:
    from repcl.classifier.store.records import Export, Revision

MEGABYTE = 1 << 20


def export_command(
    model: Model,
    int8: Annotated[
        bool,
        typer.Option(
            "--int8", help="Store the encoder's weights in 8 bits: faster. Close calls are rechecked in fp32."
        ),
    ] = False,
    wait: Wait = 600.0,
    as_json: Json = False,
) -> None:
    """Add an ONNX graph to MODEL, so that `predict` answers at once and without torch."""
    from repcl.classifier.store.folder import ModelFolder

    folder = ModelFolder(model)
    folder.current()
    with folder.lock("exporting", wait=wait, tell=sentence_console(stderr=True).print):
        from repcl.classifier.export import export_model  # with torch

        revision, export = export_model(folder, precision="int8" if int8 else "fp32")
    if as_json:
        print_json(_as_json(str(model), revision, export))
        return
    say = sentence_console().print
    say(f"Exported revision {revision.number} in {export.precision}, {_size(export) / MEGABYTE:.0f} MB.")
    if export.is_shared:
        say("Its encoder is frozen, so this export answers for later revisions too.")
    else:
        say(f"It answers for revision {revision.number} only: export again after `repcl learn`.")
    if export.precision == "int8":
        say("It answers texts whose two best classes are close a second time, in fp32.")
        say(
            "Confidence and threshold are calibrated for it."
            if export.calibration
            else "Confidence and threshold stay as they are: there are too few texts to calibrate them."
        )
    say(f"Try it: {shlex.join(['repcl', 'predict', str(model), 'a text'])}")


def _as_json(model: str, revision: "Revision", export: "Export") -> dict[str, object]:
    return {
        "model": model,
        "revision": revision.number,
        "precision": export.precision,
        "bytes": _size(export),
        "is_shared": export.is_shared,
        "is_calibrated": export.calibration is not None,
    }


def _size(export: "Export") -> int:
    """The bytes of all its files."""
    return sum(blob.bytes for blob in export.files)
