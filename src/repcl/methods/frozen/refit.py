"""Refit: logistic regression on the stored embeddings of everything, anew after each task."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from repcl.methods.frozen.logistic import fit_logistic, logits
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.frozen.reader import FrozenSettings
from repcl.methods.search_ranges import Dimension, Range
from repcl.model import Merge, mean_row


class RefitSettings(FrozenSettings):
    """Settings of logistic regression."""

    inverse_penalty: float = Field(
        10.0, gt=0, description="scikit-learn's C; a larger value fits the texts more closely"
    )
    iterations: int = Field(1000, ge=1, description="maximum number of solver steps")

    search: ClassVar[Mapping[str, Dimension]] = {"inverse_penalty": Range(0.1, 1000.0, is_log=True)}


class Refit(FrozenMethod):
    """What every user would try first: keep the embeddings of all texts and fit again."""

    Settings: ClassVar[type[RefitSettings]] = RefitSettings
    settings: RefitSettings
    keeps_rows = True
    has_closed_form = False

    # like every learner on a frozen encoder, it solves anew when classes change
    class_rows: ClassVar[Mapping[str, Merge]] = {"weights": mean_row, "offsets": mean_row}
    weights: Tensor  # (classes, representation size)
    offsets: Tensor  # (classes,)

    def build_parts(self) -> None:
        """The ledger, and a fit of no class yet."""
        super().build_parts()
        self.register_buffer("weights", torch.zeros(0, self.encoder.representation_size, dtype=torch.float64))
        self.register_buffer("offsets", torch.zeros(0, dtype=torch.float64))

    def solve(self) -> tuple[Tensor, Tensor]:
        """Fit all stored embeddings; it is saved, for it takes long."""
        self.weights, self.offsets = fit_logistic(
            self.ledger.kept,
            len(self.classes),
            inverse_penalty=self.settings.inverse_penalty,
            iterations=self.settings.iterations,
        )
        return self.weights, self.offsets

    def restore(self) -> tuple[Tensor, Tensor]:
        """As it was saved, if it was."""
        is_there = len(self.weights) == len(self.offsets) == len(self.classes)
        return (self.weights, self.offsets) if is_there else self.solve()

    def exported_solution(self) -> dict[str, Tensor]:
        """The fit."""
        return dict(zip(("weights", "offsets"), super().exported_solution().values(), strict=True))

    def derived(self) -> dict[str, Tensor]:
        """The fit."""
        return {"weights": self.weights, "offsets": self.offsets}

    def derived_shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of the fit."""
        return dict(zip(("weights", "offsets"), self.solution_shapes(), strict=True))

    def take_derived(self, found: Mapping[str, Tensor]) -> None:
        """Take over the fit."""
        parts = [found[name] for name in ("weights", "offsets") if name in found]
        if self.fits(parts):
            self.weights, self.offsets = parts

    def solution_shapes(self) -> list[tuple[int, ...]]:
        """Weights and offsets."""
        return [(len(self.classes), self.encoder.representation_size), (len(self.classes),)]

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Logits."""
        return logits(rows, *solution)
