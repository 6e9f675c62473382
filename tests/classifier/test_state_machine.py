"""Any sequence of learn, correct, forget, rename, merge, remove, save, load and rollback is consistent."""

import shutil
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from repcl import ContinualClassifier
from repcl.classifier import ForgettingWarning, InvalidInput, ModelFolder
from repcl.data import Example
from tests.classifier.conftest import cheap_settings, save_tiny_encoder, toy
from tests.conftest import TOPICS

PER_CLASS, HELD = 3, 2
ASKED = toy(*TOPICS, texts=1, start=90)[0]
topics = st.lists(st.sampled_from(sorted(TOPICS)), min_size=1, max_size=2, unique=True)
numbers = st.integers(0, 50)


class LifeOfAClassifier(RuleBasedStateMachine):
    """A classifier, what its classes should be, and its folder with what each revision should answer."""

    @initialize(method=st.sampled_from(["fea", "sequential", "repcl", "instant"]), first=topics)
    def begin(self, method: str, first: list[str]) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.folder = ModelFolder(self.home / "model")
        self.classifier = ContinualClassifier(
            method,
            encoder=str(save_tiny_encoder(self.home / "encoder")),
            memory_per_class=PER_CLASS,
            holdout_per_class=HELD,
            settings=cheap_settings(method),
            device="cpu",
        )
        self.classes: set[str] = set()
        self.saved: dict[int, tuple[set[str], np.ndarray]] = {}
        self.learn(first, 10, 0)
        self.save()

    def teardown(self) -> None:
        if hasattr(self, "home"):
            shutil.rmtree(self.home)

    @rule(names=topics, texts=st.sampled_from([1, 3, 10]), start=numbers)
    def learn(self, names: list[str], texts: int, start: int) -> None:
        with quiet():
            self.classifier.partial_fit(*toy(*names, texts=texts, start=start))
        self.classes |= set(names)

    @rule(index=numbers, name=st.sampled_from(["vehicle", "union"]))
    def correct(self, index: int, name: str) -> None:
        text = self.some_text(index)
        with quiet():
            self.classifier.partial_fit([text], [name])
        assert not {one.label for one in self.kept() if one.text == text} - {name}
        self.classes = set(self.classifier.classes_.tolist())

    @precondition(lambda self: len(self.classes) > 1)
    @rule(index=numbers)
    def forget(self, index: int) -> None:
        text = self.some_text(index)
        with quiet(), suppress(InvalidInput):  # nothing is known of it, or it is all that is known
            self.classifier.forget_texts([text])
            assert text not in {one.text for one in self.kept()}
        self.classes = set(self.classifier.classes_.tolist())

    def some_text(self, index: int) -> str:
        kept = sorted(one.text for one in self.kept())
        return kept[index % len(kept)] if kept else "a text that was never seen"

    def kept(self) -> list[Example]:
        state = self.classifier.fitted_state()
        return [*state.method.memory, *state.held_out]

    @rule(index=numbers, name=st.sampled_from(["first", "second", "fruit"]))
    def rename(self, index: int, name: str) -> None:
        old = sorted(self.classes)[index % len(self.classes)]
        if name not in self.classes:
            self.classifier.rename_class(old, name)
            self.classes = self.classes - {old} | {name}

    @precondition(lambda self: len(self.classes) > 1)
    @rule(indices=st.sets(numbers, min_size=2, max_size=3), name=st.sampled_from(["union", "vehicle"]))
    def merge(self, indices: set[int], name: str) -> None:
        known = sorted(self.classes)
        parts = {known[index % len(known)] for index in indices}
        if len(parts | ({name} & self.classes)) > 1:
            with quiet():
                self.classifier.merge_classes(sorted(parts), name)
            self.classes = self.classes - parts | {name}

    @precondition(lambda self: len(self.classes) > 1)
    @rule(index=numbers)
    def remove(self, index: int) -> None:
        name = sorted(self.classes)[index % len(self.classes)]
        with quiet():
            self.classifier.remove_class(name)
        self.classes = self.classes - {name}

    @rule()
    def save(self) -> None:
        number = self.classifier.save(self.folder.path)
        assert number not in self.saved
        self.saved[number] = (set(self.classes), self.classifier.predict_proba(ASKED))

    @rule()
    def load(self) -> None:
        self.classifier = ContinualClassifier.load(self.folder.path, device="cpu")
        self.check_against(self.folder.current())

    @rule(index=numbers)
    def rollback(self, index: int) -> None:
        number = sorted(self.saved)[index % len(self.saved)]
        with self.folder.lock("testing"):
            self.folder.rollback(number)
        self.load()
        assert self.folder.current() == number

    def check_against(self, number: int) -> None:
        self.classes, expected = set(self.saved[number][0]), self.saved[number][1]
        np.testing.assert_array_equal(self.classifier.predict_proba(ASKED), expected)

    @invariant()
    def everything_adds_up(self) -> None:
        if not hasattr(self, "classifier") or not self.classes:
            return
        assert self.classifier.classes_.tolist() == sorted(self.classes)
        probabilities = self.classifier.predict_proba(ASKED)
        assert probabilities.shape == (len(ASKED), len(self.classes))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        kept = self.classifier.method_.memory.counts()
        assert all(count <= PER_CLASS for count in kept.values())
        assert set(kept) <= self.classes
        held = [example.label for example in self.classifier.fitted_state().held_out]
        assert set(held) <= self.classes
        table = self.classifier.fitted_state().known.to_table(self.classifier.method_.classes)
        assert len(table) == len(self.classifier.fitted_state().known)
        assert all(held.count(name) <= HELD for name in set(held))


class quiet(warnings.catch_warnings):
    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore", ForgettingWarning)


TestLifeOfAClassifier = LifeOfAClassifier.TestCase
TestLifeOfAClassifier.settings = settings(
    max_examples=6,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
