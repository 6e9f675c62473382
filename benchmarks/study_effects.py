"""What each change to RepCL does, told apart from runs in which several were changed at once.

    python benchmarks/evidence.py study --workers 2
    python benchmarks/study_effects.py

The accuracy of a run is taken for that of its round, plus the effect of each change made in it; least squares
find rounds and effects together. This assumes that changes do not depend on each other. Where two of them do,
it shows in the noise, not in the effect of any single change: that is how the mixtures were chosen.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from repcl.evaluation.statistics import holm
from repcl.experiments.reports.formats import to_markdown
from repcl.experiments.reports.table import Column, Table, number, probability, word
from repcl.experiments.runs.result import Result, read_result
from repcl.methods.repcl import RepCL

RESULTS = Path(__file__).parents[1] / "results"
CHANGES = (
    "hidden-contrast",
    "all-texts-xmlm",
    "weak-xmlm",
    "no-clean",
    "three-steps",
    "fast-momentum",
    "slow",
    "long",
)
MEASURES = {
    "final accuracy": "final_accuracy",
    "average over tasks": "average_incremental_accuracy",
}


@dataclass(frozen=True)
class Trial:
    """One run: its round, what was changed in it, and what it reached in percent."""

    round: int
    changes: Collection[str]
    reached: float


@dataclass(frozen=True)
class Effect:
    """What a change adds, in points.

    Attributes:
        margin: of the interval that holds the true effect in 95 of 100 cases.
        p: how often chance alone would show as much.
    """

    points: float
    margin: float
    p: float


@dataclass(frozen=True)
class Fit:
    """Effects by change, and the standard deviation of what they leave unexplained."""

    effects: Mapping[str, Effect]
    noise: float


def fit_effects(trials: Sequence[Trial]) -> Fit:
    """Least squares over all trials: one number a round, one a change."""
    rounds = sorted({trial.round for trial in trials})
    changes = [name for name in CHANGES if any(name in trial.changes for trial in trials)]
    design = np.array(
        [
            [*(trial.round == round for round in rounds), *(name in trial.changes for name in changes)]
            for trial in trials
        ],
        dtype=float,
    )
    reached = np.array([trial.reached for trial in trials])
    found, _, rank, _ = np.linalg.lstsq(design, reached, rcond=None)
    spare = len(trials) - rank
    if rank < design.shape[1] or spare < 1:
        raise SystemExit(
            f"Expected more runs than {design.shape[1]} to tell the changes apart, found {len(trials)}."
        )
    noise = math.sqrt(np.sum((reached - design @ found) ** 2) / spare)
    errors = noise * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    effects = {
        name: Effect(
            points=float(points),
            margin=float(stats.t.ppf(0.975, spare) * error),
            p=float(2 * stats.t.sf(abs(points) / error, spare)),
        )
        for name, points, error in zip(changes, found[len(rounds) :], errors[len(rounds) :], strict=True)
    }
    return Fit(effects, noise)


def changes_in(settings: Mapping[str, Any]) -> set[str]:
    """The changes that a run's settings show."""
    return {name for name in CHANGES if RepCL.variants[name].items() <= settings.items()}


def study_results(results: Path) -> list[Result]:
    """All runs of RepCL in the study that were trained exactly."""
    paths = [
        *results.glob("study/hwu64/repcl*/*/result.json"),
        *results.glob("study-mixed/*/hwu64/repcl/*/result.json"),
    ]
    return [read_result(path) for path in sorted(paths)]


def effects_table(found: Sequence[Result]) -> Table:
    """A row for each change, for every measure its effect and whether that could be chance."""
    fits = {
        title: fit_effects(
            [Trial(run.round, changes_in(run.settings), 100 * getattr(run, measure)) for run in found]
        )
        for title, measure in MEASURES.items()
    }
    first = next(iter(fits.values()))
    corrected = {
        title: dict(zip(fit.effects, holm([effect.p for effect in fit.effects.values()]), strict=True))
        for title, fit in fits.items()
    }
    columns = [Column("change", is_text=True)]
    for title in fits:
        columns += [Column(title), Column("± (95 %)"), Column("p"), Column("p (Holm)")]
    rows = [
        [
            word(name),
            *(
                cell
                for title, fit in fits.items()
                for cell in (
                    number(fit.effects[name].points, 2),
                    number(fit.effects[name].margin, 2),
                    probability(fit.effects[name].p),
                    probability(corrected[title][name]),
                )
            ),
        ]
        for name in first.effects
    ]
    noise = ", ".join(f"{fit.noise:.2f} ({title})" for title, fit in fits.items())
    return Table(
        "study-effects",
        f"What each change adds to RepCL on HWU64, in points, from {len(found)} runs",
        columns,
        [rows],
        [f"Standard deviation of a run around what rounds and changes explain: {noise}."],
    )


if __name__ == "__main__":
    print(to_markdown(effects_table(study_results(RESULTS))))
