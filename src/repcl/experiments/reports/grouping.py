"""What a report is made of: the finished runs of a folder, each read once, by benchmark and method."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from repcl.evaluation import (
    LastAnswers,
    Summary,
    TestedExample,
    class_forgetting,
    last_answers,
    summarize_percents,
    summarize_tasks,
)
from repcl.experiments.paper.numbers import MAIN_BENCHMARKS, load_paper
from repcl.experiments.representations.analysis import RunAnalysis
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.store import RunStore
from repcl.experiments.runs.wrong_texts import WrongText
from repcl.methods import METHODS

Metric = Literal["final_accuracy", "forgetting_rate", "average_incremental_accuracy"]
Track = Literal["strict", "statistics", "all data"]
INCOMPLETE, CAPPED = "†", "‡"

TRACKS: Mapping[Track, str] = {
    "strict": "strict: a few texts per class",
    "statistics": "statistics: numbers from all texts",
    "all data": "all texts",
}
"""What a method of each track keeps of old texts."""


@dataclass(frozen=True)
class Run:
    """One finished run.

    Attributes:
        analysis: None where it was not made.
        forgetting: drop of each class from its best earlier accuracy; empty without stored predictions.
        last_guesses: for each class, what its test texts are taken for in the end. Only the counts
            are kept: the predictions of a large grid do not fit in memory.
        last_answers: which test texts are answered right in the end; None without stored predictions.
        wrong_texts: some texts with a wrong answer in the end; empty in runs of earlier versions.
        has_predictions: whether they are stored, so that every metric was computed from them again.
    """

    result: Result
    analysis: RunAnalysis | None
    forgetting: Mapping[str, float]
    last_guesses: Mapping[str, Counter[str]]
    last_answers: LastAnswers | None
    wrong_texts: Sequence[WrongText]
    has_predictions: bool


@dataclass(frozen=True)
class MethodRuns:
    """All rounds of one method, or of one variant of it, on one benchmark."""

    name: str
    runs: tuple[Run, ...]

    @property
    def results(self) -> list[Result]:
        """The results by round."""
        return [run.result for run in self.runs]

    @property
    def tasks(self) -> int:
        """How many tasks were learned."""
        return max(len(result.accuracy_after_task) for result in self.results)

    @property
    def is_tested_at_the_end_only(self) -> bool:
        """Whether nothing is known about any earlier moment, as for the upper bound."""
        earlier = [accuracy for result in self.results for accuracy in result.accuracy_after_task[:-1]]
        return bool(earlier) and all(accuracy is None for accuracy in earlier)

    def percents(self, metric: Metric) -> dict[int, float]:
        """A metric by round, in percent, for the rounds that have it."""
        values = {result.round: getattr(result, metric) for result in self.results}
        return {round: 100 * value for round, value in values.items() if value is not None}

    def summary(self, metric: Metric) -> Summary | None:
        """A metric over rounds, in percent."""
        return summarize_percents(getattr(result, metric) for result in self.results)

    def accuracies_after_task(self) -> list[Summary | None]:
        """The accuracy over all classes seen so far, after each task."""
        return summarize_tasks([result.accuracy_after_task for result in self.results])

    @property
    def statistics_bytes(self) -> int:
        """Bytes kept that were computed from old data."""
        return max(result.memory.statistics_bytes for result in self.results)

    @property
    def keeps_everything(self) -> bool:
        """Whether all training data stay at hand, as for the upper bound."""
        method = METHODS.get(self.results[0].method)
        return method is not None and method.keeps_everything

    @property
    def track(self) -> Track:
        """What it is compared with: methods that keep as much of old texts."""
        if self.keeps_everything:
            return "all data"
        return "statistics" if self.statistics_bytes else "strict"

    @property
    def mark(self) -> str:
        """The signs for incomplete and capped data."""
        incomplete = any(not result.data.complete for result in self.results)
        capped = any(result.data.capped for result in self.results)
        return INCOMPLETE * incomplete + CAPPED * capped

    @property
    def is_mixed(self) -> bool:
        """Whether rounds were run with different settings or data, so that their mean means little."""
        made = [(result.settings, _protocol(result)) for result in self.results]
        return any(other != made[0] for other in made)

    def comparable_percents(self, other: "MethodRuns", metric: Metric) -> dict[int, float]:
        """A metric by round, for the rounds in which the other method learned the same classes alike."""
        alike = {run.result.round for run, _ in self.comparable_runs(other)}
        return {round: value for round, value in self.percents(metric).items() if round in alike}

    def comparable_runs(self, other: "MethodRuns") -> list[tuple[Run, Run]]:
        """The rounds in which the other method learned the same classes alike, each with the other's."""
        theirs = {run.result.round: run for run in other.runs}
        shared = [(run, theirs[run.result.round]) for run in self.runs if run.result.round in theirs]
        return [(run, twin) for run, twin in shared if _is_comparable(run.result, twin.result)]


