"""The revision that answers: loaded whole, asked by one thread, replaced at once when another is in use."""

import gc
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from repcl.allocator import release_freed_memory
from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.classifier.answering import Scores, UnknownRule
from repcl.classifier.exported import Exported, open_export
from repcl.classifier.inputs import are_empty
from repcl.classifier.label_rules import Mask
from repcl.classifier.neighbors import nearest_of
from repcl.classifier.overview import ClassOverview, overview
from repcl.classifier.state import ClassifierState
from repcl.classifier.store.records import DamagedModel
from repcl.classifier.vectors import Vectors, embed
from repcl.data import Example, Span
from repcl.errors import InvalidSetting, RepclError
from repcl.methods.frozen.reader import FrozenReader
from repcl.model import Encoder

POLL_SECONDS = 0.5
REMEMBERED_TEXTS = 2000
REMEMBERED_BYTES = 16 << 20

Answer = dict[str, Any]
"""A `Prediction` as JSON has it."""

log = logging.getLogger("repcl.serving")


@dataclass(frozen=True)
class Question:
    """Texts of one request and what is asked about them."""

    examples: Sequence[Example]
    top: int = 3
    nearest: int = 0


@dataclass(frozen=True)
class ServedModel:
    """A revision that answers. Only one thread at a time may ask it.

    Attributes:
        number: of the revision.
        state: what was learned.
        classes: what is known about each class.
        kept: texts that are kept word for word.
        export: of this revision, which answers faster than the revision itself; None where there is none.
    """

    number: int
    state: ClassifierState
    classes: Sequence[ClassOverview]
    kept: Sequence[Example]
    export: Exported | None = None
    kept_rows: list[Vectors] = field(default_factory=list)

    @cached_property
    def rule(self) -> UnknownRule | None:
        """When a text is unknown; None where no threshold could be chosen."""
        with suppress(InvalidSetting):
            return (self.export or self.state).unknown_rule()
        return None

    def answers(self, questions: Sequence[Question]) -> list[list[Answer]]:
        """The answers to several questions, computed together."""
        examples = [example for question in questions for example in question.examples]
        is_empty = are_empty(examples)
        full = [example for example, says_nothing in zip(examples, is_empty, strict=True) if not says_nothing]
        tops = [question.top for question in questions for _ in question.examples]
        wanted = [top for top, says_nothing in zip(tops, is_empty, strict=True) if not says_nothing]
        found = iter(self._ranked(full, wanted))
        every = iter([_nothing() if says_nothing else next(found) for says_nothing in is_empty])
        answered = [[next(every) for _ in question.examples] for question in questions]
        for question, own in zip(questions, answered, strict=True):
            if question.nearest and self.kept:
                self._explain(question, own)
        return answered

    def embed_kept(self, count: int) -> bool:
        """Make vectors of so many more kept texts; whether all have one then."""
        done = sum(map(len, self.kept_rows))
        if done < len(self.kept):
            self.kept_rows.append(embed(self.state, self.kept[done : done + count]))
        return done + count >= len(self.kept)

    def vectors_of_kept(self) -> Vectors:
        """The vectors of the kept texts, once all have one."""
        return np.concatenate(self.kept_rows) if self.kept_rows else embed(self.state, ())

    def _ranked(self, examples: Sequence[Example], tops: Sequence[int]) -> list[Answer]:
        if not examples:
            return []
        evidence = (self.export or self.state).evidence(examples)
        is_unknown = self.rule.applies(evidence) if self.rule else np.zeros(len(examples), dtype=bool)
        has_label = self.state.has_labels(evidence.probabilities)
        has_label[is_unknown] = False  # and where a text may have several labels, it may also have none
        return [
            _answer(evidence.names, row, own, top)
            for row, own, top in zip(evidence.probabilities, has_label, tops, strict=True)
        ]

    def _explain(self, question: Question, answers: Sequence[Answer]) -> None:
        near = nearest_of(self.state, self.kept, self.vectors_of_kept(), question.examples, question.nearest)
        for answer, neighbors in zip(answers, near, strict=True):
            answer["nearest"] = [
                {"text": one.text, "label": str(one.label), "similarity": one.similarity} for one in neighbors
            ]


