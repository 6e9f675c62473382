"""One fit of a critic, and what the fitted critic says about pairs that it did or did not see."""

import copy
from collections.abc import Callable
from math import inf, log

import torch
from torch import Tensor

from repcl.analysis.bounds import corrected_loss, donsker_varadhan, info_nce_bound, moving_log_mean
from repcl.analysis.critic import Critic
from repcl.analysis.estimator_settings import EstimatorSettings, Partners
from repcl.analysis.pairs import Drawn, Paired

GROUP = 128  # texts that InfoNCE tells apart; its bound cannot exceed ln of it
BUDGET = 10_000  # independent pairs that are scored for a point of a curve

Draw = Callable[[], Drawn]


def independent_pairs(
    drawn: Drawn, how: Partners, generator: torch.Generator, *, offset: int = 1
) -> tuple[Tensor, Tensor]:
    """Indices of left and right halves that were not drawn together.

    `shifted` takes a following right half, and leaves out a pair that is a text with itself. `drawn` draws
    with replacement, as the authors' code does, and hits one such pair on average, which pulls the estimate
    down toward ln n.
    """
    left = torch.arange(len(drawn))
    if how == "drawn":
        return left, torch.randint(len(drawn), (len(drawn),), generator=generator)
    right = (left + offset) % len(drawn)
    is_other = ~drawn.same_text(left, right)
    return left[is_other], right[is_other]


def fit_critic(
    critic: Critic,
    draw: Draw,
    settings: EstimatorSettings,
    generator: torch.Generator,
    is_enough: Callable[[int], bool] = lambda _: False,
) -> None:
    """Raise the bound on drawn batches of true pairs, until `is_enough(steps made)` or all steps are made."""
    optimizer = torch.optim.Adam(critic.parameters(), lr=settings.learning_rate, fused=True)
    log_average: Tensor | None = None
    for step in range(1, settings.steps + 1):
        drawn = draw()
        left, right = critic.halves(drawn.left, drawn.right)
        ones, others = independent_pairs(drawn, settings.partners, generator)
        marginal = critic.score(left[ones], right[others])
        log_average = moving_log_mean(log_average, marginal, rate=settings.moving_average)
        loss = corrected_loss(critic.score(left, right), marginal, log_average)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if is_enough(step):
            return


class Watch:
    """Looks at a fit now and then, and remembers the critic that was best on texts it was not trained on.

    Args:
        critic: the critic that is being fitted.
        trained: pairs that it is fitted on.
        judged: pairs by which the best moment is chosen; None takes the last.
        reported: pairs that the value is read off.
        settings: how often to look, how long to wait.
        generator: draws of its own, so that looking changes nothing.
    """

    def __init__(
        self,
        critic: Critic,
        trained: Paired,
        judged: Paired | None,
        reported: Paired,
        settings: EstimatorSettings,
        generator: torch.Generator,
    ) -> None:
        self.critic, self.settings, self.generator = critic, settings, generator
        self.trained, self.judged, self.reported = trained, judged, reported
        self.steps: list[int] = []
        self.curve: list[float] = []
        self.fitted_curve: list[float] = []
        self.best = copy.deepcopy(critic.state_dict())
        self._height, self._step, self._value = -inf, 0, 0.0

    def __call__(self, step: int) -> bool:
        """Evaluate the critic if it is time to, and say whether the fit should end."""
        if step % self.settings.look_every and step != self.settings.steps:
            return False
        self.steps.append(step)
        self.fitted_curve.append(self._bound(self.trained))
        height = inf if self.judged is None else self._bound(self.judged)
        if height >= self._height:
            self._height, self._step, self._value = height, step, self._bound(self.reported)
            self.best = copy.deepcopy(self.critic.state_dict())
        self.curve.append(self._value)
        patience = self.settings.patience
        return patience is not None and step - self._step >= patience

    def _bound(self, pairs: Paired) -> float:
        return bound(self.critic, pairs, self.generator, budget=BUDGET, how=self.settings.partners)


@torch.no_grad()
def bound(
    critic: Critic, pairs: Paired, generator: torch.Generator, *, budget: int, how: Partners = "shifted"
) -> float:
    """Donsker and Varadhan's bound over all rows; about `budget` independent pairs are scored."""
    drawn = pairs.draw(len(pairs), generator)
    left, right = critic.halves(drawn.left, drawn.right)
    rounds = min(len(drawn) - 1, max(1, budget // len(drawn)))
    marginal = []
    for offset in range(1, rounds + 1):
        ones, others = independent_pairs(drawn, how, generator, offset=offset)
        marginal.append(critic.score(left[ones], right[others]))
    return float(donsker_varadhan(critic.score(left, right), torch.cat(marginal)))


@torch.no_grad()
def group_bound(critic: Critic, pairs: Paired, generator: torch.Generator) -> tuple[float, float]:
    """InfoNCE's bound of the same critic, over groups of texts, and its ceiling, ln of a group's size."""
    drawn = pairs.draw(len(pairs), generator)
    left, right = critic.halves(drawn.left, drawn.right)
    size = min(GROUP, len(drawn))
    bounds = []
    for start in range(0, len(drawn) - size + 1, size):
        group = torch.arange(start, start + size)
        scores = critic.score(left[group, None], right[None, group])
        is_same = drawn.same_text(group[:, None], group[None, :]).fill_diagonal_(False)
        bounds.append(info_nce_bound(scores.masked_fill(is_same, -inf)))
    return float(torch.stack(bounds).mean()), log(size)
