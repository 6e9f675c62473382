"""Files whose cells hold several labels, as `a|b`: how they are read for a model that takes them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from repcl.data.label_cells import SEPARATOR, labels_of_cell
from repcl.errors import InvalidData, shortened

if TYPE_CHECKING:
    from repcl.classifier import ModelFolder
    from repcl.data import Example


def takes_several(folder: "ModelFolder") -> bool:
    """Whether a text may have several labels in a model; said without loading it."""
    return folder.exists and folder.in_use().contents.settings.get("multilabel") is True


def one_label_each(examples: "Iterable[Example]") -> "list[Example]":
    """The examples, each as often as it has labels, with one of them."""
    return [replace(example, label=label) for example in examples for label in labels_in(example.label)]


def labels_in(cell: str) -> list[str]:
    """The labels of a cell; one without any is refused."""
    labels = labels_of_cell(cell)
    if not labels:
        raise InvalidData(
            f"Expected labels with {SEPARATOR!r} between them, found {shortened(cell)}: write at least one."
        )
    return labels


def looks_like_several(examples: "Sequence[Example]") -> str | None:
    """A cell that may hold several labels though it is taken for one: its parts are labels, too."""
    labels = {example.label for example in examples}
    cells = (label for label in labels if SEPARATOR in label)
    return min((cell for cell in cells if labels.intersection(labels_of_cell(cell))), default=None)
