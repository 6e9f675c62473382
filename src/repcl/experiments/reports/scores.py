"""The tables of scores: by method with the paper's values beside ours, by benchmark, by task and by class."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from repcl.experiments.paper.numbers import Paper, is_papers_encoder
from repcl.experiments.reports.grouping import CAPPED, INCOMPLETE, TRACKS, BenchmarkRuns, MethodRuns, Track
from repcl.experiments.reports.table import (
    Cell,
    Column,
    Row,
    Table,
    bytes_text,
    count,
    interval,
    mark_best,
    mean_and_spread,
    mean_only,
    missing,
    number,
    padded,
    word,
)
from repcl.experiments.runs.result import Result

PAPERS_MEMORY, PAPERS_PRESET = 10, "paper"
ACCURACY = 3  # the column that the best value is marked in
WORST = 10


def results_table(runs: BenchmarkRuns, paper: Paper) -> Table:
    """The scores over rounds of every method that was run, by track."""
    with_paper = runs.name in paper.main
    columns = [
        Column("method", is_text=True),
        Column("track", ("track", "statistics bytes"), is_text=True, is_detail=True),
        Column("rounds"),
        Column("accuracy", ("accuracy", "accuracy sd")),
        Column("95 % interval", ("accuracy low", "accuracy high"), is_detail=True),
        Column("forgetting", ("forgetting rate", "forgetting rate sd")),
        Column("average accuracy", ("average accuracy", "average accuracy sd"), is_detail=True),
    ]
    if with_paper:
        columns += [Column("paper Acc", is_detail=True), Column("paper FR", is_detail=True)]
    return Table(
        f"{runs.name}-results",
        f"{runs.name}: final accuracy and forgetting, percent",
        columns,
        _by_track(runs, paper if with_paper else None),
        [
            *mark_notes(runs.methods),
            *mixed_notes(runs.methods),
            *_constant_notes(runs),
            *difference_notes(runs.methods),
            *(paper_notes(runs, [method.name for method in runs.methods], paper) if with_paper else []),
        ],
    )


def tasks_table(runs: BenchmarkRuns) -> Table:
    """Accuracy over all classes seen so far, after each task."""
    titles = [f"T{task + 1}" for task in range(runs.tasks)]
    rows = [
        [
            Cell(f"{method.name}{method.mark}", (method.name,)),
            *padded([mean_only(one) for one in method.accuracies_after_task()], runs.tasks),
        ]
        for method in runs.methods
    ]
    return Table(
        f"{runs.name}-tasks",
        f"{runs.name}: accuracy over all classes seen so far after each task, percent",
        [Column("method", is_text=True), *(Column(title, (title, f"{title} sd")) for title in titles)],
        [rows],
        [*mark_notes(runs.methods), *mixed_notes(runs.methods)],
    )


def overview_table(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str]) -> Table:
    """Final accuracy of every method on every benchmark."""
    names = [runs.name for runs in benchmarks]
    found = {name: [runs.find(name) for runs in benchmarks] for name in rows}
    return Table(
        "overview",
        "Final accuracy on every benchmark, percent",
        [Column("method", is_text=True), *(Column(name, (name, f"{name} sd")) for name in names)],
        [[[word(name), *map(accuracy_cell, found[name])] for name in rows]],
        [
            *mark_notes([method for runs in benchmarks for method in runs.methods]),
            *(f"{runs.name}: {note}" for runs in benchmarks for note in mixed_notes(runs.methods)),
        ],
    )


def forgotten_table(benchmark: str, method: MethodRuns) -> Table | None:
    """The worst classes, averaged over rounds; None where no predictions or no earlier accuracies exist."""
    drops: dict[str, list[float]] = {}
    guesses: dict[str, Counter[str]] = {}
    for run in method.runs:
        for label, drop in run.forgetting.items():
            drops.setdefault(label, []).append(100 * drop)
            guesses.setdefault(label, Counter()).update(run.last_guesses[label])
    if not drops:
        return None
    worst = sorted(drops, key=lambda label: (-fmean(drops[label]), label))[:WORST]
    columns = [
        Column("class", is_text=True),
        Column("drop", ("drop in points",)),
        Column("final accuracy"),
        Column("rounds"),
        Column("most confused with", ("most confused with", "share of its texts in percent"), is_text=True),
    ]
    return Table(
        f"{benchmark}-{method.name}-classes",
        f"{method.name} on {benchmark}: the classes with the largest drop, in points",
        columns,
        [[_class_row(label, drops[label], guesses[label]) for label in worst]],
    )


def accuracy_cell(method: MethodRuns | None) -> Cell:
    """Final accuracy with its marks, or a dash."""
    return missing(2) if method is None else mean_and_spread(method.summary("final_accuracy"), method.mark)


def mark_notes(methods: Sequence[MethodRuns]) -> list[str]:
    """What the signs in these rows mean."""
    marks = "".join(method.mark for method in methods)
    notes = {
        INCOMPLETE: "incomplete data: the files hold less than the benchmark's protocol asks for.",
        CAPPED: "capped: texts or tasks were left out on purpose; not comparable with whole runs.",
    }
    return [f"{sign} {note}" for sign, note in notes.items() if sign in marks]


def mixed_notes(methods: Sequence[MethodRuns]) -> list[str]:
    """Which rows are means over rounds that do not belong together."""
    mixed = ", ".join(method.name for method in methods if method.is_mixed)
    return [f"Rounds run with different settings or data: {mixed}. Their mean means little."] if mixed else []


def difference_notes(methods: Sequence[MethodRuns]) -> list[str]:
    """Which rows differ from most in what every row should have in common, so that they are not compared."""
    return [
        f"Not alike: {what} is {_counted_values(values)}. Compare only rows that are alike."
        for what, of_method in (
            ("the encoder", lambda method: method.results[0].encoder),
            ("the preset", lambda method: method.results[0].preset),
            ("the number of exemplars per class", _memory_size),
        )
        if len(set((values := {method.name: of_method(method) for method in methods}).values()) - {None}) > 1
    ]


def _memory_size(method: MethodRuns) -> object:
    """Exemplars of each class as set; None where a row has none, or is named after another number."""
    result = method.results[0]
    is_named = (result.variant or "").startswith("memory-")
    return None if is_named else result.settings.get("memory_per_class")


def _counted_values(values: Mapping[str, object]) -> str:
    """The values, each with its rows; that of the most rows without."""
    known = {name: value for name, value in values.items() if value is not None}
    most = Counter(known.values()).most_common(1)[0][0]
    others = [value for value in dict.fromkeys(known.values()) if value != most]
    told = [f"{value} in {', '.join(name for name in known if known[name] == value)}" for value in others]
    return f"{', '.join(told)}, and {most} in the others"


def rounds_notes(methods: Sequence[MethodRuns]) -> list[str]:
    """Which rounds each row is a mean of, where these are not the same for all."""
    rounds = {method.name: tuple(result.round for result in method.results) for method in methods}
    if len(set(rounds.values())) < 2:
        return []
    listed = "; ".join(f"{name} {', '.join(map(str, rounds))}" for name, rounds in rounds.items())
    return [f"Rounds: {listed}. Means over other rounds are means over other class orders and splits."]


def paper_notes(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> list[str]:
    """Where these runs differ from the paper's, so that readers compare what can be compared."""
    slips = [note for name in rows for note in paper.notes(runs.name, name)]
    ours = ", ".join(sorted({result.encoder for result in runs.results}))
    differences = []
    if not all(is_papers_encoder(result.encoder) for result in runs.results):
        differences.append(f"the encoder is {ours}, the paper's {paper.encoder}")
    if runs.tasks != paper.tasks:
        differences.append(f"there are {runs.tasks} tasks, in the paper {paper.tasks}")
    if presets := sorted({result.preset for result in runs.results} - {PAPERS_PRESET}):
        differences.append(
            f"settings are those of preset {', '.join(presets)}, not of preset {PAPERS_PRESET}"
        )
    sizes = {result.settings.get("memory_per_class", PAPERS_MEMORY) for result in _plain(runs)}
    if sizes != {PAPERS_MEMORY}:
        kept = ", ".join(map(str, sorted(sizes)))
        differences.append(f"{kept} exemplars are kept of each class, in the paper {PAPERS_MEMORY}")
    if not differences:
        return slips
    caution = f"Compare ranks and trends, not numbers, with the paper's: here {'; '.join(differences)}."
    return [caution, *slips]


