"""Nearest class mean: the simplest learner that cannot forget."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from repcl.methods.frozen.method import FrozenMethod, SharingSettings
from repcl.methods.frozen.sums import ClassSums


class NCMSettings(SharingSettings):
    """Settings of the nearest class mean."""


class NCM(FrozenMethod):
    """Cosine of a representation with the mean of each class, on a frozen encoder."""

    Settings: ClassVar[type[NCMSettings]] = NCMSettings
    settings: NCMSettings
    takes_several_labels = True

    def new_sums(self) -> list[ClassSums]:
        """The sum of each class."""
        return [ClassSums(self.encoder.representation_size)]

    def solve(self) -> tuple[Tensor]:
        """Class means at unit length, (classes, representation size)."""
        (sums,) = self.ledger.parts()
        return (normalize(sums.means(), dim=1),)

    def solution_shapes(self) -> list[tuple[int, ...]]:
        """The means."""
        return [(len(self.classes), self.encoder.representation_size)]

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Cosines with the class means."""
        (means,) = solution
        return normalize(rows.double(), dim=1) @ means.T

    def left_out_scores(self, rows: Tensor, labels: Tensor, times: Tensor) -> Tensor:
        """Cosines with the class means, the own class's without the row itself."""
        (sums,) = self.ledger.parts()
        (means,) = self.solve()
        unit = normalize(rows.double(), dim=1)
        scores = unit @ means.T
        rest = normalize(sums.sums[labels].double() - times[:, None] * rows.double(), dim=1)
        own = torch.where(sums.counts[labels] > times, (unit * rest).sum(dim=1), -2.0)
        scores[torch.arange(len(labels)), labels] = own
        return scores

    def left_out_text_scores(self, rows: Tensor, has_label: Tensor) -> Tensor:
        """Cosines with the class means, those of the own classes without the text itself."""
        (sums,) = self.ledger.parts()
        (means,) = self.solve()
        unit = normalize(rows.double(), dim=1)
        scores = unit @ means.T
        text, label = has_label.nonzero(as_tuple=True)
        rest = normalize(sums.sums[label].double() - rows[text].double(), dim=1)
        scores[text, label] = torch.where(sums.counts[label] > 1, (unit[text] * rest).sum(dim=1), -2.0)
        return scores
