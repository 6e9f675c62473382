"""What the tables of mutual information are made of: values over rounds, ceilings, reasons for gaps."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from repcl.analysis.mutual_information import MutualInformation
from repcl.evaluation import Summary, summarize
from repcl.experiments.reporting.estimator_notes import caution_notes
from repcl.experiments.reporting.runs import BenchmarkRuns
from repcl.experiments.reporting.scores import mark_notes, mixed_notes
from repcl.experiments.reporting.table import Cell, Column, missing, number
from repcl.experiments.representations.analysis import Representations, RunAnalysis

Quantity = Callable[[Representations], MutualInformation]


def information_columns(title: str, *, has_paper: bool) -> list[Column]:
    """Ours by two bounds and, where there is one, the paper's."""
    ours = [Column(title, (title, f"{title} sd")), Column("InfoNCE", (f"{title} InfoNCE",))]
    return [*ours, Column("paper", (f"{title} paper",))] if has_paper else ours


def information_cells(
    known: Sequence[Representations], quantity: Quantity, published: float | None, *, has_paper: bool
) -> list[Cell]:
    """The cells under `information_columns`."""
    found = [quantity(one) for one in known]
    values = [one.value for one in found if one.value is not None]
    second = [one.info_nce for one in found if one.info_nce is not None]
    cells = [nats_cell(summarize(values) if values else None)]
    cells.append(number(summarize(second).mean if second else None, 2))
    return [*cells, number(published, 2)] if has_paper else cells


def nats_cell(summary: Summary | None) -> Cell:
    """An amount of information over rounds."""
    return spread_cell(summary, 2)


def spread_cell(summary: Summary | None, digits: int) -> Cell:
    """Mean ± standard deviation with so many digits."""
    if summary is None:
        return missing(2)
    spread = "" if summary.sd is None else f" ± {summary.sd:.{digits}f}"
    return Cell(f"{summary.mean:.{digits}f}{spread}", (summary.mean, summary.sd))


def information_notes(
    runs: BenchmarkRuns, rows: Sequence[str], quantities: Mapping[str, Quantity]
) -> list[str]:
    """Ceilings, what could not be estimated and why, what cannot be compared, marks of incomplete data."""
    known = [one for name in rows for one in known_rounds(runs, name)]
    notes = []
    for title, quantity in quantities.items():
        found = [quantity(one) for one in known]
        reasons = sorted({one.note for one in found if one.note})
        if reasons:
            notes.append(f"{title}: {'; '.join(reasons)}.")
        estimated = [one for one in found if one.value is not None]
        if estimated:
            notes.append(f"{title}: {_ceilings(estimated)}.")
    absent = [name for name in rows if runs.find(name) and not known_rounds(runs, name)]
    if absent:
        notes.append(
            f"Not analyzed: {', '.join(absent)}; `repcl analyze` does it for runs that kept representations."
        )
    settings = {name: [one.settings for one in analyzed_rounds(runs, name)] for name in rows}
    rounds = {name: len(analyzed) for name, analyzed in settings.items() if analyzed}
    if len(set(rounds.values())) > 1:
        notes.append(f"Rounds analyzed: {', '.join(f'{name} {number}' for name, number in rounds.items())}.")
    methods = [method for name in rows if (method := runs.find(name))]
    return [*notes, *caution_notes(settings), *mixed_notes(methods), *mark_notes(methods)]


def _ceilings(found: Sequence[MutualInformation]) -> str:
    fewest = min(found, key=lambda one: one.texts)
    about = f"read off {fewest.texts} texts, no value above their ln {fewest.text_ceiling:.2f} can be trusted"
    ceilings = sorted({one.class_ceiling for one in found if one.class_ceiling is not None})
    if not ceilings:
        return about
    classes = " to ".join(dict.fromkeys(f"{one:.2f}" for one in (ceilings[0], ceilings[-1])))
    return f"at most ln of the classes, {classes}; {about}"


def order_note(
    runs: BenchmarkRuns, rows: Sequence[str], title: str, quantity: Quantity, printed: Mapping[str, float]
) -> str:
    """Our orders of rows by both bounds of a quantity, beside the paper's where it has them."""
    found = {name: [quantity(one) for one in known_rounds(runs, name)] for name in rows}
    ours = _means(found, lambda one: one.value)
    if len(ours) < 2:
        return ""
    second = _means(found, lambda one: one.info_nce)
    paper = {name: printed[name] for name in ours if name in printed}
    beside = f"; the paper's: {_falling(paper)}" if len(paper) > 1 else ""
    return f"Order by {title}: {_falling(ours)}; by InfoNCE: {_falling(second)}{beside}."


def _means(
    found: Mapping[str, Sequence[MutualInformation]], bound: Callable[[MutualInformation], float | None]
) -> dict[str, float]:
    """The mean over rounds of one bound, for the rows that have it."""
    known = {
        name: [value for one in rounds if (value := bound(one)) is not None] for name, rounds in found.items()
    }
    return {name: summarize(values).mean for name, values in known.items() if values}


def _falling(values: Mapping[str, float]) -> str:
    """Names from the highest value to the lowest; equal ones, as printed with two digits, are tied."""
    ranked = sorted(values, key=lambda name: -values[name])
    signs = ["=" if f"{values[a]:.2f}" == f"{values[b]:.2f}" else ">" for a, b in pairwise(ranked)]
    return ranked[0] + "".join(f" {sign} {name}" for sign, name in zip(signs, ranked[1:], strict=True))


def analyzed_rounds(runs: BenchmarkRuns, name: str) -> list[RunAnalysis]:
    """The rounds of a row whose representations were analyzed."""
    method = runs.find(name)
    analyses = [run.analysis for run in method.runs] if method is not None else []
    return [one for one in analyses if one is not None and one.representations is not None]


def known_rounds(runs: BenchmarkRuns, name: str) -> list[Representations]:
    """What is known about the representations of a row, round by round."""
    return [one.representations for one in analyzed_rounds(runs, name) if one.representations is not None]


def analyzed_rows(runs: BenchmarkRuns) -> list[str]:
    """The rows with at least one analyzed round."""
    return [method.name for method in runs.methods if known_rounds(runs, method.name)]


def about_inputs(known: Representations) -> MutualInformation:
    """I(X1;Z1)."""
    return known.inputs


def about_classes(known: Representations) -> MutualInformation:
    """I(Z;Y)."""
    return known.classes


def about_same_class(known: Representations) -> MutualInformation:
    """I(Z1;Z1+)."""
    return known.same_class
