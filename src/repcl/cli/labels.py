"""Labels that differ in case only: whether they are one class is asked where someone can answer."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from repcl.errors import printable, shortened

if TYPE_CHECKING:
    from repcl.data import Example


def one_label_where_case_differs(examples: "list[Example]", known: Sequence[str]) -> "list[Example]":
    """The examples, with one label for labels that the user says are one; without a terminal, as they are.

    Args:
        examples: to learn.
        known: the classes that the model has.
    """
    if not someone_answers():
        return examples
    from repcl.classifier.labels import alike_but_for_case, settled

    taken = settled((example.label for example in examples), known)
    texts = Counter(taken[example.label] for example in examples)
    for group in alike_but_for_case(texts, known):
        # a class that is known keeps its name, else the label that most texts have
        best = min(group, key=lambda name: (name not in known, -texts[name], name))
        others = [name for name in group if name != best and name not in known]
        question = (
            f"{' and '.join(map(shortened, others))} {'differ' if len(others) > 1 else 'differs'} from "
            f"{shortened(best)} in case only. Is it the same class?"
        )
        if typer.confirm(printable(question), default=True, err=True):
            taken |= {label: best for label, name in taken.items() if name in others}
    return [
        example if taken[example.label] == example.label else replace(example, label=taken[example.label])
        for example in examples
    ]


def someone_answers() -> bool:
    """Whether there is a terminal to ask and to be answered from."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())
