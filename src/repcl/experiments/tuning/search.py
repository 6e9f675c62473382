"""The search for settings: trials on the first three tasks, scored on held-out training texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

from repcl.data import TaskStream
from repcl.errors import RepclError
from repcl.experiments.events import Event, Listener
from repcl.experiments.failure import Failure
from repcl.experiments.first_tasks import search_stream
from repcl.experiments.grid import run_grid
from repcl.experiments.plan import RunPlan, split_variant, variant_settings
from repcl.experiments.result import Result
from repcl.experiments.run_request import RunRequest
from repcl.experiments.search_space import Space, fit_space, load_space
from repcl.experiments.trials import Trial, TrialStore, draw_settings


class SearchFailed(RepclError):
    """The preset's own settings could not be tried, so that there is nothing to compare with."""


class Engine(Protocol):
    """Whatever makes runs: `run_grid`, or one with its signature."""

    def __call__(
        self, requests: Sequence[RunRequest], *, workers: int, listener: Listener
    ) -> list[Result | Failure]:
        """Make all runs; outcomes in the order of the requests."""


@dataclass(frozen=True)
class TrialRequest(RunRequest):
    """A run of a trial: it is handed the first three tasks only, whoever makes it."""

    trial: int = 0

    def load_stream(self) -> TaskStream:
        """The first three tasks, tested on held-out training texts."""
        return search_stream(super().load_stream())

    @property
    def title(self) -> str:
        """How the run is called in overviews."""
        return trial_title(self.trial, self.stream["round"])


TrialListener = Callable[[TrialRequest, Event], None]


def trial_title(trial: int, round_number: int) -> str:
    """How a trial's run is called in overviews."""
    return f"trial {trial} round {round_number}"


@dataclass(frozen=True)
class Search:
    """Everything that decides what a search finds.

    Attributes:
        method: its name, with `@variant` if wanted.
        benchmark: the name of the data.
        streams: the arguments of `load_benchmark` for each round.
        options: the other arguments of `run_experiment`; `settings` among them are fixed.
        plans: the run of the preset's own settings in each round.
        space: what is searched.
        texts: number of held-out texts of each round.
        fingerprints: of the plans with their data.
        folder: where trials are kept.
    """

    method: str
    benchmark: str
    streams: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    plans: tuple[RunPlan, ...]
    space: Space
    texts: tuple[int, ...]
    fingerprints: tuple[str, ...]
    folder: Path

    @property
    def rounds(self) -> list[int]:
        """The rounds over which a score is the mean."""
        return [plan.round for plan in self.plans]

    @property
    def start(self) -> dict[str, Any]:
        """The preset's own values of what is searched."""
        return {key: self.plans[0].settings[key] for key in self.space}

    @property
    def identity(self) -> dict[str, Any]:
        """What makes it another search: all but the number of trials and of workers."""
        space = {key: asdict(dimension) for key, dimension in self.space.items()}
        return {"runs": self.fingerprints, "space": space}

    def requests(self, trial: int, settings: Mapping[str, Any]) -> list[TrialRequest]:
        """The runs of a trial, one a round."""
        chosen = {**self.options["settings"], **settings}
        options = {**self.options, "settings": chosen, "out": self.folder / f"trial-{trial:03d}"}
        return [TrialRequest(self.method, stream, options, trial) for stream in self.streams]

    def standard_error(self, trial: Trial) -> float:
        """How far chance moves a trial's score: the binomial standard error of its mean accuracy."""
        pairs = zip(trial.accuracies, self.texts, strict=True)
        return sqrt(sum(share * (1 - share) / texts for share, texts in pairs)) / len(self.texts)


def plan_search(
    method: str,
    streams: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    *,
    space: Path | None = None,
    out: Path,
) -> Search:
    """Settle a search before anything starts; whatever is wrong with it is found here.

    Args:
        method: its name, with `@variant` if wanted.
        streams: the arguments of `load_benchmark` for each round.
        options: `encoder`, `preset`, `settings` (fixed ones) and the like for `run_experiment`.
        space: a file that says what to search, instead of the shipped table.
        out: folder for results.
    """
    name, variant = split_variant(method)
    requests = [TrialRequest(method, stream, options) for stream in streams]
    loaded = [request.load_stream() for request in requests]
    plans = [request.plan(stream) for request, stream in zip(requests, loaded, strict=True)]
    fixed = {*variant_settings(name, variant), *options["settings"]}
    return Search(
        method=method,
        benchmark=loaded[0].name,
        streams=tuple(streams),
        options=options,
        plans=tuple(plans),
        space=fit_space(load_space(name, space), name, plans[0].settings, fixed),
        texts=tuple(sum(len(task.test) for task in stream.tasks) for stream in loaded),
        fingerprints=tuple(plan.fingerprint(stream) for plan, stream in zip(plans, loaded, strict=True)),
        folder=out / f"{method}-{loaded[0].name}",
    )


def run_search(
    search: Search,
    store: TrialStore,
    *,
    trials: int,
    workers: int = 1,
    engine: Engine = run_grid,
    listener: TrialListener,
) -> list[Trial]:
    """Make trials until there are so many in all; those that are finished already are kept.

    Trials are drawn and run in groups. What a group tries depends on the groups before it only, so a search
    that was stopped goes on with the very runs that it was making.
    """
    done = store.trials()
    while len(done) < trials:
        first = len(done) // store.group * store.group
        numbers = range(first, min(first + store.group, trials))
        drawn = draw_settings(search.space, search.start, done[:first], numbers, search.rounds)
        waiting = [*zip(numbers, drawn, strict=True)][len(done) - first :]
        requests = [request for number, settings in waiting for request in search.requests(number, settings)]
        outcomes = engine(requests, workers=workers, listener=partial(_pass_on, listener, requests))
        size = len(search.streams)
        for place, (number, settings) in enumerate(waiting):
            own = outcomes[place * size : (place + 1) * size]
            trial = Trial(number, settings, _accuracies(own, search.folder, number))
            store.add(trial)
            done.append(trial)
    return done


def best_trial(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest score; of equals the earliest, so only something better ousts the preset."""
    return max(trials, key=lambda trial: (-1.0 if trial.score is None else trial.score, -trial.number))


def _pass_on(listener: TrialListener, requests: Sequence[TrialRequest], run: int, event: Event) -> None:
    listener(requests[run], event)


def _accuracies(outcomes: Sequence[Result | Failure], folder: Path, number: int) -> tuple[float, ...]:
    """What a trial reached in each round; nothing, and the reason in a file, if one of its runs failed."""
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            log = folder / f"trial-{number:03d}.error.txt"
            log.write_text(outcome.details, encoding="utf-8")
            if number == 0:
                raise SearchFailed(f"The preset's own settings cannot be tried: {outcome.reason} (see {log})")
    reached = [outcome.final_accuracy for outcome in outcomes if isinstance(outcome, Result)]
    return tuple(value for value in reached if value is not None) if len(reached) == len(outcomes) else ()
