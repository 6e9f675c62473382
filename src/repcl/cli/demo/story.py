"""What the demo does: a support desk learns intents in two weeks, answers, and undoes a bad update."""

import random
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from repcl.benchmarks.base import Split
from repcl.benchmarks.demo import DEMO
from repcl.classifier import ContinualClassifier, ForgettingWarning, ModelFolder
from repcl.data import Example
from repcl.errors import InvalidData
from repcl.files import shown

FIRST_WEEK, SECOND_WEEK = 20, 7
QUESTIONS = (
    "the driver says he left it with a neighbor but nobody has it",
    "my card was charged two times for the same sofa",
    "who won the match yesterday?",
)
UNKNOWN = "(unknown)"


@dataclass(frozen=True)
class Desk:
    """The bundled texts: what is taught in each week, and what it is tested on."""

    weeks: tuple[tuple[str, ...], tuple[str, ...]]
    splits: Mapping[str, Split]

    @property
    def taught_classes(self) -> tuple[str, ...]:
        """The classes of both weeks."""
        return (*self.weeks[0], *self.weeks[1])

    def training_texts(self, names: Sequence[str]) -> list[Example]:
        """What some classes are taught with."""
        return [example for name in names for example in self.splits[name].train]

    def test_texts(self, names: Sequence[str]) -> list[Example]:
        """What they are tested on."""
        return [example for name in names for example in self.splits[name].test]


@dataclass(frozen=True)
class ClassScore:
    """Share of a class's test texts that are right after each week; None before it was taught."""

    name: str
    before: float | None
    after: float

    @property
    def change(self) -> float | None:
        """What the second week did to a class of the first."""
        return None if self.before is None else self.after - self.before


@dataclass(frozen=True)
class Answer:
    """A text that was asked, the answer and how sure it is."""

    text: str
    label: str
    confidence: float

    @property
    def is_unknown(self) -> bool:
        """Whether no class fits."""
        return self.label == UNKNOWN


@dataclass(frozen=True)
class BadUpdate:
    """What wrong labels did: what the guard said, how bad the model would be, and after the way back."""

    texts: int
    is_refused: bool
    accuracy_if_used: float
    accuracy_after_rollback: float
    revision: int

    def told(self, before: float) -> list[str]:
        """The same in sentences, each short enough for a terminal; `before` is the accuracy before it."""
        verdict = "refused it" if self.is_refused else "let it through"
        return [
            f"Taught {self.texts} texts, each with the label of another intent.",
            f"The guard {verdict}.",
            f"Used anyway, it would lower accuracy from {before:.1%} to {self.accuracy_if_used:.1%}.",
            f"Rolled back to revision {self.revision}: {self.accuracy_after_rollback:.1%} again.",
        ]


@dataclass(frozen=True)
class Story:
    """Everything the demo found; texts and tested are numbers of texts in each week."""

    weeks: tuple[tuple[str, ...], tuple[str, ...]]
    texts: tuple[int, int]
    tested: tuple[int, int]
    classes: Sequence[ClassScore]
    answers: Sequence[Answer]
    bad_update: BadUpdate
    cpu_seconds: float

    @property
    def old_before(self) -> float:
        """Accuracy on the first week's classes after that week."""
        return fmean(one.before for one in self.classes if one.before is not None)

    @property
    def old_after(self) -> float:
        """The same after the second week."""
        return fmean(one.after for one in self.classes if one.before is not None)

    @property
    def new_after(self) -> float:
        """Accuracy on the second week's classes."""
        return fmean(one.after for one in self.classes if one.before is None)

    @property
    def all_after(self) -> float:
        """Accuracy on all classes; each has as many test texts."""
        return fmean(one.after for one in self.classes)

    @property
    def most_changed(self) -> ClassScore:
        """The old class that lost most."""
        return min(self.classes, key=lambda one: one.change or 0.0)


