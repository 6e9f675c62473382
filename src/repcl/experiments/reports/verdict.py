"""What stands on top of a report: who did best, in a sentence, and when, how and how long it was made."""

from collections.abc import Sequence

from repcl.evaluation.statistics import ALPHA
from repcl.experiments.reports.grouping import BenchmarkRuns, MethodRuns
from repcl.experiments.reports.html import Folded, Header, Listing, Paragraph, Part
from repcl.experiments.reports.provenance import commands
from repcl.experiments.reports.significance import compare_methods
from repcl.experiments.reports.table import duration
from repcl.experiments.runs.result import Result

TITLE = "Continual learning results"
MOST_COMMANDS = 3  # more are folded


def report_header(benchmarks: Sequence[BenchmarkRuns]) -> Header:
    """The top of the page about these runs."""
    results = [result for runs in benchmarks for result in runs.results]
    verdicts = [verdict(runs) for runs in benchmarks]
    return Header(TITLE, _lead(benchmarks, results), verdicts, [_made(results), *_typed(results)])


def verdict(runs: BenchmarkRuns) -> str:
    """Which method ends best on a benchmark, by how much, and whether that could be chance."""
    ranked = ranked_methods(runs)
    sentences = [_first(runs.name, ranked)] if ranked else []
    sentences += [_bound(method) for method in runs.methods if method.keeps_everything]
    if any(method.mark for method in runs.methods):
        sentences.append("Some data were left out: see the notes below the results.")
    return " ".join(sentences)


def ranked_methods(runs: BenchmarkRuns) -> list[MethodRuns]:
    """The methods that do not keep all training texts, the best first."""
    fair = [method for method in runs.methods if not method.keeps_everything]
    return sorted(fair, key=_shown_accuracy, reverse=True)


def _first(benchmark: str, ranked: Sequence[MethodRuns]) -> str:
    best = ranked[0]
    level = [method for method in ranked if _shown_accuracy(method) == _shown_accuracy(best)]
    if len(level) > 1:
        names = f"{', '.join(method.name for method in level[:-1])} and {level[-1].name}"
        return f"On {benchmark}, {names} are level at {_percent(best)} after the last task."
    told = f"On {benchmark}, {best.name} ends best: {_percent(best)} accuracy after the last task"
    lost = best.summary("forgetting_rate")
    told += f", with {lost.mean:.1f} points forgotten" if lost is not None else ""
    if len(ranked) == 1:
        return f"{told}."
    return f"{told}; {ranked[1].name} follows with {_percent(ranked[1])}. {_chance(best, ranked[1])}"


def _chance(best: MethodRuns, second: MethodRuns) -> str:
    """What the rounds say about the distance between the two best."""
    found = compare_methods(best, second)
    if found.rounds < 2:
        return "They share fewer than two rounds, so the difference may be chance."
    if (found.difference or 0.0) <= 0:
        return (
            f"But over the {found.rounds} rounds that both have, {second.name} is not below {best.name}: "
            "the order rests on other rounds."
        )
    if found.t_p is None or found.t_p >= ALPHA:
        return f"Over {found.rounds} shared rounds the difference may be chance."
    p = "p < 0.001" if found.t_p < 0.001 else f"p = {found.t_p:.3f}"
    return f"Over {found.rounds} shared rounds the difference is unlikely to be chance (paired t test, {p})."


def _bound(method: MethodRuns) -> str:
    return f"For comparison, {method.name}, which keeps all training texts, reaches {_percent(method)}."


def _shown_accuracy(method: MethodRuns) -> float:
    """Rounded as people see it: what reads the same is level."""
    summary = method.summary("final_accuracy")
    return -1.0 if summary is None else round(summary.mean, 1)


def _percent(method: MethodRuns) -> str:
    summary = method.summary("final_accuracy")
    return "no measured accuracy" if summary is None else f"{summary.mean:.1f}%"


def _lead(benchmarks: Sequence[BenchmarkRuns], results: Sequence[Result]) -> str:
    """What the page is about, in a sentence."""
    methods = _counted(len({result.row for result in results}), "method")
    encoders = ", ".join(sorted({result.encoder for result in results}))
    return (
        f"{_counted(len(results), 'run')} of {methods} on {', '.join(runs.name for runs in benchmarks)} "
        f"with encoder {encoders}. "
        "All numbers come from the result files in this folder."
    )


def _made(results: Sequence[Result]) -> Paragraph:
    """When the last run ended, where all say so, and how long all took."""
    ended = [result.finished for result in results]
    known_ends = [moment for moment in ended if moment is not None]
    last = f"Last result: {max(known_ends):%Y-%m-%d %H:%M} UTC. " if len(known_ends) == len(ended) else ""
    took = f"{duration(sum(result.seconds.all for result in results))} of wall time"
    processor = [result.seconds.processor_all for result in results]
    known = [spent for spent in processor if spent is not None]
    if len(known) == len(processor):
        took += f", {duration(sum(known))} of processor time"
    runs = "The run took" if len(results) == 1 else "All runs together took"
    return Paragraph(f"{last}{runs} {took}.")


def _typed(results: Sequence[Result]) -> list[Part]:
    """The commands; many of them would hide the results."""
    typed = commands(results)
    if len(typed) > MOST_COMMANDS:
        return [Folded(f"The {len(typed)} commands that made this", [Listing(typed)])]
    return [Listing(typed)] if typed else []


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