@dataclass(frozen=True)
class BenchmarkRuns:
    """All methods that were run on one benchmark."""

    name: str
    methods: tuple[MethodRuns, ...]

    @property
    def results(self) -> list[Result]:
        """All results."""
        return [result for method in self.methods for result in method.results]

    @property
    def tasks(self) -> int:
        """How many tasks were learned."""
        return max(method.tasks for method in self.methods)

    def find(self, name: str) -> MethodRuns | None:
        """The runs of a method, if there are any."""
        return next((method for method in self.methods if method.name == name), None)


def load_runs(folder: Path | RunStore) -> list[BenchmarkRuns]:
    """Read all finished runs below a folder; benchmarks and methods stand in the paper's order.

    The metrics of each are checked against its predictions, where these are stored.
    """
    runs = sorted(
        _read(folder if isinstance(folder, RunStore) else RunStore(folder)),
        key=lambda run: (_benchmark_order(run.result), _row_order(run.result), run.result.round),
    )
    return [
        BenchmarkRuns(
            benchmark,
            tuple(
                MethodRuns(name, tuple(group))
                for name, group in groupby(of_benchmark, key=lambda run: run.result.row)
            ),
        )
        for benchmark, of_benchmark in groupby(runs, key=lambda run: run.result.benchmark)
    ]


def row_names(benchmarks: Sequence[BenchmarkRuns]) -> list[str]:
    """The names of all rows, in the order of `load_runs`."""
    first = {method.name: method.results[0] for runs in benchmarks for method in runs.methods}
    return sorted(first, key=lambda name: _row_order(first[name]))


def _read(store: RunStore) -> Iterator[Run]:
    for stored in store.runs():
        tested = stored.predictions()
        if stored.has_predictions:
            stored.verify(tested)
        forgetting = class_forgetting(tested)
        yield Run(
            stored.result,
            stored.analysis(),
            forgetting,
            _last_guesses(tested),
            last_answers(tested),
            stored.wrong_texts(),
            stored.has_predictions,
        )


def _last_guesses(tested: Sequence[TestedExample]) -> dict[str, Counter[str]]:
    """What the test texts of each class are taken for in the end."""
    guesses: dict[str, Counter[str]] = {}
    for example in tested:
        guess = example.predicted[-1]
        if guess is not None:
            guesses.setdefault(example.label, Counter())[guess] += 1
    return guesses


def _benchmark_order(result: Result) -> tuple[int, str]:
    """The paper's benchmarks in its order, then all others."""
    ranks = {name: rank for rank, name in enumerate(MAIN_BENCHMARKS)}
    return ranks.get(result.benchmark, len(ranks)), result.benchmark


def _row_order(result: Result) -> tuple[int, str, str]:
    """The lower bound, the paper's methods in its order, all others, the upper bound; variants follow."""
    order = ["sequential", *load_paper().main["fewrel"]]
    ranks = {name: rank for rank, name in enumerate(order)} | {"joint": len(order) + 1}
    return ranks.get(result.method, len(order)), result.method, result.variant or ""


def _protocol(result: Result) -> tuple[object, ...]:
    """What all rounds must have in common."""
    data, tasks = result.data, len(result.class_order)
    return result.encoder, result.precision, tasks, data.classes, data.complete, data.capped


def _is_comparable(result: Result, other: Result) -> bool:
    """Whether two methods learned the same in one round, from the same files."""
    ours, theirs = result.data, other.data
    same_texts = (ours.files, ours.train, ours.test) == (theirs.files, theirs.train, theirs.test)
    same_classes = result.class_order == other.class_order
    return same_texts and same_classes and _protocol(result) == _protocol(other)