def bundled_desk() -> Desk:
    """Twenty intents for the first week and seven for the second; three are never taught."""
    splits = DEMO.corpus(DEMO.folder(), random.Random(0)).splits
    names = list(splits)
    second = names[FIRST_WEEK : FIRST_WEEK + SECOND_WEEK]
    return Desk((tuple(names[:FIRST_WEEK]), tuple(second)), splits)


def play(folder: Path, desk: Desk) -> Story:
    """Teach a new model in a folder week by week, ask it, spoil it and take that back."""
    started = time.process_time()
    model = ModelFolder(folder)
    outdated = _earlier_revisions(model, desk)
    classifier = ContinualClassifier()
    old, new = desk.weeks
    _teach(classifier, desk.training_texts(old))
    before = _recalls(classifier, desk.test_texts(old))
    classifier.save(folder)
    _teach(classifier, desk.training_texts(new))
    good = classifier.save(folder)
    after = _recalls(classifier, desk.test_texts(desk.taught_classes))
    return Story(
        weeks=desk.weeks,
        texts=(len(desk.training_texts(old)), len(desk.training_texts(new))),
        tested=(len(desk.test_texts(old)), len(desk.test_texts(new))),
        classes=[ClassScore(name, before.get(name), recall) for name, recall in after.items()],
        answers=_ask(classifier),
        bad_update=_spoil(classifier, model, desk, good, outdated),
        cpu_seconds=time.process_time() - started,
    )


def _earlier_revisions(model: ModelFolder, desk: Desk) -> list[int]:
    """The revisions of earlier demos; a model that someone else taught is refused, for they are deleted."""
    if not model.exists:
        return []
    taught = {len(desk.training_texts(week)) for week in desk.weeks}
    is_own = not model.unreadable() and all(
        set(desk.taught_classes).issuperset(revision.contents.names)
        and all(update.action == "learn" and update.examples in taught for update in revision.updates)
        for revision in model.history()
    )
    if not is_own:
        raise InvalidData(
            f"Expected no model but one of an earlier demo in {shown(model.path)}, found another, which the "
            "demo would replace: give another --out."
        )
    return model.numbers()


def _teach(classifier: ContinualClassifier, examples: Sequence[Example]) -> None:
    classifier.partial_fit(examples, [example.label for example in examples])


def _ask(classifier: ContinualClassifier) -> list[Answer]:
    labels = classifier.predict(list(QUESTIONS), unknown=UNKNOWN)
    _, confidence = classifier.predict_top(list(QUESTIONS), 1)
    return [
        Answer(text, str(label), float(sure[0]))
        for text, label, sure in zip(QUESTIONS, labels, confidence, strict=True)
    ]


def _spoil(
    classifier: ContinualClassifier, model: ModelFolder, desk: Desk, good: int, outdated: Sequence[int]
) -> BadUpdate:
    """Teach texts under the label of the next class, use them although the guard refuses, and roll back."""
    known, old = desk.training_texts(desk.weeks[0]), desk.weeks[0]
    next_class = dict(zip(old, (*old[1:], old[0]), strict=True))
    labels = [next_class[example.label] for example in known]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForgettingWarning)  # that is what is shown
        # new wordings: the same texts under other labels would count as corrections
        classifier.partial_fit([f"urgent: {example.text}" for example in known], labels)
    update, tested = classifier.last_update_, desk.test_texts(desk.taught_classes)
    spoiled = fmean(_recalls(classifier, tested).values())
    classifier.save(model.path)
    with model.lock("rolling back"):
        model.rollback(good)
        model.purge(outdated)
    restored = fmean(_recalls(ContinualClassifier.load(model.path), tested).values())
    return BadUpdate(len(known), update.is_refused, spoiled, restored, good)


def _recalls(classifier: ContinualClassifier, tested: Sequence[Example]) -> dict[str, float]:
    """Share of each class's test texts that are right."""
    right: dict[str, list[bool]] = {}
    for example, label in zip(tested, classifier.predict(tested), strict=True):
        right.setdefault(example.label, []).append(example.label == label)
    return {name: fmean(found) for name, found in right.items()}