def _plain(runs: BenchmarkRuns) -> list[Result]:
    """Results of methods, without those of variants that change the size of the memory."""
    plain = [result for result in runs.results if not (result.variant or "").startswith("memory-")]
    return plain or runs.results


def _by_track(runs: BenchmarkRuns, paper: Paper | None) -> list[list[Row]]:
    """Rows of the strict track, of the track with statistics, of methods that keep all data."""
    tracks: dict[Track, list[Row]] = {track: [] for track in TRACKS}
    for method in runs.methods:
        tracks[method.track].append(_score_row(method, runs.name, paper))
    return [mark_best(group, ACCURACY) for group in tracks.values() if group]


def _score_row(method: MethodRuns, benchmark: str, paper: Paper | None) -> Row:
    accuracy = method.summary("final_accuracy")
    track, kept = method.track, method.statistics_bytes
    shown = f"statistics, {bytes_text(kept)}" if track == "statistics" else track
    row = [
        word(method.name),
        Cell(shown, (track, kept)),
        count(len(method.results)),
        mean_and_spread(accuracy, method.mark),
        interval(accuracy),
        mean_and_spread(method.summary("forgetting_rate")),
        mean_and_spread(method.summary("average_incremental_accuracy")),
    ]
    if paper is None:
        return row
    published = paper.published(benchmark, method.name)
    if published is None:
        return [*row, missing(), missing()]
    return [*row, number(published.accuracy), number(published.forgetting)]


def _class_row(label: str, drops: Sequence[float], guesses: Counter[str]) -> Row:
    known = guesses.total()
    accuracy = 100 * guesses[label] / known
    mistakes = {guess: times for guess, times in guesses.items() if guess != label}
    return [word(label), number(fmean(drops)), number(accuracy), count(len(drops)), _mistake(mistakes, known)]


def _mistake(mistakes: Mapping[str, int], known: int) -> Cell:
    if not mistakes:
        return missing(2)
    most, times = min(mistakes.items(), key=lambda item: (-item[1], item[0]))
    share = 100 * times / known
    return Cell(f"{most} ({share:.0f}\u00a0%)", (most, share))


def _constant_notes(runs: BenchmarkRuns) -> list[str]:
    """A spread of zero says nothing about precision."""
    summaries = {method.name: method.summary("final_accuracy") for method in runs.methods}
    constant = ", ".join(name for name, summary in summaries.items() if summary and summary.sd == 0)
    if not constant:
        return []
    return [
        f"The same accuracy in every round, so no interval: {constant}. With the same texts in every round, "
        "what a learner on a frozen encoder answers in the end does not depend on the order of classes: its "
        "rounds are one measurement. With a trained one it is chance."
    ]