class CurrentModel:
    """The revision in use of a folder, followed wherever it goes.

    Args:
        folder: may be changed by other processes at any moment.
        device: to compute on; the best one present if not given.
    """

    def __init__(self, folder: ModelFolder, device: str | None = None) -> None:
        self.folder = folder
        self.device = device
        self._told: set[str] = set()
        self.served = self._load()
        self.failures = 0
        self.heard: list[Callable[[], None]] = []
        self._switching = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)

    def start(self) -> None:
        """Follow the folder from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Follow it no longer."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def refresh(self) -> None:
        """Use the revision that the folder says is in use; the old one answers until it is loaded."""
        with self._switching:
            if self.folder.current() != self.served.number:
                self.served = self._load()
                log.info("revision %d answers now", self.served.number)
        for hear in self.heard:
            hear()

    def _follow(self) -> None:
        said, number = "", self.served.number
        while not self._ending.wait(POLL_SECONDS):
            if self.served.number != number:  # and those who had asked the old one have their answers
                number = self.served.number
                gc.collect()  # parts of a model may refer to each other
                release_freed_memory()
            said = self._tried_to_refresh(said)

    def _tried_to_refresh(self, said: str) -> str:
        """Refresh; the loaded revision goes on answering, whatever has become of the folder.

        Args:
            said: what went wrong the last time, which is not said twice a second.

        Returns:
            What went wrong this time.
        """
        try:
            self.refresh()
        except Exception as error:
            self.failures += 1
            reason = str(error) if isinstance(error, RepclError) else type(error).__name__
            if reason != said:
                log.error("revision %d stays in use: %s", self.served.number, reason)
            return reason
        return ""

    def _load(self) -> ServedModel:
        number, state = _loaded(self.folder, self.device)
        served = ServedModel(number, state, overview(state), state.kept_texts())
        faster = replace(served, export=self._export(number)) if not state.is_multilabel else served
        try:
            _warm_up(faster)
        except DamagedModel as error:
            self._tell(f"The export is not used: {error}")
            faster = served
            _warm_up(faster)
        return faster

    def _export(self, number: int) -> Exported | None:
        """The export of a revision; none where torch's device was chosen."""
        if self.device is not None:
            return None
        import torch

        return open_export(self.folder, number, threads=torch.get_num_threads(), tell=self._tell)

    def _tell(self, sentence: str) -> None:
        """Say something about the export, once."""
        if sentence not in self._told:
            self._told.add(sentence)
            log.warning("%s", sentence)


def _warm_up(served: ServedModel) -> None:
    """Ask anything, for much is computed at the first question."""
    served.answers([Question([_any_text(served)])])


def _loaded(folder: ModelFolder, device: str | None) -> tuple[int, ClassifierState]:
    """The revision in use; one that was switched away from while it was read is read again."""
    while True:
        number = folder.in_use().number
        try:
            state = ContinualClassifier.load(folder.path, revision=number, device=device).fitted_state()
        except RepclError:
            if folder.current() == number:
                raise
            continue
        _remember_little(state)
        return number, state


def _remember_little(state: ClassifierState) -> None:
    """Texts that are asked about are not kept for long, nor is what was computed from them, nor on disk."""
    for part in state.method.modules():
        if isinstance(part, Encoder):
            part.remembered = REMEMBERED_TEXTS
        if isinstance(part, FrozenReader):
            part.embedder.largest = REMEMBERED_BYTES
            part.embedder.folder = None
            part.embedder.may_pad = True


def _any_text(served: ServedModel) -> Example:
    """A text of the kind that the model takes."""
    if served.kept:
        return served.kept[0]
    first, last = Span(0, 1), Span(2, 3)
    spans: dict[str, Any] = {
        "sentence": {},
        "relation": {"head": first, "tail": last},
        "event": {"trigger": first},
    }[served.state.kind]
    return Example("a b", "", **spans)


def _answer(names: Sequence[str], row: Scores, has_label: Mask, top: int) -> Answer:
    """The answer to one text, from its probabilities and from which labels it has; unknown without any."""
    best = (-row).argsort(kind="stable").tolist()
    ranked = [{"label": names[index], "probability": float(row[index])} for index in best[:top]]
    labels = [{"label": names[index], "probability": float(row[index])} for index in best if has_label[index]]
    return {
        "label": labels[0]["label"] if labels else None,
        "labels": labels,
        "unknown": not labels,
        "confidence": ranked[0]["probability"],
        "top": ranked,
        "nearest": [],
    }


def _nothing() -> Answer:
    """The answer to an empty text, which is like no class."""
    return {"label": None, "labels": [], "unknown": True, "confidence": 0.0, "top": [], "nearest": []}
