"""The search for settings: trials on the first three tasks, scored on held-out training texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, Protocol

from repcl.benchmarks import StreamSpec, load_stream
from repcl.data import Example, Provenance, Task, TaskStream, round_seed
from repcl.data.names import inside
from repcl.errors import InvalidData, RepclError
from repcl.experiments.runs.observers import Event, Listener
from repcl.experiments.runs.pool import Failure, perform_all
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import ResolvedRun, RunOptions, RunPlan, RunSpec
from repcl.experiments.tuning.space import Space, fit_space, load_space
from repcl.experiments.tuning.trials import Trial, TrialStore, draw_settings
from repcl.files import write_whole
from repcl.methods.variants import split_variant, variant_settings

TASKS = 3
HELD_OUT = 4  # one distinct text of a class in so many


class SearchFailed(RepclError):
    """The preset's own settings could not be tried, so that there is nothing to compare with."""


class Engine(Protocol):
    """Whatever makes runs, on this machine or on a cluster."""

    def __call__(
        self, runs: Sequence[ResolvedRun], *, workers: int, listener: Listener
    ) -> list[Result | Failure]:
        """Make all runs; outcomes in the order of the runs."""


@dataclass(frozen=True)
class TrialSpec(RunSpec):
    """A run of a trial: it is handed the first three tasks only, whoever makes it."""

    trial: int = 0

    def load_stream(self) -> TaskStream:
        """The first three tasks, tested on held-out training texts."""
        return self.stream if isinstance(self.stream, TaskStream) else _load_search_stream(self.stream)


TrialListener = Callable[[int, int, Event], None]
"""Is told the number of a trial, its round, and what happened."""


@dataclass(frozen=True)
class Search:
    """Everything that decides what a search finds.

    Attributes:
        method: its name, with `@variant` if wanted.
        benchmark: the name of the data.
        streams: the data of each round.
        options: how trials are made; the settings among them are fixed.
        plans: the run of the preset's own settings in each round.
        space: what is searched.
        texts: number of held-out texts of each round.
        fingerprints: of the plans with their data.
        folder: where trials are kept.
    """

    method: str
    benchmark: str
    streams: tuple[StreamSpec, ...]
    options: RunOptions
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

    def trial_specs(self, trial: int, settings: Mapping[str, Any]) -> list[TrialSpec]:
        """The runs of a trial, one per round."""
        options = replace(
            self.options,
            settings={**self.options.settings, **settings},
            out=self.folder / f"trial-{trial:03d}",
        )
        return [TrialSpec(self.method, stream, options, trial) for stream in self.streams]

    def standard_error(self, trial: Trial) -> float:
        """How far chance moves a trial's score: the binomial standard error of its mean accuracy."""
        pairs = zip(trial.accuracies, self.texts, strict=True)
        return sqrt(sum(share * (1 - share) / texts for share, texts in pairs)) / len(self.texts)


def plan_search(
    method: str,
    streams: Sequence[StreamSpec],
    options: RunOptions,
    *,
    space: Path | None = None,
    out: Path,
) -> Search:
    """Settle a search before anything starts; whatever is wrong with it is found here.

    Args:
        method: its name, with `@variant` if wanted.
        streams: the data of each round.
        options: how trials are made; the settings among them are fixed.
        space: a file that says what to search, instead of the shipped table.
        out: folder for results.
    """
    name, variant = split_variant(method)
    runs = [TrialSpec(method, stream, options).resolve() for stream in streams]
    plans, benchmark, settings = [run.plan for run in runs], runs[0].benchmark, runs[0].plan.settings
    fixed = {*variant_settings(name, variant), *options.settings}
    return Search(
        method=method,
        benchmark=benchmark,
        streams=tuple(streams),
        options=options,
        plans=tuple(plans),
        space=fit_space(
            load_space(name, space, settings), name, settings, kind=runs[0].stream.kind, fixed=fixed
        ),
        texts=tuple(sum(len(task.test) for task in run.stream.tasks) for run in runs),
        fingerprints=tuple(run.fingerprint for run in runs),
        folder=inside(out, f"{method}-{benchmark}"),
    )


