"""A user's own data file as a benchmark: classes in order of appearance, a seeded share held out to test."""

import random
from functools import partial
from pathlib import Path

from repcl.benchmarks.base import Corpus, Split
from repcl.benchmarks.originals import by_class
from repcl.data.examples import Example, InputKind
from repcl.data.files import input_kind, read_examples
from repcl.errors import InvalidData

TEST_SHARE = 0.2
DEFAULT_TASKS = 5


def read_own(
    train_file: Path,
    test_file: Path | None,
    generator: random.Random,
    *,
    text_column: str = "text",
    label_column: str = "label",
) -> tuple[InputKind, Corpus]:
    """Read a user's file, and its test part from a second file or as a stratified share of the first."""
    notes: list[str] = []
    read = partial(read_examples, text_column=text_column, label_column=label_column, note=notes.append)
    examples = read(train_file)
    kind = input_kind(examples[0])
    groups = by_class(examples)
    if len(groups) < 2:
        raise InvalidData(
            f"{train_file} has one class only, {examples[0].label!r}: give at least two classes."
        )
    if test_file is None:
        splits = {label: _held_out(group, generator) for label, group in groups.items()}
    else:
        tested = read(test_file)
        splits = _with_test(groups, tested, train_file, test_file)
        _require_kind(tested[0], kind, train_file, test_file)
    return kind, Corpus(splits, notes=tuple(notes))


def _held_out(examples: list[Example], generator: random.Random) -> Split:
    """Hold out a fifth, at least one example, and none from a class that has only one."""
    shuffled = generator.sample(examples, len(examples))
    held_out = max(1, round(TEST_SHARE * len(examples))) if len(examples) > 1 else 0
    return Split(train=shuffled[held_out:], test=shuffled[:held_out])


def _with_test(
    groups: dict[str, list[Example]], tested: list[Example], train_file: Path, test_file: Path
) -> dict[str, Split]:
    test_groups = by_class(tested)
    for label in test_groups:
        if label not in groups:
            raise InvalidData(
                f"{test_file} has the class {label!r}, which {train_file} does not have: "
                "add training texts for it, or remove it from the test file."
            )
    return {label: Split(group, test_groups.get(label, [])) for label, group in groups.items()}


def _require_kind(example: Example, kind: InputKind, train_file: Path, test_file: Path) -> None:
    found = input_kind(example)
    if found != kind:
        raise InvalidData(
            f"{test_file} holds {found}s where {train_file} holds {kind}s: give both files the same columns."
        )
