"""An export as an answerer: onnxruntime, tokenizers and NumPy, and no torch."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from repcl.classifier.answerer import Answerer
from repcl.classifier.answering import Evidence, Scores, probabilities
from repcl.classifier.calibration import ENOUGH
from repcl.classifier.store.files import Blobs
from repcl.classifier.store.folder import ModelFolder
from repcl.classifier.store.graph import check_graph
from repcl.classifier.store.records import Blob, Contents, DamagedModel, Export, SecondGraph, one_line
from repcl.classifier.store.tensor_header import read_header
from repcl.classifier.store.tokenizer import read_tokenizer
from repcl.data import Example, TokenizedExample
from repcl.data.padding import by_length, padded
from repcl.errors import RepclError
from repcl.methods.frozen.cosines import nearest_cosines
from repcl.model.layered import LAYERED
from repcl.model.machine import memory_of_machine, too_large
from repcl.model.readouts import READOUTS, Readout, note_shortened

if TYPE_CHECKING:
    import onnxruntime

BATCH = 64
TAKEN = 4
"""Times the bytes of its file that a graph may need when it is opened."""
KEPT_ROWS, KEPT_LABELS, COUNTS = "ledger.kept.rows", "ledger.kept.labels", "ledger.sums.0.counts"

READOUT_CLASSES: Mapping[str, type[Readout]] = {
    chosen.__name__: chosen for chosen in (*READOUTS.values(), *LAYERED.values())
}
TYPES: Mapping[str, type[np.generic]] = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
}
"""Kinds of numbers that an export is handed."""

Array = NDArray[Any]


class Unfit(RepclError):
    """An export cannot be used for a revision; the text says why, as a part of a sentence."""


class NeedsOnnxruntime(Unfit):
    """No export can be used here."""


class Exported(Answerer):
    """Answers with an export.

    Args:
        revision: the number of the revision that is answered for.
        contents: its record.
        export: that fits it.
        blobs: the files of the folder.
        threads: as many as there are cores if not given.
    """

    def __init__(
        self, revision: int, contents: Contents, export: Export, blobs: Blobs, *, threads: int | None = None
    ) -> None:
        super().__init__(revision, contents, export.calibration_for(contents) or contents.calibration)
        self.export = export
        self.names = [record.name for record in contents.classes]
        self._contents, self._blobs = contents, blobs
        self._tokenizer, self._pad_id = read_tokenizer(blobs.get(contents.encoder.tokenizer))
        chosen = READOUT_CLASSES.get(export.readout)
        if chosen is None or chosen.kind != contents.kind:
            raise DamagedModel(f"export.json names the readout {export.readout!r}, which no {self.kind} has.")
        self._readout = chosen.__new__(chosen)  # depths are in the graph; tokens do not depend on them
        self._solution, self._threads = self._read_solution(), threads
        self._first = self._open(export)
        self._second: _OpenGraph | None = None

    def scores(self, examples: Sequence[Example]) -> tuple[Scores, Array]:
        """Scores, (texts, classes), and representations on the grid; of a trained method there are none."""
        rows = self.tokenize(examples)
        scores, represented = self._ask(self._first, rows)
        second = self.export.second
        doubtful = np.flatnonzero(leads(scores) < second.doubt) if second else ()
        if second is None or not len(doubtful):
            return scores, represented
        if self._second is None:  # opened when it is needed: most single texts are answered without it
            self._second = self._open_second(second)
        again, represented_again = self._ask(self._second, [rows[number] for number in doubtful])
        if represented_again.shape[1:] != represented.shape[1:]:
            raise DamagedModel("The two graphs of the export give representations of different sizes.")
        scores[doubtful], represented[doubtful] = again, represented_again
        return scores, represented

    def evidence(self, examples: Sequence[Example], *, with_nearness: bool = True) -> Evidence:
        """What is known about texts before it is decided whether they are unknown."""
        scores, rows = self.scores(examples)
        is_needed = with_nearness and self.calibration.familiarity is not None
        if is_needed and rows.shape[1] != self._kept_rows.shape[1]:
            raise DamagedModel("The export gives representations of another size than the revision keeps.")
        nearness = nearest_cosines(rows, self._kept_rows).astype(np.float64) if is_needed else None
        return Evidence(self.names, probabilities(scores, self.calibration.temperature), nearness)

    def tokenize(self, examples: Sequence[Example]) -> list[TokenizedExample]:
        """Token ids and spans of the texts."""
        rows, shortened = self._readout.prepare(examples, self._tokenizer, max_length=self.export.max_length)
        note_shortened(shortened, len(examples), self.export.max_length)
        return rows

    def _open(self, chosen: Export | SecondGraph) -> "_OpenGraph":
        tables = {name: _table(self._blobs, blob) for name, blob in chosen.tables.items()}
        return _OpenGraph(open_graph(self._blobs, chosen.graph, self._threads), self._solution | tables)

    def _open_second(self, second: SecondGraph) -> "_OpenGraph":
        try:
            return self._open(second)
        except DamagedModel as error:
            reason = str(error).removesuffix(".")
            raise DamagedModel(f"{reason}; `repcl export --int8` makes it anew.") from error

    def _ask(self, graph: "_OpenGraph", rows: Sequence[TokenizedExample]) -> tuple[Scores, Array]:
        """Scores and representations of texts in batches of similar lengths."""
        found: list[Array] = [np.empty(0)] * len(rows)
        represented: list[Array] = [np.empty(0)] * len(rows)
        for numbers in by_length([len(row.ids) for row in rows], BATCH):
            outputs = self._run(graph, [rows[number] for number in numbers])
            for at, number in enumerate(numbers):
                found[number] = outputs[0][at]
                represented[number] = outputs[1][at] if len(outputs) > 1 else np.empty(0)
        return np.stack(found).astype(np.float64), np.stack(represented)

    def _run(self, graph: "_OpenGraph", rows: Sequence[TokenizedExample]) -> list[Array]:
        try:
            outputs: list[Array] = graph.session.run(
                None, padded(rows, self._pad_id)._asdict() | graph.handed_in
            )
        except Exception as error:  # onnxruntime has errors of many kinds, for graphs of any kind
            raise DamagedModel(f"The export could not answer ({one_line(error)}).") from error
        if not all(isinstance(one, np.ndarray) and one.dtype.kind in "fiu" for one in outputs[:2]):
            raise DamagedModel("The export gives something else than numbers.")
        if outputs[0].shape != (len(rows), len(self.names)):
            raise DamagedModel("The export gives scores of other classes than the revision has.")
        if not np.isfinite(outputs[0]).all():
            raise DamagedModel("The export gives scores that are not finite.")
        if len(outputs) > 1 and (outputs[1].ndim != 2 or len(outputs[1]) != len(rows)):
            raise DamagedModel("The export gives representations of other texts than it was asked about.")
        return outputs

    def _read_solution(self) -> dict[str, Array]:
        """What was learned, as far as the graph does not hold it."""
        if not self.export.is_shared:
            return {}
        found: dict[str, Array] = {"class_sizes": self._class_sizes()}
        named = {**self._contents.derived, **self.export.solved_from(self._contents)}
        try:
            return found | {name: _array(self._blobs, named[name]) for name in self.export.solution}
        except (KeyError, DamagedModel) as error:
            raise Unfit("its solution is not there, as after the use of another revision") from error

    def _class_sizes(self) -> Array:
        tensors = self._contents.tensors
        if KEPT_LABELS in tensors:
            labels = _array(self._blobs, tensors[KEPT_LABELS])
            is_wrong = labels.dtype != np.int32 or bool(((labels < 0) | (labels >= len(self.names))).any())
            if is_wrong or labels.ndim != 1:
                raise DamagedModel("Kept embeddings do not belong to the classes of the revision.")
            return np.bincount(labels, minlength=len(self.names)).astype(np.int64)
        if COUNTS in tensors:
            return _array(self._blobs, tensors[COUNTS]).astype(np.int64)
        return np.ones(len(self.names), dtype=np.int64)

    @cached_property
    def _kept_rows(self) -> Array:
        """Representations of all texts learned."""
        parts = [_array(self._blobs, blob) for blob in self._contents.pieces.get(KEPT_ROWS, ())]
        if not sum(map(len, (part for part in parts if part.ndim))):
            raise DamagedModel(
                "The revision keeps no embeddings, though its rule for unknown texts asks them."
            )
        width = parts[0].shape[1:]
        if any(part.dtype != np.int16 or part.ndim != 2 or part.shape[1:] != width for part in parts):
            raise DamagedModel("The pieces of the embeddings that the revision keeps do not fit together.")
        return np.concatenate(parts)


@dataclass(frozen=True)
class _OpenGraph:
    """A graph that can be asked, with what is handed to it beside the texts."""

    session: "onnxruntime.InferenceSession"
    handed_in: dict[str, Array]


def leads(scores: Scores) -> Scores:
    """By how much the best class of each text is ahead of the second; without bound if there is but one."""
    if scores.shape[1] < 2:
        return np.full(len(scores), np.inf)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    found: Scores = best - second
    return found


def open_export(
    folder: ModelFolder,
    revision: int | None = None,
    *,
    threads: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Exported | None:
    """The export of a folder if it fits the revision; None otherwise, and a sentence where there is one.

    Args:
        folder: of the model.
        revision: the one in use if not given.
        threads: as many as there are cores if not given.
        tell: hears in a sentence why an export is not used.
    """
    try:
        export = folder.export()
        if export is None:
            return None
        _require_onnxruntime()
        record, opened = folder.open(partial(_opened, export=export, threads=threads), revision)
    except (Unfit, DamagedModel) as error:
        remedy = "" if isinstance(error, NeedsOnnxruntime) else _remedy(folder, revision)
        tell(f"The export is not used, and torch takes longer: {str(error).removesuffix('.')}{remedy}.")
        return None
    opened.revision = record.number
    if _lacks_calibration(export, record.contents):
        tell(
            f"The int8 export is not calibrated for revision {record.number}; `repcl export --int8` does "
            "that for the revision in use."
        )
    return opened


def _remedy(folder: ModelFolder, revision: int | None) -> str:
    """What helps the revision in use, if it can be exported; others are never exported."""
    with suppress(RepclError):
        in_use = folder.in_use()
        if revision in (None, in_use.number) and _can_be_exported(in_use.contents):
            return "; `repcl export` makes it anew"
    return ""


def _can_be_exported(contents: Contents) -> bool:
    """Whether there can be an export: not of two encoders, nor with several labels a text."""
    return contents.method != "duet" and contents.settings.get("multilabel") is not True


def _lacks_calibration(export: Export, contents: Contents) -> bool:
    """Whether an export in int8 could be calibrated for these contents, and is not."""
    if export.precision != "int8" or export.is_calibrated_for(contents):
        return False
    return export.calibration is not None or contents.held_out.count >= ENOUGH


def _opened(contents: Contents, blobs: Blobs, *, export: Export, threads: int | None) -> Exported:
    if not export.fits(contents):
        raise Unfit("it belongs to another revision")
    try:
        return Exported(0, contents, export, blobs, threads=threads)
    except DamagedModel as error:  # no other revision would be better
        raise Unfit(str(error)) from error


def _require_onnxruntime() -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise NeedsOnnxruntime("it needs onnxruntime (pip install 'repcl[onnx]')") from error


# ---- the graph ------------------------------------------------------------------------------------------


def open_graph(blobs: Blobs, graph: Blob, threads: int | None = None) -> "onnxruntime.InferenceSession":
    """A session on a graph that was looked at; what it may take of the memory is bounded."""
    reason = too_large(TAKEN * graph.bytes)
    if reason is not None:
        raise DamagedModel(f"The export needs {reason}.")
    data = blobs.get(graph)
    check_graph(data, f"blobs/{graph.file}")
    import onnxruntime

    _bound_memory()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what is wrong is said below, once
    options.intra_op_num_threads = threads or 0
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has errors of many kinds, for graphs of any kind
        raise DamagedModel(f"The export cannot be opened ({one_line(error)}).") from error


@cache
def _bound_memory() -> None:
    """Let graphs take half of the machine's memory at most: a few bytes can ask for any amount."""
    import onnxruntime

    there = memory_of_machine()
    if there is None:
        return
    kind = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(
        kind, onnxruntime.OrtArenaCfg({"max_mem": there // 2, "arena_extend_strategy": 1})
    )


def _array(blobs: Blobs, blob: Blob) -> Array:
    """The tensor of a file."""
    reason = too_large(2 * blob.bytes)
    if reason is not None:
        raise DamagedModel(f"blobs/{blob.file} needs {reason}.")
    return _tensor(blobs.get(blob), blob)


def _table(blobs: Blobs, blob: Blob) -> Array:
    """The tensor of a file, which stays where it is."""
    return _tensor(blobs.view(blob), blob)


def _tensor(data: bytes | memoryview, blob: Blob) -> Array:
    try:
        header = read_header(data, len(data))
        return np.frombuffer(data, TYPES[header.kind], offset=header.end).reshape(header.shape)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise DamagedModel(
            f"blobs/{blob.file} is not a tensor in safetensors form ({one_line(error)})."
        ) from error
