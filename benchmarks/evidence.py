"""The long runs behind docs/results.md and docs/beyond.md, in an order that is worth stopping at any moment.

    export REPCL_DATA=/path/to/data
    python benchmarks/evidence.py tables --list       # the runs that are missing, as commands
    python benchmarks/evidence.py tables --workers 2  # makes them; the same command again resumes
    python benchmarks/evidence.py study --workers 2
    make results

One round of every method comes before the second of any. In each round HWU64 comes before other benchmarks,
and learners that take seconds before those that are trained; so whatever is finished makes a whole table. A
duet is run with its parts: one training gives the rows `repcl`, `duet` and `duet@statistics`. A run has one
thread.

A run is skipped if `results/` holds the same run, by its fingerprint, with its predictions. Runs in progress
are kept in `--out`; each that ends is copied to `results/`, where a run made with other settings or without
predictions is replaced. Capped runs stand in `results/fifty`; the rows of `results/study-fast` say what RepCL
loses by `speed = "fast"`.

The study of RepCL changes several settings at once. With the unchanged run of round 8 its mixtures are 16.
In each round every change is made in two of four runs, and any two changes meet in four of the 16. So all 16
runs say something about each change, and `benchmarks/study_effects.py` tells them apart. They stand in
`results/study-mixed`, all other runs of the study in `results/study`.
"""

import argparse
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from repcl.benchmarks import StreamSpec
from repcl.cli.console import make_console
from repcl.cli.failures import forget_failures, list_failures
from repcl.cli.progress import GridProgress
from repcl.errors import MissingData, RepclError
from repcl.experiments.runs.companions import companions
from repcl.experiments.runs.observers import Tell
from repcl.experiments.runs.pool import Failure, perform_all
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import ResolvedRun, RunOptions, RunSpec
from repcl.experiments.runs.store import PREDICTIONS, RESULT, RunFolder, RunStore
from repcl.methods import relative_cost
from repcl.methods.repcl import RepCL
from repcl.presets import load_preset, parse_overrides

RESULTS = Path(__file__).parents[1] / "results"
OUT = Path("runs/evidence")

FROZEN = ("ncm", "lda", "refit", "instant", "instant@vote")
MAIN = ("fea", "duet", "joint", "sequential")
OTHERS = ("crl", "emar", "kdrk", "kcn", "kcn@paired", "rp_cre", "idbr", "crecl")
ABLATIONS = ("repcl@no-con", "repcl@no-xmlm", "repcl@no-adv", "repcl@mlm")
MEMORY = ("fea@memory-5", "duet@memory-5", "fea@memory-20", "duet@memory-20")
MIXTURES = (
    (5, "all-texts-xmlm weak-xmlm slow"),
    (5, "all-texts-xmlm weak-xmlm no-clean fast-momentum"),
    (5, "hidden-contrast three-steps slow"),
    (5, "hidden-contrast no-clean three-steps fast-momentum"),
    (6, "all-texts-xmlm three-steps fast-momentum"),
    (6, "all-texts-xmlm no-clean three-steps slow"),
    (6, "hidden-contrast weak-xmlm fast-momentum"),
    (6, "hidden-contrast weak-xmlm no-clean slow"),
    (7, "weak-xmlm three-steps fast-momentum slow"),
    (7, "weak-xmlm no-clean three-steps"),
    (7, "hidden-contrast all-texts-xmlm fast-momentum slow"),
    (7, "hidden-contrast all-texts-xmlm no-clean"),
    (8, "no-clean fast-momentum slow"),
    (8, "hidden-contrast all-texts-xmlm weak-xmlm three-steps"),
    (8, "hidden-contrast all-texts-xmlm weak-xmlm no-clean three-steps fast-momentum slow"),
)
STUDY_ROUNDS = (5, 6, 7, 8)
SLOW = "fea.learning_rate=2e-5"
FAST_ROUNDS = (*STUDY_ROUNDS, 9)


