"""The paper's tables of mutual information, with ours beside them."""

from collections.abc import Sequence

from repcl.evaluation import summarize
from repcl.experiments.paper import Paper
from repcl.experiments.reporting.information_cells import (
    about_classes,
    about_inputs,
    about_same_class,
    information_cells,
    information_columns,
    information_notes,
    known_rounds,
    nats_cell,
    order_note,
    spread_cell,
)
from repcl.experiments.reporting.runs import BenchmarkRuns
from repcl.experiments.reporting.scores import accuracy_cell
from repcl.experiments.reporting.table import Column, Table, count, number, word
from repcl.experiments.reporting.transfer_tables import transfer_tables

READING = (
    "Mutual information in nats, mean ± standard deviation over rounds. MINE is fitted on one half of the "
    "test texts and read off the other; InfoNCE is a second lower bound by the same critics. Both measure "
    "the estimator as much as the model: compare rows with each other, not with other papers. I(Z;Y) cannot "
    "exceed ln of the number of classes, nor can it be below the column Fano, which follows from the "
    "accuracy; an estimate below that under-fits. So do the paper's own values (at most 2.45 for FewRel, "
    "where its accuracy implies at least 3.2), of which only the order can be compared."
)


def bias_tables(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper) -> list[Table]:
    """Does learning one task at a time throw away what is needed? `joint` is the paper's "Supervised"."""
    return [
        table
        for runs in benchmarks
        for table in (_bias_table(runs, rows, paper), *transfer_tables("bias", runs, rows))
    ]


def representation_tables(
    benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str], paper: Paper
) -> list[Table]:
    """Does more class-relevant information in the representations go with higher accuracy?"""
    return [
        table
        for runs in benchmarks
        for table in (
            _representation_table(runs, rows, paper),
            *transfer_tables("representation", runs, rows),
        )
    ]


def first_task_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    """What the first task's representations hold, for runs that learned no other task as well."""
    of_inputs = {
        row: values[0]
        for table in (paper.information, paper.representation)
        for row, values in table.get(runs.name, {}).items()
    }
    of_pairs = {row: values[1] for row, values in paper.representation.get(runs.name, {}).items()}
    columns = [
        Column("method", is_text=True),
        Column("rounds"),
        *information_columns("I(X1;Z1)", has_paper=bool(of_inputs)),
        *information_columns("I(Z1;Z1+)", has_paper=bool(of_pairs)),
        Column("effective rank", ("effective rank", "effective rank sd")),
    ]
    body = []
    for name in rows:
        known = known_rounds(runs, name)
        ranks = [one.first.effective_rank for one in known]
        body.append(
            [
                word(name),
                count(len(known)),
                *information_cells(known, about_inputs, of_inputs.get(name), has_paper=bool(of_inputs)),
                *information_cells(known, about_same_class, of_pairs.get(name), has_paper=bool(of_pairs)),
                spread_cell(summarize(ranks) if ranks else None, 1),
            ]
        )
    notes = information_notes(runs, rows, {"I(X1;Z1)": about_inputs, "I(Z1;Z1+)": about_same_class})
    notes += [
        order_note(runs, rows, "I(X1;Z1)", about_inputs, of_inputs),
        order_note(runs, rows, "I(Z1;Z1+)", about_same_class, of_pairs),
    ]
    title = f"{runs.name}: information in the representations of the first task, nats"
    return Table(f"{runs.name}-first-task", title, columns, [body], [note for note in notes if note])


def _bias_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    printed = paper.information.get(runs.name, {})
    columns = [
        Column("method", is_text=True),
        *information_columns("I(X1;Z1)", has_paper=bool(printed)),
        *information_columns("I(Z;Y)", has_paper=bool(printed)),
        Column("Fano"),
        Column("Acc", ("Acc", "Acc sd")),
    ]
    body = []
    for name in rows:
        known, published = known_rounds(runs, name), printed.get(name, (None, None))
        fano = [one.fano for one in known if one.fano is not None]
        body.append(
            [
                word(name),
                *information_cells(known, about_inputs, published[0], has_paper=bool(printed)),
                *information_cells(known, about_classes, published[1], has_paper=bool(printed)),
                nats_cell(summarize(fano) if fano else None),
                accuracy_cell(runs.find(name)),
            ]
        )
    title = f"{runs.name}: information about the inputs after task 1, and about all classes at the end"
    notes = information_notes(runs, rows, {"I(X1;Z1)": about_inputs, "I(Z;Y)": about_classes})
    order = {row: values[1] for row, values in printed.items()}
    notes.append(order_note(runs, rows, "I(Z;Y)", about_classes, order))
    return Table(f"paper-bias-{runs.name}", title, columns, [body], [note for note in notes if note])


def _representation_table(runs: BenchmarkRuns, rows: Sequence[str], paper: Paper) -> Table:
    printed = paper.representation.get(runs.name, {})
    has_paper = bool(printed)
    columns = [
        Column("method", is_text=True),
        *information_columns("I(X1;Z1)", has_paper=has_paper),
        *information_columns("I(Z1;Z1+)", has_paper=has_paper),
        Column("Acc", ("Acc", "Acc sd")),
        *([Column("paper", ("Acc paper",))] if has_paper else []),
        Column("effective rank", ("effective rank", "effective rank sd")),
    ]
    body = []
    for name in rows:
        known, published = known_rounds(runs, name), printed.get(name, (None, None, None))
        ranks = [one.first.effective_rank for one in known]
        body.append(
            [
                word(name),
                *information_cells(known, about_inputs, published[0], has_paper=has_paper),
                *information_cells(known, about_same_class, published[1], has_paper=has_paper),
                accuracy_cell(runs.find(name)),
                *([number(published[2])] if has_paper else []),
                spread_cell(summarize(ranks) if ranks else None, 1),
            ]
        )
    title = f"{runs.name}: information in the representations of the first task, and final accuracy"
    notes = information_notes(runs, rows, {"I(X1;Z1)": about_inputs, "I(Z1;Z1+)": about_same_class})
    return Table(f"paper-representation-{runs.name}", title, columns, [body], notes)
