"""The tables of paired tests: is a method's accuracy really different from that of a chosen one?"""

from collections.abc import Sequence

from repcl.evaluation import Comparison, TextComparison, compare_answers, holm, paired_comparison
from repcl.evaluation.statistics import ALPHA, MOST_ROUNDS
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns, Metric
from repcl.experiments.reports.table import Cell, Column, Table, count, missing, number, probability, word

DEFAULT_REFERENCE = "repcl"
TESTED: dict[Metric, str] = {
    "final_accuracy": "final accuracy",
    "average_incremental_accuracy": "average accuracy over tasks",
}
"""What is tested; the second scatters less from round to round, so that fewer rounds show a difference."""


def choose_reference(runs: BenchmarkRuns, wanted: str | None = None) -> MethodRuns:
    """The method to compare with: the wanted one, else RepCL, else the best that does not keep all data."""
    found = runs.find(wanted or DEFAULT_REFERENCE) or runs.find(DEFAULT_REFERENCE)
    if found is not None:
        return found
    fair = [method for method in runs.methods if not method.keeps_everything] or list(runs.methods)
    return max(fair, key=_mean_accuracy)


def significance_tables(runs: BenchmarkRuns, wanted: str | None = None) -> list[Table]:
    """A table for each of what is tested over rounds, as far as two are shared, and one over texts."""
    tables = [significance_table(runs, wanted, metric) for metric in TESTED]
    return [table for table in (*tables, texts_table(runs, wanted)) if table is not None]


def significance_table(
    runs: BenchmarkRuns, wanted: str | None = None, metric: Metric = "final_accuracy"
) -> Table | None:
    """Paired tests of every other method against the wanted or usual one; None without two shared rounds."""
    reference = choose_reference(runs, wanted)
    others = [method for method in runs.methods if method.name != reference.name and method.percents(metric)]
    compared = [compare_methods(reference, method, metric) for method in others]
    if all(comparison.rounds < 2 for comparison in compared):
        return None
    t_adjusted = holm([comparison.t_p for comparison in compared])
    tests = sum(comparison.t_p is not None for comparison in compared)
    wilcoxon_adjusted = holm([comparison.wilcoxon_p for comparison in compared])
    rows = [
        [
            word(method.name),
            count(comparison.rounds),
            number(comparison.difference),
            probability(comparison.t_p),
            probability(t),
            probability(comparison.wilcoxon_p),
            probability(wilcoxon),
            word(_verdict(reference.name, comparison, t)),
            _needed(comparison, t, tests),
        ]
        for method, comparison, t, wilcoxon in zip(
            others, compared, t_adjusted, wilcoxon_adjusted, strict=True
        )
    ]
    columns = [
        Column("against", is_text=True),
        Column("shared rounds"),
        Column("difference", ("difference in points",)),
        Column("p (t)"),
        Column("p (t, Holm)"),
        Column("p (Wilcoxon)"),
        Column("p (Wilcoxon, Holm)"),
        Column("at 5 %", is_text=True),
        Column("rounds for 80 %"),
    ]
    title = (
        f"{runs.name}: {TESTED[metric]} of {reference.name} against every other method, over shared rounds"
    )
    notes = [
        *_reference_notes(reference, wanted),
        *_notes(compared),
        *_power_notes(compared, t_adjusted),
        *_left_out(reference, others, metric),
    ]
    ending = "" if metric == "final_accuracy" else "-average"
    return Table(f"{runs.name}-significance{ending}", title, columns, [rows], notes)


def texts_table(runs: BenchmarkRuns, wanted: str | None = None) -> Table | None:
    """Tests over the texts of one round, of every other method against the wanted or usual one.

    None where no other method has stored its predictions of the same texts.
    """
    reference = choose_reference(runs, wanted)
    compared = {
        method.name: found
        for method in runs.methods
        if method.name != reference.name and (found := compare_texts(reference, method)) is not None
    }
    if not compared:
        return None
    adjusted = holm([found.p_value for _, found in compared.values()])
    rows = [
        [
            word(name),
            count(round),
            count(found.texts),
            count(found.only_first),
            count(found.only_second),
            number(found.difference),
            probability(found.p_value),
            probability(p),
            word(_better(reference.name, found.difference, p)),
        ]
        for (name, (round, found)), p in zip(compared.items(), adjusted, strict=True)
    ]
    columns = [
        Column("against", is_text=True),
        Column("round"),
        Column("test texts"),
        Column(f"only {reference.name} right"),
        Column("only the other right"),
        Column("difference", ("difference in points",)),
        Column("p (McNemar)"),
        Column("p (McNemar, Holm)"),
        Column("at 5 %", is_text=True),
    ]
    notes = [
        *_reference_notes(reference, wanted),
        "Exact tests over the texts of one round. They speak for its class order and random seed alone: in "
        "other rounds the order of two methods may be another.",
    ]
    title = f"{runs.name}: last answers of {reference.name} against every other method's, text by text"
    return Table(f"{runs.name}-significance-texts", title, columns, [rows], notes)


