"""Makes the page that compares repcl with other tools from what `benchmarks/peers/run.py` measured.

    python docs/make_peers.py

The words come from `docs/peers.template.md`. `{{ overview }}` stands for the table of all data,
`{{ details banking77-15 }}` for that of one set, `{{ reloaded demo }}` for the same with saving and loading
after every task, and `{{ tests }}` for the comparisons text by text.
"""

import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repcl.errors import ResultMismatch, UnknownName
from repcl.evaluation.answers import TextComparison
from repcl.evaluation.statistics import holm
from repcl.experiments.reports.formats import to_markdown
from repcl.experiments.reports.table import (
    Cell,
    Column,
    Row,
    Table,
    count,
    mark_best,
    missing,
    number,
    probability,
    size,
    word,
)
from repcl.files import write_whole

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results" / "peers"
OURS = "repcl instant"
TITLES = {
    "demo": "demo",
    "hwu64": "HWU64",
    "banking77-15": "BANKING77, 15 texts",
    "banking77-50": "BANKING77, 50 texts",
    "clinc150-50": "CLINC150, 50 texts",
    "fewrel-50-50": "FewRel, 50 texts",
}
TESTED = 0  # the round whose answers are compared text by text
_PLACEHOLDER = re.compile(r"\{\{ (\w+)(?: ([\w-]+))? \}\}")


@dataclass(frozen=True)
class Measured:
    """What was measured of a tool on a set of texts, by round."""

    tool: str
    rounds: Mapping[int, Mapping[str, Any]]

    def percent(self, key: str) -> Cell:
        """Mean over rounds, with its standard error where there are several."""
        values = [100 * one[key] for one in self.rounds.values()]
        mean = statistics.mean(values)
        if len(values) == 1:
            return number(mean)
        error = statistics.stdev(values) / len(values) ** 0.5
        return Cell(f"{mean:.1f} ± {error:.1f}", (mean, error))

    @property
    def first(self) -> Mapping[str, Any]:
        """The first round, by which costs are told."""
        return self.rounds[min(self.rounds)]


def read_all(results: Path, name: str, kind: str) -> list[Measured]:
    """All tools that were measured on a set, ours first, the others by accuracy."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for path in sorted((results / name).glob(f"*/round-*-{kind}.json")):
        one = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(one["learner"], {})[int(path.stem.split("-")[1])] = one
    measured = [Measured(tool, rounds) for tool, rounds in found.items()]
    return sorted(
        measured, key=lambda one: (one.tool != OURS, -float(one.percent("accuracy").values[0] or 0), one.tool)
    )


def overview(results: Path, _: str) -> Table:
    """Accuracy of every tool on every set."""
    by_set = {name: {one.tool: one for one in read_all(results, name, "straight")} for name in TITLES}
    tools = list(dict.fromkeys(tool for tools in by_set.values() for tool in tools))

    def cell(name: str, tool: str) -> Cell:
        return by_set[name][tool].percent("accuracy") if tool in by_set[name] else missing()

    rows: list[Row] = [[word(tool), *(cell(name, tool) for name in TITLES)] for tool in tools]
    for column in range(1, len(TITLES) + 1):
        rows = mark_best(rows, column)
    columns = [Column("tool", is_text=True), *map(Column, TITLES.values())]
    return Table("peers", "Accuracy on all classes after the last task, percent", columns, [rows])


def details(results: Path, name: str, kind: str = "straight") -> Table:
    """Accuracy and costs of every tool on a set."""

    def row(one: Measured) -> Row:
        return [
            word(one.tool),
            count(len(one.rounds)),
            one.percent("accuracy"),
            one.percent("macro_recall"),
            one.percent("forgetting"),
            number(one.first["seconds_per_task"]),
            number(one.first["milliseconds_per_prediction"]),
            size(one.first["bytes_stored"]),
        ]

    titles = (
        "rounds",
        "accuracy",
        "macro recall",
        "forgetting",
        "seconds per task",
        "ms per text",
        "stored",
    )
    measured = read_all(results, name, kind)
    return Table(
        name,
        TITLES[name] + (", saved and loaded after every task" if kind == "reload" else ""),
        [Column("tool", is_text=True), *map(Column, titles)],
        [mark_best([row(one) for one in measured], 2)],
        _notes(measured),
    )


def reloaded(results: Path, name: str) -> Table:
    """The same for models that were saved and loaded after every task."""
    return details(results, name, "reload")


def _notes(measured: Sequence[Measured]) -> list[str]:
    """Where costs were measured; times of several processors do not compare."""
    known = sorted({one.first.get("processor", "one that is not known") for one in measured})
    if len(known) == 1:
        return [f"Processor: {known[0]}."]
    return [f"Measured on several processors ({', '.join(known)}): compare times with caution."]


def tests(results: Path, _: str) -> Table:
    """Ours against each tool, text by text, in one round."""
    names: list[Row] = []
    compared: list[TextComparison] = []
    for name, title in TITLES.items():
        measured = {one.tool: one.rounds.get(TESTED, {}) for one in read_all(results, name, "straight")}
        ours = measured.pop(OURS, {})
        for tool, theirs in measured.items():
            if "answers" in ours and "answers" in theirs:
                names.append([word(title), word(tool)])
                compared.append(_compared(ours, theirs))
    corrected = holm([one.p_value for one in compared])
    rows = [
        [*named, *_cells(one), probability(p)]
        for named, one, p in zip(names, compared, corrected, strict=True)
    ]
    columns = [Column("texts of", is_text=True), Column("tool", is_text=True)]
    titles = ("points ahead", "only repcl right", "only the tool right", "p", "p (Holm)")
    return Table(
        "tests", f"{OURS} against each tool, round {TESTED}", [*columns, *map(Column, titles)], [rows]
    )


def _compared(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> TextComparison:
    if ours["labels"] != theirs["labels"]:
        raise ResultMismatch(
            f"{ours['learner']} and {theirs['learner']} answered other texts: measure both again."
        )
    pairs = list(zip(_right(ours), _right(theirs), strict=True))
    return TextComparison(len(pairs), pairs.count((True, False)), pairs.count((False, True)))


def _cells(one: TextComparison) -> Row:
    ahead = Cell(f"{one.difference:+.1f}", (one.difference,))
    return [ahead, count(one.only_first), count(one.only_second), probability(one.p_value)]


def _right(measured: Mapping[str, Any]) -> list[bool]:
    return [a == b for a, b in zip(measured["answers"], measured["labels"], strict=True)]


PLACEHOLDERS: Mapping[str, Callable[[Path, str], Table]] = {
    "overview": overview,
    "details": details,
    "reloaded": reloaded,
    "tests": tests,
}


def render_page(template: str, results: Path) -> str:
    """Fill every placeholder from the files of what was measured."""

    def fill(found: re.Match[str]) -> str:
        what, name = found[1], found[2] or ""
        if what not in PLACEHOLDERS:
            raise UnknownName("placeholder", what, PLACEHOLDERS)
        if name and name not in TITLES:
            raise UnknownName("set of texts", name, TITLES)
        return to_markdown(PLACEHOLDERS[what](results, name)).strip()

    return _PLACEHOLDER.sub(fill, template)


def main() -> None:
    """Write the page."""
    template = (DOCS / "peers.template.md").read_text(encoding="utf-8")
    write_whole(DOCS / "peers.md", render_page(template, RESULTS))


if __name__ == "__main__":
    main()
