"""From a learned classifier to a graph in ONNX form, which is compared with torch before it is kept."""

import io
import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from repcl import __version__
from repcl.classifier.calibration import ENOUGH, Nearness, calibrate
from repcl.classifier.exported import Exported
from repcl.classifier.onnx_graph import in_int8, split_tables
from repcl.classifier.state import MOST_ASKED, ClassifierState
from repcl.classifier.store.files import Blobs
from repcl.classifier.store.folder import ModelFolder
from repcl.classifier.store.graph import check_graph
from repcl.classifier.store.records import (
    Blob,
    Calibration,
    Contents,
    Export,
    Precision,
    Revision,
    SecondGraph,
    digest_of,
    now,
    one_line,
    origin_of,
)
from repcl.classifier.store.snapshot import unpack
from repcl.classifier.store.tensors import TensorFile
from repcl.data import Batch, Example, InputKind, Span
from repcl.data.batches import collate
from repcl.errors import InvalidSetting, MissingPackage
from repcl.methods import Method
from repcl.methods.frozen.left_out import nearest_others_of, row_keys, times_of
from repcl.methods.frozen.method import FrozenMethod

OPSET = 17
TOLERATED = 1e-3
"""By how much a probability of an fp32 export may differ from torch's."""
PROBES = 32
DOUBT_TEXTS = 300
"""At most so many texts show how much int8 changes scores."""
DOUBT_SHARE = 0.95
"""For this share of them, the lead of the best class changes by less than the doubt."""

SENTENCES = (
    "a",
    "Where is my parcel?",
    "I would like to change the address of my order, and to know when it will arrive.",
)


def export_model(folder: ModelFolder, *, precision: Precision = "fp32") -> tuple[Revision, Export]:
    """Make an export of the revision in use and put it into its folder, whose lock is held.

    Args:
        folder: of the model.
        precision: `fp32`, or `int8` for the encoder's products.
    """
    _require_packages()
    revision, state = folder.open(partial(unpack, device="cpu"))
    if state.is_multilabel:
        raise InvalidSetting(
            "Expected a model that gives each text one label, found one with several (multilabel), which "
            "cannot be exported yet: it answers with torch only."
        )
    traced = _traced(state.method)
    write = partial(_write, traced, revision, state, precision)
    return revision, folder.write_export(write)


def _write(
    traced: bytes, revision: Revision, state: ClassifierState, precision: Precision, blobs: Blobs
) -> Export:
    """Put graphs and their tables into files, compare their answers with torch's, and describe them."""
    contents, encoder = revision.contents, state.method.encoder
    solution = state.method.exported_solution()
    solved = _solved_again(solution, contents, blobs)
    graph, tables = _put(traced, blobs)
    exact = Export(
        origin=origin_of(contents, is_shared=bool(solution)),
        is_shared=bool(solution),
        precision="fp32",
        graph=graph,
        tables=tables,
        readout=type(encoder.readout).__name__,
        max_length=encoder.max_length,
        solution=tuple(solution),
        solved=solved,
        solved_for=digest_of(contents) if solved else None,
        when=now(),
        version=__version__,
    )
    _compare(state, Exported(revision.number, contents, exact, blobs))
    return exact if precision == "fp32" else _in_int8(traced, exact, revision, state, blobs)


def _solved_again(solution: Mapping[str, Tensor], contents: Contents, blobs: Blobs) -> dict[str, Blob]:
    """Put a solution into files; those that the revision names are there again, the others are given back.

    A solution is deleted while another revision is in use. Solved on another machine, it may have other last
    bits, and then a file of another name.
    """
    files = {name: blobs.put(TensorFile(part), "safetensors") for name, part in solution.items()}
    return {name: blob for name, blob in files.items() if contents.derived.get(name) != blob}


def _in_int8(
    traced: bytes, exact: Export, revision: Revision, state: ClassifierState, blobs: Blobs
) -> Export:
    """The same export with the graph in 8 bits before it, and a calibration of what both answer together."""
    contents = revision.contents
    graph, tables = _put(in_int8(traced), blobs)
    rough = exact.model_copy(update={"precision": "int8", "graph": graph, "tables": tables})
    doubt = _doubt(state, *(Exported(revision.number, contents, one, blobs) for one in (rough, exact)))
    second = SecondGraph(graph=exact.graph, tables=exact.tables, doubt=doubt)
    export = rough.model_copy(update={"second": second})
    calibration = _calibrated(state, Exported(revision.number, contents, export, blobs))
    return export.model_copy(update={"calibration": calibration, "calibrated_for": digest_of(contents)})


def _put(traced: bytes, blobs: Blobs) -> tuple[Blob, dict[str, Blob]]:
    """A graph and its large tables, in files."""
    graph, tables = split_tables(traced)
    check_graph(graph, "The graph")
    files = {name: blobs.put(TensorFile(table), "safetensors") for name, table in tables.items()}
    return blobs.put(graph, "onnx"), files


def _require_packages() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise MissingPackage("An export needs onnx and onnxruntime: pip install 'repcl[onnx]'.") from error


# ---- the graph ------------------------------------------------------------------------------------------


