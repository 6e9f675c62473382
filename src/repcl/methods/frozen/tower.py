"""The tower: a linear classifier on a frozen encoder that learns from new texts and exemplars only.

It keeps no sums and no embeddings of old texts, so it may stand beside methods that keep exemplars only. What
it knew is kept by an anchor: the rows of old classes are held where they were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import minimize
from scipy.special import log_softmax
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from repcl.data import Batch, Example, Task
from repcl.methods.frozen.logistic import unit_rows
from repcl.methods.frozen.random_features import on_grid
from repcl.methods.frozen.reader import FrozenReader, FrozenSettings
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import MemorySettings
from repcl.model import Merge, mean_row
from repcl.training import Stage

Numbers = NDArray[np.float64]
OFFSET_PULL = 0.01
"""Of an offset, relative to that of its row."""


class TowerSettings(FrozenSettings, MemorySettings):
    """Settings of the tower."""

    old_pull: float = Field(1000.0, gt=0, description="λ that holds rows of old classes where they were")
    new_pull: float = Field(1.0, gt=0, description="λ that holds rows of new classes near zero")
    iterations: int = Field(60, ge=1, description="maximum number of solver steps per task")

    search: ClassVar[Mapping[str, Dimension]] = {
        "old_pull": Range(1.0, 10_000.0, is_log=True),
        "new_pull": Range(0.1, 10.0, is_log=True),
    }


class Tower(FrozenReader):
    """Softmax regression, task by task, on class-balanced new texts and exemplars, with old rows anchored."""

    Settings: ClassVar[type[TowerSettings]] = TowerSettings
    settings: TowerSettings
    class_rows: ClassVar[Mapping[str, Merge]] = {"weights": mean_row, "offsets": mean_row}

    def build_parts(self) -> None:
        """The frozen encoder, and rows for no class yet."""
        super().build_parts()
        self.weights = nn.Parameter(torch.zeros(0, self.encoder.representation_size, dtype=torch.float64))
        self.offsets = nn.Parameter(torch.zeros(0, dtype=torch.float64))
        self.chooses_exemplars = True  # in a duet the trained part does

    def learn_task(self, task: Task) -> None:
        """Fit the new texts beside exemplars of old classes, then choose exemplars."""
        texts = list(dict.fromkeys([*task.train, *self.memory]))
        with self.observer.stage(Stage.EMBEDDING):
            rows = self._scaled(self.embed(texts))
        with self.observer.stage(Stage.SOLVING):
            self._fit(rows.numpy(), self.indices(texts).numpy(), self.indices(task.train).numpy())
        if self.chooses_exemplars:
            self.remember(task)

    def scores(self, examples: Sequence[Example]) -> Tensor:
        """Logits of all seen classes for each example, (examples, seen classes), on the CPU."""
        return self._logits(self.embed(examples))

    def class_scores(self, batch: Batch) -> Tensor:
        """Logits of all seen classes, (batch, seen classes)."""
        return self._logits(on_grid(self.encoder.represent(batch).cpu()))

    def candidate_features(self, examples: Sequence[Example]) -> Tensor:
        """What exemplars are chosen by: the representations, which are at hand."""
        return self._scaled(self.embed(examples))

    @torch.no_grad()
    def _logits(self, rows: Tensor) -> Tensor:
        return (self._scaled(rows) @ self.weights.T + self.offsets).float()

    def _scaled(self, rows: Tensor) -> Tensor:
        """Representations whose layers have unit length each; λ then means the same for any number."""
        return unit_rows(rows) * sqrt(self.encoder.readout.width)

    def _fit(self, rows: Numbers, labels: NDArray[np.int64], taught: NDArray[np.int64]) -> None:
        """Move the rows of all classes to where texts, exemplars and anchors want them."""
        classes, settings = len(self.classes), self.settings
        start = np.zeros((classes, rows.shape[1] + 1))  # the last column is the offset
        start[: len(self.weights), :-1] = self.weights.detach().numpy()
        start[: len(self.offsets), -1] = self.offsets.detach().numpy()
        pulls = np.full((classes, 1), settings.old_pull)
        pulls[taught] = settings.new_pull
        at_hand = np.bincount(labels, minlength=classes)
        per_class = len(taught) / len(np.unique(taught))
        problem = AnchoredSoftmax(
            rows=np.hstack([rows, np.ones((len(rows), 1))]),
            labels=labels,
            shares=per_class / at_hand[labels],
            start=start,
            pulls=pulls * np.r_[np.ones(rows.shape[1]), OFFSET_PULL],
        )
        found = problem.solve(settings.iterations)
        self.weights = nn.Parameter(torch.from_numpy(found[:, :-1].copy()))
        self.offsets = nn.Parameter(torch.from_numpy(found[:, -1].copy()))


@dataclass(frozen=True)
class AnchoredSoftmax:
    """Σ s CE(W x, y) + ½ Σ λ (W - W⁰)², to be made small.

    Attributes:
        rows: x, (texts, size).
        labels: y, (texts,).
        shares: s of each text, (texts,).
        start: W⁰, (classes, size).
        pulls: λ of each weight, (classes, size).
    """

    rows: Numbers
    labels: NDArray[np.int64]
    shares: Numbers
    start: Numbers
    pulls: Numbers

    def solve(self, iterations: int) -> Numbers:
        """W after at most so many steps of L-BFGS from W⁰."""
        with threadpool_limits(1):  # the same bits however many cores there are
            found = minimize(
                self.value_and_slope,
                self.start.ravel(),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": iterations},
            )
        solved: Numbers = found.x.reshape(self.start.shape)
        return solved

    def value_and_slope(self, flat: Numbers) -> tuple[float, Numbers]:
        """The sum at W, and its gradient, both flat."""
        away = flat.reshape(self.start.shape) - self.start
        logs = log_softmax(self.rows @ flat.reshape(self.start.shape).T, axis=1)
        texts = np.arange(len(self.labels))
        errors = np.exp(logs)
        errors[texts, self.labels] -= 1
        slope = (errors * self.shares[:, None]).T @ self.rows + self.pulls * away
        value = -self.shares @ logs[texts, self.labels] + 0.5 * (self.pulls * away**2).sum()
        return float(value), slope.ravel()