@dataclass(frozen=True)
class Wanted:
    """Methods that are wanted on a benchmark, in the order of their running.

    Attributes:
        rounds: which of them.
        folder: in `results/`, for what no other table may mix with.
        texts: of each class, training and test, at most; None takes all.
        settings: as `--set` takes them.
    """

    benchmark: str
    methods: tuple[str, ...]
    rounds: Sequence[int]
    folder: str = ""
    texts: tuple[int, int | None] | None = None
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One run to be made: a method of what is wanted, in one round."""

    wanted: Wanted
    method: str
    round: int

    @property
    def has_parts(self) -> bool:
        """Whether its training gives rows of other methods as well."""
        return self.method.partition("@")[0] == "duet"

    def stream(self) -> StreamSpec:
        """What it learns."""
        train, test = self.wanted.texts or (None, None)
        return StreamSpec(
            self.wanted.benchmark, self.round, max_train_per_class=train, max_test_per_class=test
        )

    def command(self, out: Path) -> str:
        """What makes the same run by hand."""
        words = ["repcl", "bench", "--benchmark", self.wanted.benchmark, "--method", self.method]
        words += ["--round", str(self.round)]
        if self.wanted.texts is not None:
            train, test = self.wanted.texts
            words += ["--max-train-per-class", str(train)]
            words += ["--max-test-per-class", str(test)] if test is not None else []
        for setting in self.wanted.settings:
            words += ["--set", setting]
        words += ["--with-parts"] if self.has_parts else []
        return shlex.join([*words, "--out", str(out)])

    def spec(self, out: Path) -> RunSpec:
        """The run, with its files below a folder."""
        name = self.method.partition("@")[0]
        options = RunOptions(
            settings=parse_overrides(self.wanted.settings, [name], load_preset("cpu"))[name],
            out=out / self.wanted.folder,
            command=self.command(OUT / self.wanted.folder),  # results are published: no path of a machine
            with_parts=self.has_parts,
        )
        return RunSpec(self.method, self.stream(), options)


def _capped(benchmark: str, methods: tuple[str, ...], rounds: int, test: int | None = None) -> Wanted:
    return Wanted(benchmark, methods, range(rounds), "fifty", (50, test))


def _mixture(number: int, round: int, names: str) -> Wanted:
    """RepCL with the settings of several variants at once."""
    changed = {key: value for name in names.split() for key, value in RepCL.variants[name].items()}
    settings = tuple(f"{key}={value}" for key, value in changed.items())
    return Wanted("hwu64", ("repcl",), (round,), f"study-mixed/{number}", settings=settings)


LISTS: dict[str, tuple[Wanted, ...]] = {
    "tables": (
        Wanted("hwu64", (*FROZEN, *MAIN), range(5)),
        Wanted("hwu64", OTHERS, range(3)),
        Wanted("hwu64", ABLATIONS, range(3)),
        Wanted("hwu64", MEMORY, range(2)),
        Wanted("banking77", FROZEN, range(3)),
        Wanted("clinc150", FROZEN, range(3)),
        _capped("fewrel", (*FROZEN, "first_session", "fea", "duet", "crl", "joint"), 3, test=50),
        _capped(
            "fewrel",
            ("emar", "rp_cre", "crecl", "aca", "kdrk", "kcn@paired", "idbr", "sequential"),
            1,
            test=50,
        ),
        _capped("maven", (*FROZEN, "first_session", "fea", "duet", "crl", "joint"), 2, test=50),
        _capped("maven", ("emar", "rp_cre", "crecl", "sequential"), 1, test=50),
        _capped("banking77", (*FROZEN, "fea", "duet", "joint"), 2),
        _capped("clinc150", (*FROZEN, "fea", "duet", "joint"), 2),
    ),
    "study": (
        *(_mixture(number, round, names) for number, (round, names) in enumerate(MIXTURES, start=1)),
        Wanted("hwu64", ("repcl", "fea", "repcl@long"), STUDY_ROUNDS, "study"),
        Wanted("hwu64", ("repcl@draw-1", "repcl@draw-2"), STUDY_ROUNDS[:1], "study"),
        Wanted("hwu64", ("fea",), STUDY_ROUNDS, "study-slow", settings=(SLOW,)),
        Wanted("hwu64", ("repcl",), FAST_ROUNDS[-1:], "study"),
        Wanted("hwu64", ("repcl",), FAST_ROUNDS, "study-fast", settings=("speed=fast",)),
    ),
}


def plan(wanted: Iterable[Wanted]) -> list[Job]:
    """All runs: round by round, in each the learners that take seconds first, then as they are listed."""
    jobs = [Job(one, method, round) for one in wanted for round in one.rounds for method in one.methods]
    # sorting keeps the order of what is equal
    return sorted(jobs, key=lambda job: (job.round, job.method not in FROZEN))


def rows_of(run: ResolvedRun) -> list[ResolvedRun]:
    """The rows that come out of a run, its own and those made beside it, wherever their files may be."""
    bare = replace(run.spec, options=replace(run.options, out=None)).resolve()
    return [bare, *(other.run for other in companions(bare))]


def is_stored(row: ResolvedRun, results: Path) -> bool:
    """Whether a folder of results holds the very run, with its predictions."""
    found = RunStore(_place(row, results).path).runs()
    return any(one.result.fingerprint == row.fingerprint and one.has_predictions for one in found)


def store(row: ResolvedRun, out: Path, results: Path) -> None:
    """Copy a finished run to the results; whatever is there of another run goes."""
    made, place = _place(row, out), _place(row, results)
    files = {name: (made.path / name).read_bytes() for name in (PREDICTIONS, RESULT)}
    place.start_over()
    place.path.mkdir(parents=True, exist_ok=True)
    place.lay_down(files)


def _place(row: ResolvedRun, folder: Path) -> RunFolder:
    return RunStore(folder).folder(row.benchmark, row.plan.row, row.plan.round)


def waiting(
    jobs: Iterable[Job], out: Path, results: Path, tell: Callable[[str], None]
) -> Iterator[ResolvedRun]:
    """The runs that are not stored yet; of data that are not at hand, one line is told."""
    told: set[str] = set()
    for job in jobs:
        try:
            run = job.spec(out).resolve()
        except MissingData as error:
            if str(error) not in told:
                tell(f"Skipped: {error}")
            told.add(str(error))
            continue
        if not all(is_stored(row, results / job.wanted.folder) for row in rows_of(run)):
            yield run


def is_chosen(job: Job, options: argparse.Namespace) -> bool:
    """Whether a run is among those that the options name; an option that is not given names all."""
    named = (
        ({job.wanted.benchmark}, options.benchmark),
        (names_of(job.method), options.method),
        ({job.round}, options.round),
    )
    return all(not names or not values.isdisjoint(names) for values, names in named)


def names_of(method: str) -> set[str]:
    """The rows that a method's run makes: its own, and those beside a duet."""
    beside = {"duet@statistics"} if method == "duet" else set()
    return {method, method.replace("duet", "repcl", 1)} | beside