def compare_texts(first: MethodRuns, second: MethodRuns) -> tuple[int, TextComparison] | None:
    """The first round of which both have stored their answers to the same texts, with how they differ."""
    for ours, theirs in first.comparable_runs(second):
        found = compare_answers(ours.last_answers, theirs.last_answers)
        if found is not None:
            return ours.result.round, found
    return None


def compare_methods(first: MethodRuns, second: MethodRuns, metric: Metric = "final_accuracy") -> Comparison:
    """A metric of two methods, over the rounds in which both learned the same."""
    return paired_comparison(
        first.comparable_percents(second, metric), second.comparable_percents(first, metric)
    )


def _verdict(name: str, comparison: Comparison, adjusted_p: float | None) -> str:
    if adjusted_p is None or comparison.difference is None:
        return "no test"
    return _better(name, comparison.difference, adjusted_p)


def _better(name: str, difference: float, adjusted_p: float) -> str:
    if adjusted_p >= ALPHA:
        return "no difference shown"
    return f"{name} better" if difference > 0 else f"{name} worse"


def _is_open(comparison: Comparison, adjusted_p: float | None) -> bool:
    """Whether a test was made and shows nothing, so that more rounds might."""
    return comparison.t_p is not None and (adjusted_p is None or adjusted_p >= ALPHA)


def _needed(comparison: Comparison, adjusted_p: float | None, tests: int) -> Cell:
    """The rounds with which one of so many tests would probably show the difference seen."""
    if not _is_open(comparison, adjusted_p):
        return missing()
    needed = comparison.rounds_needed(tests)
    return Cell(f"over {MOST_ROUNDS}", (None,)) if needed is None else count(needed)


def _power_notes(compared: Sequence[Comparison], adjusted: Sequence[float | None]) -> list[str]:
    """What the last column means, where it holds anything."""
    if not any(map(_is_open, compared, adjusted)):
        return []
    return [
        "Rounds for 80 %: so many rounds of both would show a difference of the size seen here in 80 of 100 "
        "cases, in a paired t test at 5 % divided by the number of tests. The size itself is a guess from "
        "few rounds."
    ]


def _notes(compared: Sequence[Comparison]) -> list[str]:
    """What readers must know about few rounds."""
    notes = list(dict.fromkeys(comparison.note for comparison in compared if comparison.note))
    if any(comparison.t_p is not None and comparison.note for comparison in compared):
        notes.append("Below 6 rounds Wilcoxon's test cannot reach 5 %: read the t test.")
    return notes


def _reference_notes(reference: MethodRuns, wanted: str | None) -> list[str]:
    """What readers must know about the method that all others are compared with."""
    notes = []
    if wanted not in (None, reference.name):
        notes.append(f"{wanted} was not run here: compared with {reference.name} instead.")
    if reference.name not in (wanted, DEFAULT_REFERENCE):
        notes.append(
            f"{reference.name} was chosen because it is the best here, which makes false alarms likelier "
            "than 5 %: choose a method beforehand with --against."
        )
    return notes


def _left_out(reference: MethodRuns, others: Sequence[MethodRuns], metric: Metric) -> list[str]:
    """Rounds of one number that are not the same round."""
    own = set(reference.percents(metric))
    left_out = {
        method.name: len(own & set(method.percents(metric)))
        - len(method.comparable_percents(reference, metric))
        for method in others
    }
    named = ", ".join(f"{number} of {name}" for name, number in left_out.items() if number)
    return [f"Rounds left out for other data, classes, tasks or encoder: {named}."] if named else []


def _mean_accuracy(method: MethodRuns) -> float:
    summary = method.summary("final_accuracy")
    return -1.0 if summary is None else summary.mean
