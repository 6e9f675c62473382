"""Instant (after RanPAC, McDonnell et al., 2023): ridge regression on random features of a frozen encoder."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from repcl.allocator import release_freed_memory
from repcl.methods.base import Method
from repcl.methods.frozen.left_out import (
    MOST_ASKED,
    MOST_PAIRS,
    ClassMeansWithout,
    nearest_others,
    products,
    row_keys,
    spread_sample,
    times_of,
    without_itself,
)
from repcl.methods.frozen.method import FrozenMethod, SharingSettings
from repcl.methods.frozen.random_features import FEATURE_STEPS, RandomFeatures, RecentFeatures
from repcl.methods.frozen.ridge import choose_ridge, half_solved, ridge_factor, ridge_weights
from repcl.methods.frozen.shared_texts import without_the_text
from repcl.methods.frozen.strangers import Strangers, whole_classes, without_their_classes
from repcl.methods.frozen.sums import Moments
from repcl.methods.search_ranges import Choices, Dimension
from repcl.methods.settings import MethodSettings

UNEVEN = 3
"""How many times larger than the smallest class the largest must be for balancing to be considered."""
AT_A_TIME, MOST_SCORES = 250, 10**6
"""Texts that are left out at a time, and the most scores that they may have together."""
MOST_STRANGE_SCORES = 4 * 10**6
"""The most scores of texts whose classes are left out."""
WORTH_IT = 0.01
"""Recall that balancing has to add."""


class InstantSettings(SharingSettings):
    """Settings of the instant learner."""

    maps: int = Field(3, ge=1, le=1000, description="independent random maps, whose scores are averaged")
    features: int = Field(
        2000, ge=1, le=100_000, description="random features per map; memory grows with their square"
    )
    ridge: float | None = Field(
        None, gt=0, description="λ, the penalty; left open, chosen by generalized cross-validation"
    )
    balanced: bool | None = Field(
        None,
        description="every class has the same weight, however many examples it has; left open, leave-one-out "
        "recall decides where class sizes differ",
    )
    vote: bool = Field(
        False, description="add the vote of a logistic regression on all embeddings, as `refit` fits it"
    )
    map_seed: int = Field(
        0,
        ge=0,
        lt=2**32,
        description="seed of the random maps; only learners with the same maps can be merged",
    )

    search: ClassVar[Mapping[str, Dimension]] = {
        "features": Choices((1000, 2000, 3000)),
        "balanced": Choices((False, True)),
    }

    @model_validator(mode="after")
    def _balances_single_labels(self) -> "InstantSettings":
        if self.multilabel and self.balanced:
            raise ValueError(
                "balanced = true is for texts of one label each; with several (multilabel) every class has "
                "a threshold instead"
            )
        return self


class Instant(FrozenMethod):
    """Accumulate HᵀH and HᵀY of random features H = relu(Z W), solve once per task, forget nothing."""

    Settings: ClassVar[type[InstantSettings]] = InstantSettings
    settings: InstantSettings
    takes_several_labels = True
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {**FrozenMethod.variants, "vote": {"vote": True}}

    @classmethod
    def for_settings(cls, settings: MethodSettings) -> type[Method]:
        """This class, or the one that votes together with logistic regression."""
        from repcl.methods.frozen.vote import Vote  # it is made of this one

        return Vote if isinstance(settings, InstantSettings) and settings.vote else cls

    def build_parts(self) -> None:
        """The ledger, and the random maps."""
        super().build_parts()
        self._factors: list[Tensor] = []
        self.is_balanced = False
        size, settings = self.encoder.representation_size, self.settings
        self.maps = RandomFeatures(size, settings.features, settings.maps, seed=settings.map_seed)
        self._recent = RecentFeatures(self.maps)

    def new_sums(self) -> list[Moments]:
        """Gram matrix, class sums and counts of each map."""
        return [Moments(self.settings.features) for _ in range(self.settings.maps)]

    def features(self, rows: Tensor, number: int) -> Tensor:
        """Random features by one map, in steps."""
        features: Tensor = self.maps(rows, number)
        return features

    def solve(self) -> tuple[Tensor, ...]:
        """The ridge solution of each map, (features, classes), all with the λ chosen on the first.

        Averaging maps takes away noise that a single map needs its ridge for, so they share it.
        """
        self.is_balanced = self._choose_balance()
        ridge, self._factors, weights = self.settings.ridge, [], []
        for moments in self.ledger.moments():
            gram, targets = self._problem(moments, balanced=self.is_balanced)
            if ridge is None:
                ridge = choose_ridge(gram, targets, float(moments.counts.sum())) / self.settings.maps
            factor = ridge_factor(gram, ridge)
            weights.append(ridge_weights(factor, targets))
            self._factors.append(factor.float())  # digits enough to leave texts out
            del gram, targets, factor  # of many classes they take as much as the solution
            release_freed_memory()
        return tuple(weights)

    def left_out_scores(self, rows: Tensor, labels: Tensor, times: Tensor) -> Tensor:
        """Regressed class memberships without the row itself, averaged over the maps.

        Exact for the λ that was chosen with the row.
        """
        if self._solution is None or not self._factors:
            self._solution = self.solve()
        balanced, total = self.is_balanced, torch.zeros(len(rows), len(self.classes), dtype=torch.float64)
        step = max(1, min(AT_A_TIME, MOST_SCORES // len(self.classes)))
        for which, (factor, weights) in enumerate(zip(self._factors, self._solution, strict=True)):
            for start in range(0, len(rows), step):
                some = slice(start, start + step)
                asked = rows[some], labels[some], times[some]
                total[some] += self._left_out_by(which, factor, weights, *asked, balanced=balanced)
        release_freed_memory()
        return total.div_(self.settings.maps)

    def _left_out_by(
        self,
        which: int,
        factor: Tensor,
        weights: Tensor,
        rows: Tensor,
        labels: Tensor,
        times: Tensor,
        *,
        balanced: bool,
    ) -> Tensor:
        """Regressed class memberships by one map, each without the row itself."""
        features, moments = self._recent(rows, which) / FEATURE_STEPS, self.ledger.moments()[which]
        solved = half_solved(factor, features)
        if not balanced:
            return without_itself(features @ weights, times * products(solved, solved), labels)
        # of the classes asked about only: all means times all weights would be quadratic in the classes
        means = moments.sums[labels].double() / moments.counts[labels].clamp(min=1)[:, None] / FEATURE_STEPS
        solved_means = half_solved(factor, means)
        left = ClassMeansWithout(
            sizes=moments.counts[labels].double(),
            times=times,
            even=float(_even(moments.counts.double())),
            row_products=products(solved, solved),
            cross_products=products(solved, solved_means),
            mean_products=products(solved_means, solved_means),
        )
        return left.scores(features @ weights, means @ weights, labels)

    def strangers(self, most: int = MOST_ASKED) -> Strangers | None:
        """At most so many learned texts, each without its whole class; None where classes are too large."""
        kept = self.ledger.kept
        keys = row_keys(kept.rows)
        classes = whole_classes(kept.labels, keys, min(most, MOST_STRANGE_SCORES // len(self.classes)))
        if not classes:
            return None
        asked = torch.cat(classes)
        few = spread_sample(kept.labels[asked], keys[asked], MOST_PAIRS // len(kept.rows))
        _, nearest = nearest_others(kept, keys, asked[few])
        scores = self._without_empty(self._scores_without(classes))[few]
        scores[torch.arange(len(few)), kept.labels[asked][few].long()] = -torch.inf
        return Strangers(scores, nearest)

    def _scores_without(self, classes: Sequence[Tensor]) -> Tensor:
        """Regressed class memberships of the kept rows of some classes, each without its class."""
        if self._solution is None or not self._factors:
            self._solution = self.solve()
        asked, sizes = torch.cat(list(classes)), [len(part) for part in classes]
        total = torch.zeros(len(asked), len(self.classes), dtype=torch.float64)
        for which, (factor, weights) in enumerate(zip(self._factors, self._solution, strict=True)):
            features = self._recent(self.ledger.kept.rows[asked], which) / FEATURE_STEPS
            solved, fitted = half_solved(factor, features), features @ weights
            even = float(_even(self.ledger.moments()[which].counts.double())) if self.is_balanced else None
            total += without_their_classes(solved, fitted, sizes, even=even)
        release_freed_memory()
        return total.div_(self.settings.maps)

    def left_out_text_scores(self, rows: Tensor, has_label: Tensor) -> Tensor:
        """Regressed class memberships without the text itself, averaged over the maps."""
        if self._solution is None or not self._factors:
            self._solution = self.solve()
        found = []
        for which, (factor, weights) in enumerate(zip(self._factors, self._solution, strict=True)):
            features = self._recent(rows, which) / FEATURE_STEPS
            solved = half_solved(factor, features)
            found.append(without_the_text(features @ weights, products(solved, solved), has_label))
        return torch.stack(found).mean(dim=0)

    def _choose_balance(self) -> bool:
        """Whether every class weighs the same: as set, or as the recall of left-out texts says."""
        if self.is_multilabel:
            return False  # every class has a threshold of its own instead
        if self.settings.balanced is not None:
            return self.settings.balanced
        moments, kept = self.ledger.moments()[0], self.ledger.kept
        sizes = moments.counts[moments.counts > 0]
        if not self.keeps_rows or len(sizes) < 2 or sizes.max() < UNEVEN * sizes.min():
            return False
        keys = row_keys(kept.rows)
        asked = spread_sample(kept.labels, keys, MOST_ASKED)
        rows, labels, times = (
            kept.rows[asked],
            kept.labels[asked].long(),
            times_of(keys, kept.labels, asked),
        )
        recall = [self._left_out_recall(rows, labels, times, balanced=balanced) for balanced in (False, True)]
        return recall[1] > recall[0] + WORTH_IT

    def _left_out_recall(self, rows: Tensor, labels: Tensor, times: Tensor, *, balanced: bool) -> float:
        """Recall of left-out texts by the first map, averaged over their classes."""
        moments = self.ledger.moments()[0]
        gram, targets = self._problem(moments, balanced=balanced)
        chosen = choose_ridge(gram, targets, float(moments.counts.sum())) / self.settings.maps
        factor = ridge_factor(gram, self.settings.ridge or chosen)
        weights = ridge_weights(factor, targets)
        scores = self._left_out_by(0, factor.float(), weights, rows, labels, times, balanced=balanced)
        is_correct = (scores.argmax(dim=1) == labels).double()
        asked = torch.bincount(labels)
        recalls = torch.bincount(labels, is_correct)[asked > 0] / asked[asked > 0]
        return float(recalls.mean())

    def solution_shapes(self) -> list[tuple[int, ...]]:
        """The weights of each map."""
        return [(self.settings.features, len(self.classes))] * self.settings.maps

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Regressed class memberships, averaged over the maps."""
        total: Tensor = self.maps(rows, 0) @ solution[0]  # not zeros: an export would write their number down
        for which, weights in enumerate(solution[1:], start=1):
            total += self.maps(rows, which) @ weights
        return total.div_(len(solution)).div_(FEATURE_STEPS)

    def _problem(self, moments: Moments, *, balanced: bool) -> tuple[Tensor, Tensor]:
        """G, right on and above its diagonal, and Q of the regression on one-hot targets."""
        gram = moments.upper_gram().div_(FEATURE_STEPS**2)
        sums = moments.sums.double().div_(FEATURE_STEPS).T
        if not balanced:
            return gram, sums
        # Class by class Gram matrices would not fit, so the spread inside classes is taken as shared:
        # G = Σ_c n_c (S + μ_c μ_cᵀ), and then every n_c becomes n / C.
        counts = moments.counts.double()
        means, even = sums / counts.clamp(min=1), _even(counts)
        return gram - means @ sums.T + even * (means @ means.T), even * means


def _even(counts: Tensor) -> Tensor:
    """The mean size of the classes that have texts."""
    return counts.sum() / (counts > 0).sum().clamp(min=1)
