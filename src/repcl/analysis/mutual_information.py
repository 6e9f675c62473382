"""Mutual information by MINE (Belghazi et al., 2018): fitted on one half of the texts, read off the other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import fmean, median, stdev

import torch
from torch import Tensor

from repcl.analysis.critic import new_critic
from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.analysis.fitting import Watch, bound, fit_critic, group_bound
from repcl.analysis.pairs import Paired

FEWEST_TEXTS = 200  # so that a half has a hundred
FEWEST_OF_CLASS = 20  # so that the smallest part, a tenth, still has pairs of one class
JUDGING_SHARE = 0.2
BUDGET = 100_000  # independent pairs that are scored for a value


@dataclass(frozen=True)
class MutualInformation:
    """An estimate in nats, beside what it cannot exceed.

    Attributes:
        value: median over fits, of which now and then one falls nats below the others; None with a note
            where there are too few texts.
        spread: standard deviation over fits.
        info_nce: a second opinion, InfoNCE's bound of the same critics, which cannot exceed its ceiling.
        texts: that a value was read off.
        text_ceiling: ln of them, beyond which no estimate can be trusted.
        class_ceiling: ln of the number of classes, where the value is about classes.
        steps: of the fitting curve.
        curve: what the value would be, had the fits ended at those steps.
        fitted_curve: the bound on the texts fitted on; what is above `curve` is over-fitting.
        note: why there is no value.
    """

    value: float | None
    spread: float | None
    info_nce: float | None
    info_nce_ceiling: float | None
    texts: int
    text_ceiling: float
    class_ceiling: float | None = None
    steps: Sequence[int] = ()
    curve: Sequence[float] = ()
    fitted_curve: Sequence[float] = ()
    note: str = ""


def input_information(
    inputs: Tensor, representations: Tensor, settings: EstimatorSettings
) -> MutualInformation:
    """I(X;Z): what representations keep of the inputs; infinite in truth where Z is computed from X."""
    return estimate(Paired(inputs.float(), representations.float()), settings)


def class_information(
    representations: Tensor, labels: Tensor, settings: EstimatorSettings
) -> MutualInformation:
    """I(Z;Y): what representations say about classes, at most ln of their number."""
    classes = torch.tensor(sorted(set(labels.tolist())))
    indicators = (labels[:, None] == classes).float()
    found = estimate(Paired(representations.float(), indicators), settings)
    return replace(found, class_ceiling=log(len(classes)))


def pair_information(
    representations: Tensor, labels: Tensor, settings: EstimatorSettings
) -> MutualInformation:
    """I(Z;Z+): what two texts of a class share; at most ln of the number of classes if only the class.

    Texts of classes too small to have pairs everywhere are left out.
    """
    sizes = Counter(labels.tolist())
    is_used = torch.tensor([sizes[label] >= FEWEST_OF_CLASS for label in labels.tolist()], dtype=torch.bool)
    rows, labels = representations[is_used].float(), labels[is_used]
    found = estimate(Paired(rows, rows, labels), settings)
    if found.value is None:
        return replace(found, note=f"{found.note} in classes of at least {FEWEST_OF_CLASS}")
    return replace(found, class_ceiling=log(len(set(labels.tolist()))))


def estimate(pairs: Paired, settings: EstimatorSettings) -> MutualInformation:
    """The median over critics and halves, or a note where that would measure nothing."""
    texts = len(pairs) // 2 if settings.is_held_out else len(pairs)
    ceiling = log(max(texts, 1))
    if len(pairs) < FEWEST_TEXTS:
        note = f"too few texts: {len(pairs)}, an estimate needs {FEWEST_TEXTS}"
        return MutualInformation(None, None, None, None, texts, ceiling, note=note)
    fits = [
        _fit(fitted, reported, settings, seed=2 * critic + index)
        for critic in range(settings.critics)
        for index, (fitted, reported) in enumerate(_roles(pairs, settings, seed=critic))
    ]
    values = [one.value for one in fits]
    steps = max((one.steps for one in fits), key=len)
    return MutualInformation(
        value=median(values),
        spread=stdev(values) if len(values) > 1 else None,
        info_nce=fmean(one.info_nce for one in fits),
        info_nce_ceiling=fits[0].info_nce_ceiling,
        texts=texts,
        text_ceiling=ceiling,
        steps=steps,
        curve=[median(_held(one.curve, look) for one in fits) for look in range(len(steps))],
        fitted_curve=[median(_held(one.fitted_curve, look) for one in fits) for look in range(len(steps))],
    )


@dataclass(frozen=True)
class _Fit:
    value: float
    info_nce: float
    info_nce_ceiling: float
    steps: Sequence[int]
    curve: Sequence[float]
    fitted_curve: Sequence[float]


def _roles(pairs: Paired, settings: EstimatorSettings, *, seed: int) -> Iterator[tuple[Paired, Paired]]:
    """What is fitted on and what is reported on, both ways round."""
    if not settings.is_held_out:
        yield pairs, pairs
        return
    one, other = pairs.split(0.5, torch.Generator().manual_seed(seed))
    yield one, other
    yield other, one


def _fit(fitted: Paired, reported: Paired, settings: EstimatorSettings, *, seed: int) -> _Fit:
    generator, looking = (torch.Generator().manual_seed(number) for number in (seed, seed + 1_000_000))
    judged, trained = None, fitted
    if settings.patience is not None:
        judged, trained = fitted.split(JUDGING_SHARE, generator)
        judged = judged.standardized(trained)
    reported, trained = reported.standardized(trained), trained.standardized(trained)
    critic = new_critic(trained.left.shape[1], trained.right.shape[1], settings.hidden, seed=seed)
    watch = Watch(critic, trained, judged, reported, settings, looking)
    fit_critic(critic, lambda: trained.draw(settings.batch_size, generator), settings, generator, watch)
    critic.load_state_dict(watch.best)
    value = bound(critic, reported, looking, budget=BUDGET, how=settings.partners)
    return _Fit(value, *group_bound(critic, reported, looking), watch.steps, watch.curve, watch.fitted_curve)


def _held(curve: Sequence[float], look: int) -> float:
    """The value at a look; a fit that has ended keeps its last."""
    return curve[min(look, len(curve) - 1)]
