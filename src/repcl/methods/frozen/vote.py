"""The vote (`instant@vote`): ridge regression and logistic regression on the same representations, added."""

from typing import Any

from torch import Tensor

from repcl.errors import InvalidSetting
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.logistic import fit_logistic, logits
from repcl.methods.frozen.refit import RefitSettings
from repcl.methods.settings import make_settings
from repcl.methods.voting import standardized

LOGISTIC: dict[str, Any] = make_settings(RefitSettings, {}).model_dump(exclude={"layers"})
"""How `refit` fits when nobody says otherwise."""


class Vote(Instant):
    """Instant and refit in one: their mistakes differ, so their standardized scores are added."""

    has_closed_form = False

    def build_parts(self) -> None:
        """Those of `instant`; logistic regression needs every embedding."""
        if not self.settings.keep_embeddings:
            raise InvalidSetting(
                "instant@vote fits the embeddings of all texts, found keep_embeddings = false: keep them, or "
                "use instant, which needs sums only."
            )
        if self.is_multilabel:
            raise InvalidSetting(
                "instant@vote gives each text one label, found multilabel = true: use instant."
            )
        super().build_parts()

    def solve(self) -> tuple[Tensor, ...]:
        """The solution of `instant`, and that of `refit` behind it."""
        return (*super().solve(), *fit_logistic(self.ledger.kept, len(self.classes), **LOGISTIC))

    def solution_shapes(self) -> list[tuple[int, ...]]:
        """The weights of each map, then weights and offsets of the logistic regression."""
        classes = len(self.classes)
        return [*super().solution_shapes(), (classes, self.encoder.representation_size), (classes,)]

    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """The two votes, added."""
        by_ridge = super().row_scores(rows, solution[:-2])
        return standardized(by_ridge) + standardized(logits(rows, *solution[-2:]))