class _Answers(nn.Module):
    """What is written down: from padded rows and what was learned to scores."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(
        self, ids: Tensor, mask: Tensor, spans: Tensor, class_sizes: Tensor, *solution: Tensor
    ) -> tuple[Tensor, ...]:
        nothing = ids.new_zeros(ids.shape[0])
        return self.method.exported_answers(Batch(ids, mask, spans, nothing, nothing), class_sizes, solution)


def _traced(method: Method) -> bytes:
    """The operations that answering takes, written down while two texts are answered."""
    kind = method.encoder.readout.kind
    rows = method.encoder.tokenize([_probe(text, kind) for text in SENTENCES[1:]])
    pad_id = method.encoder.pad_id
    batch = collate(rows, [0] * len(rows), range(len(rows)), pad_id=pad_id, device=method.encoder.device)
    solution = method.exported_solution()
    sizes = torch.tensor([method.class_sizes().get(name, 1) for name in method.classes])
    names = ["ids", "mask", "spans", "class_sizes", *solution]
    axes = {"ids": 2, "mask": 2, "spans": 1, "class_sizes": 1} | {
        name: part.ndim for name, part in solution.items()
    }
    file = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # whether the trace holds for other texts is tried out afterwards
            torch.onnx.export(
                _Answers(method).eval(),
                (batch.ids, batch.mask, batch.spans, sizes, *solution.values()),
                file,  # type: ignore[arg-type]
                dynamo=False,  # the other way needs one more package, and more time
                input_names=names,
                output_names=["scores", "rows"][: 1 + bool(solution)],
                dynamic_axes={name: list(range(count)) for name, count in axes.items()},
                opset_version=OPSET,
            )
    except Exception as error:  # the exporter raises errors of every kind
        raise InvalidSetting(
            f"Method {type(method).__name__} on encoder {method.encoder.name!r} cannot be exported "
            f"({one_line(error)}): it answers with torch only."
        ) from error
    return file.getvalue()


def _probe(text: str, kind: InputKind) -> Example:
    """A text of an input kind, its first and its last word marked."""
    first, last = Span(0, len(text.split()[0])), Span(len(text) - len(text.split()[-1]), len(text))
    if kind == "relation":
        return Example(text, "", head=first, tail=last)
    return Example(text, "", trigger=first if kind == "event" else None)


# ---- whether it answers as torch does -------------------------------------------------------------------


def _compare(state: ClassifierState, exported: Exported) -> None:
    """Refuse an export that answers otherwise than torch: what was traced does not hold for all texts."""
    texts = [*(_probe(text, state.kind) for text in SENTENCES), *state.kept_texts()[:PROBES]]
    expected = state.probabilities(texts)
    together = exported.evidence(texts, with_nearness=False).probabilities
    alone = np.concatenate(
        [exported.evidence([text], with_nearness=False).probabilities for text in texts[:3]]
    )
    worst = max(np.abs(together - expected).max(), np.abs(alone - expected[:3]).max())
    if not worst <= TOLERATED:
        raise InvalidSetting(
            f"Method {state.name!r} on encoder {state.method.encoder.name!r} cannot be exported: its "
            f"probabilities would differ by up to {worst:.3f}; it answers with torch only."
        )


def _doubt(state: ClassifierState, rough: Exported, exact: Exported) -> float:
    """By how much the best class of the rough graph must lead to be trusted.

    For most texts, the lead of the best class over the second changes by no more than this from one graph to
    the other. So the exact graph hardly ever reverses a larger lead.
    """
    kept = state.kept_texts()
    texts = [*(_probe(text, state.kind) for text in SENTENCES), *kept[:: 1 + len(kept) // DOUBT_TEXTS]]
    ours, theirs = (one.scores(texts)[0] for one in (rough, exact))
    if ours.shape[1] < 2:
        return 0.0
    best_two = np.argsort(ours, axis=1)[:, -2:]
    changes = np.diff(np.take_along_axis(ours - theirs, best_two, axis=1), axis=1)
    return float(np.quantile(np.abs(changes), DOUBT_SHARE))


def _calibrated(state: ClassifierState, exported: Exported) -> Calibration | None:
    """Temperature and thresholds for the scores of an export; None where there are too few texts for that."""
    method, names = state.method, state.method.classes
    asked = state.held_out[:MOST_ASKED]
    column = {name: index for index, name in enumerate(names)}
    if isinstance(method, FrozenMethod) and method.leaves_out:
        return _calibrated_by_left_out(method, exported, asked)
    if len(asked) < ENOUGH:
        asked = [*asked, *method.memory]
    if not asked:
        return None
    return calibrate(exported.scores(asked)[0], [column[one.label] for one in asked], names)


def _calibrated_by_left_out(
    method: FrozenMethod, exported: Exported, asked: Sequence[Example]
) -> Calibration | None:
    """The same for a learner that can leave out each text, which it learned, by arithmetic."""
    found = method.find_kept(asked)
    asked = [one for one, index in zip(asked, found, strict=True) if index is not None]
    if len(asked) < ENOUGH:
        return None
    kept, own = method.ledger.kept, torch.tensor([index for index in found if index is not None])
    scores, rows = map(torch.from_numpy, exported.scores(asked))
    labels, keys = kept.labels[own].long(), row_keys(kept.rows)
    left_out = method.left_out_scores(kept.rows[own], labels, times_of(keys, kept.labels, own))
    nearest, stranger = nearest_others_of(rows, kept, keys, own)
    # Only a row that was learned can be left out. The export's is another, whose scores differ by about this:
    differing = scores - method.kept_scores(own)
    return calibrate(
        (left_out.double() + differing).numpy(),
        labels.tolist(),
        method.classes,
        Nearness(np.arange(len(asked)), nearest.double().numpy(), stranger.double().numpy()),
        method.strangers(),
    )
