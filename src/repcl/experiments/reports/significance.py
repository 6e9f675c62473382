"""The table of paired tests: is a method's final accuracy really different from that of a chosen one?"""

from collections.abc import Sequence

from repcl.evaluation import Comparison, holm, paired_comparison
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.table import Column, Table, count, number, probability, word

ALPHA = 0.05
DEFAULT_REFERENCE = "repcl"


def choose_reference(runs: BenchmarkRuns, wanted: str | None = None) -> MethodRuns:
    """The method to compare with: the wanted one, else RepCL, else the best that does not keep all data."""
    found = runs.find(wanted or DEFAULT_REFERENCE) or runs.find(DEFAULT_REFERENCE)
    if found is not None:
        return found
    fair = [method for method in runs.methods if not method.keeps_everything] or list(runs.methods)
    return max(fair, key=_mean_accuracy)


def significance_table(runs: BenchmarkRuns, wanted: str | None = None) -> Table | None:
    """Paired tests of every other method against the wanted or usual one; None without two shared rounds."""
    reference = choose_reference(runs, wanted)
    others = [method for method in runs.methods if method.name != reference.name]
    compared = [compare_methods(reference, method) for method in others]
    if all(comparison.rounds < 2 for comparison in compared):
        return None
    t_adjusted = holm([comparison.t_p for comparison in compared])
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
    ]
    title = f"{runs.name}: final accuracy of {reference.name} against every other method, over equal rounds"
    notes = [*_reference_notes(reference, wanted), *_notes(compared), *_left_out(reference, others)]
    return Table(f"{runs.name}-significance", title, columns, [rows], notes)


def compare_methods(first: MethodRuns, second: MethodRuns) -> Comparison:
    """Final accuracy of two methods, over the rounds in which both learned the same."""
    return paired_comparison(
        first.comparable_percents(second, "final_accuracy"),
        second.comparable_percents(first, "final_accuracy"),
    )


def _verdict(name: str, comparison: Comparison, adjusted_p: float | None) -> str:
    if adjusted_p is None or comparison.difference is None:
        return "no test"
    if adjusted_p >= ALPHA:
        return "no difference shown"
    return f"{name} better" if comparison.difference > 0 else f"{name} worse"


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


def _left_out(reference: MethodRuns, others: Sequence[MethodRuns]) -> list[str]:
    """Rounds of one number that are not the same round."""
    own = set(reference.percents("final_accuracy"))
    left_out = {
        method.name: len(own & set(method.percents("final_accuracy")))
        - len(method.comparable_percents(reference, "final_accuracy"))
        for method in others
    }
    named = ", ".join(f"{number} of {name}" for name, number in left_out.items() if number)
    return [f"Rounds left out for other data, classes, tasks or encoder: {named}."] if named else []


def _mean_accuracy(method: MethodRuns) -> float:
    summary = method.summary("final_accuracy")
    return -1.0 if summary is None else summary.mean