def run_search(
    search: Search,
    store: TrialStore,
    *,
    trials: int,
    workers: int = 1,
    engine: Engine,
    listener: TrialListener,
) -> list[Trial]:
    """Make trials until there are so many; those that are finished already are kept.

    Trials are drawn and run in groups. What a group tries depends on the groups before it only, so a search
    that was stopped resumes with the very runs that it was making.
    """
    done = store.trials()
    while len(done) < trials:
        first = len(done) // store.group * store.group
        numbers = range(first, min(first + store.group, trials))
        drawn = draw_settings(search.space, search.start, done[:first], numbers, search.rounds)
        waiting = [*zip(numbers, drawn, strict=True)][len(done) - first :]
        specs = [spec for number, settings in waiting for spec in search.trial_specs(number, settings)]
        outcomes = engine(
            [spec.resolve() for spec in specs], workers=workers, listener=partial(_pass_on, listener, specs)
        )
        size = len(search.streams)
        for index, (number, settings) in enumerate(waiting):
            own = outcomes[index * size : (index + 1) * size]
            trial = Trial(number, settings, _accuracies(own, search.folder, number))
            store.add(trial)
            done.append(trial)
    return done


def run_here(runs: Sequence[ResolvedRun], *, workers: int, listener: Listener) -> list[Result | Failure]:
    """Make the runs of trials on this machine."""
    return perform_all(runs, make_run, workers=workers, listener=listener)


def best_trial(trials: Sequence[Trial]) -> Trial:
    """The trial with the highest score; of equals the earliest, so only something better ousts the preset."""
    return max(trials, key=lambda trial: (-1.0 if trial.score is None else trial.score, -trial.number))


def search_stream(stream: TaskStream, tasks: int = TASKS) -> TaskStream:
    """The first tasks of a stream, three for a search, tested on a quarter of their own training texts.

    The stream's test texts and all later tasks are left behind. What is held out depends on the round only.
    """
    if len(stream.tasks) < tasks:
        raise InvalidData(
            f"A search needs {tasks} tasks, {stream.name} has {len(stream.tasks)}: "
            "choose a larger --tasks or other data."
        )
    first = stream.tasks[:tasks]
    held_out = choose_held_out(
        (example for task in first for example in task.train), round_seed(stream.round)
    )
    if not held_out:
        raise InvalidData(
            f"Nothing can be held out in the first {tasks} tasks of {stream.name}: "
            "no class has two different training texts; add texts."
        )
    notes = (f"The first {tasks} of {len(stream.tasks)} tasks, tested on held-out training texts.",)
    known = stream.provenance
    provenance = Provenance(known.files, complete=known.complete, capped=known.capped, notes=notes)
    divided = tuple(_divide(task, held_out) for task in first)
    return TaskStream(stream.name, stream.kind, divided, stream.round, provenance)


def choose_held_out(examples: Iterable[Example], seed: int) -> set[Example]:
    """A quarter of the distinct examples of each class, at least one where a class has two."""
    by_class: dict[str, dict[Example, None]] = {}
    for example in examples:
        by_class.setdefault(example.label, {})[example] = None
    draw = Random(seed)
    held_out: set[Example] = set()
    for distinct in by_class.values():
        if len(distinct) > 1:
            held_out.update(draw.sample(list(distinct), max(1, round(len(distinct) / HELD_OUT))))
    return held_out


def _divide(task: Task, held_out: set[Example]) -> Task:
    """Copies of one text stay together, so that none is both learned and tested."""
    train = [example for example in task.train if example not in held_out]
    test = list(dict.fromkeys(example for example in task.train if example in held_out))
    return Task(task.classes, train, test)


@lru_cache(maxsize=2)
def _load_search_stream(spec: StreamSpec) -> TaskStream:
    return search_stream(load_stream(spec))


def _pass_on(listener: TrialListener, specs: Sequence[TrialSpec], index: int, event: Event) -> None:
    spec = specs[index]
    listener(spec.trial, spec.stream.round, event)


def _accuracies(outcomes: Sequence[Result | Failure], folder: Path, number: int) -> tuple[float, ...]:
    """What a trial reached in each round; nothing, and the reason in a file, if one of its runs failed."""
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            log = folder / f"trial-{number:03d}.error.txt"
            write_whole(log, outcome.details.encode("utf-8", "backslashreplace"), durable=False)
            if number == 0:
                raise SearchFailed(f"The preset's own settings cannot be tried: {outcome.reason} (see {log})")
    reached = [outcome.final_accuracy for outcome in outcomes if isinstance(outcome, Result)]
    return tuple(value for value in reached if value is not None) if len(reached) == len(outcomes) else ()
