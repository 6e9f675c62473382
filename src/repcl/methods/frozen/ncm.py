"""Nearest class mean: the simplest learner that cannot forget."""

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import normalize

from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.frozen.sums import ClassSums
from repcl.methods.settings import MethodSettings


class NCMSettings(MethodSettings):
    """Nearest class mean has nothing to set."""


class NCM(FrozenMethod):
    """Cosine of a representation with the mean of each class, on a frozen encoder."""

    Settings: ClassVar[type[NCMSettings]] = NCMSettings
    settings: NCMSettings

    def new_sums(self) -> list[ClassSums]:
        """The sum of each class."""
        return [ClassSums(self.encoder.representation_size)]

    def solve(self) -> tuple[Tensor]:
        """Class means at unit length, (classes, representation size)."""
        (sums,) = self.ledger.parts()
        return (normalize(sums.means(), dim=1),)

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Cosines with the class means."""
        (means,) = solution
        return normalize(rows.double(), dim=1) @ means.T