def make_and_store(run: ResolvedRun, tell: Tell, *, out: Path, results: Path) -> Result:
    """Make a run, or resume it, and copy its rows to the results."""
    result, made = make_run(run, tell), run.options.out or out
    for row in rows_of(run):
        if _place(row, made).is_finished:
            store(row, made, results / made.relative_to(out))
    return result


def make_all(runs: Sequence[ResolvedRun], out: Path, console: Console, workers: int) -> list[Failure]:
    """Make the runs, some at a time, with a live overview."""
    perform = partial(make_and_store, out=out, results=RESULTS)
    with GridProgress([run.title for run in runs], console) as progress:
        outcomes = perform_all(runs, perform, workers=workers, listener=progress.hear)
    forget_failures(zip(runs, outcomes, strict=True))
    return [outcome for outcome in outcomes if isinstance(outcome, Failure)]


def main() -> None:
    """Run what is missing, or list it."""
    options, console = read_options(), make_console()
    jobs = [job for job in plan(LISTS[options.what]) if is_chosen(job, options)]
    try:
        runs = list(waiting(jobs, options.out, RESULTS, lambda line: console.print(line, highlight=False)))
    except RepclError as error:
        raise SystemExit(str(error)) from None
    work = sum(relative_cost(run.plan.row) for run in runs)
    console.print(f"{len(runs)} of {len(jobs)} runs to make, the work of {work:.0f} runs of FEA.")
    if options.list:
        for run in runs:
            console.print(f"{run.options.command}", highlight=False, soft_wrap=True)
        return
    failures = make_all(runs, options.out, console, options.workers)
    list_failures(failures, console)
    if failures:
        raise SystemExit(1)


def read_options() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=LISTS)
    parser.add_argument("--benchmark", action="append", help="only this one; repeatable")
    parser.add_argument("--method", action="append", help="only this one; repeatable")
    parser.add_argument("--round", action="append", type=int, help="only this one; repeatable")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time, each with one thread")
    parser.add_argument("--out", type=Path, default=OUT, help="for runs in progress")
    parser.add_argument("--list", action="store_true", help="say what is to be run, and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("Stopped; the same command resumes.") from None
