"""`repcl predict`: ask a model about texts; every text gets its answer in its place."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcl.cli.answered import require_room, require_table, write_table
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.label_cells import takes_several
from repcl.cli.options import Device, Model, Revision, TextColumn, Threshold, require_use
from repcl.cli.outputs import Force
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.cli.texts import Asked, Format, asked_texts, print_note
from repcl.cli.texts import text_examples as text_examples
from repcl.data.label_cells import cell_of_labels
from repcl.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from repcl.classifier import ContinualClassifier
    from repcl.classifier.answerer import Answerer
    from repcl.classifier.answering import UnknownRule
    from repcl.data import Example
    from repcl.data.files import Read

CHUNK = 1000
UNKNOWN = "unknown"

Answer = dict[str, Any]
"""Label, confidence, whether the text is unknown, and the best classes, as JSON has them; where a text may
have several labels, all of them."""


def predict(
    model: Model,
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Texts to classify; default: lines from standard input."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="A data file, or a .txt file with one text per line; - for standard input."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="A .csv, .tsv or .jsonl file for all rows, their columns and the answers."),
    ] = None,
    force: Force = False,
    top: Annotated[int, typer.Option(min=1, help="How many classes to show per text.")] = 1,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Answer 'unknown' when no class is likely enough.")
    ] = False,
    threshold: Threshold = "auto",
    text_column: TextColumn = "text",
    form: Format = None,
    revision: Revision = None,
    device: Device = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per text.")] = False,
) -> None:
    """Name the most likely class of each text; in a pipe: label, confidence and text, separated by tabs."""
    from repcl.classifier.store.folder import ModelFolder

    if output is not None:
        require_table(output, "--output", force=force, sources=(file,))
    ModelFolder(model).current()
    asked = asked_texts(text, file, text_column=text_column, form=form, keeps_columns=output is not None)
    if output is not None:
        asked = asked._replace(rows=iter(_with_room(list(asked.rows), top)))
    from repcl.classifier.answerer import open_answerer  # may take seconds; a bad file is said at once

    if takes_several(ModelFolder(model)):
        from repcl.classifier import ContinualClassifier

        classifier = ContinualClassifier.load(model, revision=revision, device=device)
        rule = classifier.fitted_state().unknown_rule(threshold, UNKNOWN) if unknown else None
        answer = partial(_answer_with_labels, classifier, top, rule, threshold)
    else:
        require_use(threshold, unknown=unknown)
        answerer = open_answerer(
            model, revision=revision, device=device, threads=1 if text else None, tell=print_note
        )
        rule = answerer.unknown_rule(threshold, UNKNOWN) if unknown else None
        answer = partial(_answer, answerer, top, rule)
    answered = _answered(answer, asked)
    if output is not None:
        _write(output, answered, top, force=force, as_json=as_json)
        return
    show = _show_json if as_json else _show
    for rows, found in answered:
        show(rows, found, top)


def answers(classes: Any, probabilities: Any, top: int, is_unknown: "Sequence[bool]") -> list[Answer]:
    """For each text its label, confidence and the best classes, as JSON has them."""
    found = []
    for row, has_no_class in zip(probabilities, is_unknown, strict=True):
        best = (-row).argsort(kind="stable")[:top]
        ranked = [{"label": classes[index].item(), "probability": float(row[index])} for index in best]
        label = UNKNOWN if has_no_class else ranked[0]["label"]
        found.append(
            {"label": label, "confidence": float(row.max()), "is_unknown": bool(has_no_class), "top": ranked}
        )
    return found


def _answered(
    answer: "Callable[[list[Example]], list[Answer]]", asked: Asked
) -> "Iterator[tuple[list[Read], list[Answer]]]":
    """Rows with their answers, a thousand at a time; an empty text is unknown, a blank line is no text."""
    no_class = None if asked.are_lines else UNKNOWN
    nothing: Answer = {"label": no_class, "confidence": 0.0, "is_unknown": True, "top": []}
    while rows := list(islice(asked.rows, CHUNK)):
        texts = [row.example for row in rows if row.example.text.strip()]
        with notes_to(sentence_console(stderr=True)):
            found = iter(answer(texts))
        yield rows, [next(found) if row.example.text.strip() else nothing for row in rows]


def _answer(
    answerer: "Answerer", top: int, rule: "UnknownRule | None", texts: "list[Example]"
) -> list[Answer]:
    """Answers of one label each."""
    probabilities, is_unknown = answerer.answer(texts, rule)
    return answers(answerer.classes_, probabilities, top, is_unknown.tolist())


def _answer_with_labels(
    classifier: "ContinualClassifier",
    top: int,
    rule: "UnknownRule | None",
    threshold: str,
    texts: "list[Example]",
) -> list[Answer]:
    """Answers of several labels each."""
    probabilities = classifier.predict_proba(texts)
    evidence = classifier.fitted_state().evidence(texts)
    is_unknown = rule.applies(evidence).tolist() if rule else [False] * len(texts)
    found = answers(classifier.classes_, probabilities, top, is_unknown)
    answered = _with_labels(classifier, found, probabilities, threshold)
    return answered if rule is None else [_unknown_without_labels(answer) for answer in answered]


def _with_labels(
    classifier: "ContinualClassifier", found: list[Answer], probabilities: Any, threshold: str
) -> list[Answer]:
    """The answers with all labels that each text has; it may have none."""
    classes = classifier.classes_
    has_label = classifier.fitted_state().has_labels(probabilities, threshold, list(map(str, classes)))
    answered = []
    for answer, row, has in zip(found, probabilities, has_label, strict=True):
        best = (
            [] if answer["is_unknown"] else [index for index in (-row).argsort(kind="stable") if has[index]]
        )
        labels = [{"label": classes[index].item(), "probability": float(row[index])} for index in best]
        cell = cell_of_labels(one["label"] for one in labels)
        answered.append(answer | {"label": UNKNOWN if answer["is_unknown"] else cell, "labels": labels})
    return answered


def _unknown_without_labels(answer: Answer) -> Answer:
    """Where unknown texts are asked for, a text without labels is one."""
    return answer if answer["labels"] else answer | {"label": UNKNOWN, "is_unknown": True}


# ---- on the terminal or down a pipe -------------------------------------------------------------


def _show_json(rows: "Sequence[Read]", found: Sequence[Answer], _: int) -> None:
    for row, answer in zip(rows, found, strict=True):
        print_json({"text": row.example.text} | answer)


def _show(rows: "Sequence[Read]", found: Sequence[Answer], top: int) -> None:
    """A table on a terminal; elsewhere lines of label, confidence and text, separated by tabs."""
    console = make_console()
    if console.is_terminal:
        cells = [(row.example.text, _named(answer)) for row, answer in zip(rows, found, strict=True)]
        print_table(console, "Most likely classes", ["text", "class"], cells)
        return
    for row, answer in zip(rows, found, strict=True):
        line = " ".join(row.example.text.split())
        print("\t".join(map(printable, [*_columns(answer, top), line])), flush=True)


def _columns(answer: Answer, top: int) -> list[str]:
    """Label and confidence, as often as classes were asked for."""
    return [
        cell
        for label, share in _ranked(answer, top)
        for cell in (("", "") if label is None or share is None else (str(label), f"{share:.2f}"))
    ]


def _ranked(answer: Answer, top: int) -> list[tuple[str | int | None, float | None]]:
    """The answer and so many classes behind it; the word for unknown texts comes before the best class."""
    best = [(rank["label"], rank["probability"]) for rank in answer["top"]]
    behind = best if answer["is_unknown"] else best[1:]
    return [(answer["label"], answer["confidence"]), *behind, *[(None, None)] * top][:top]


def _named(answer: Answer) -> tuple[str, ...]:
    """The lines of a cell: a class with its probability in each."""
    shown = answer["labels"] if "labels" in answer and not answer["is_unknown"] else answer["top"]
    names = tuple(f"{rank['label']} {rank['probability']:.2f}" for rank in shown)
    if answer["is_unknown"]:
        return (answer["label"] or "", *(f"closest: {name}" for name in names))
    return names


# ---- into a file --------------------------------------------------------------------------------


def _with_room(rows: "list[Read]", top: int) -> "list[Read]":
    added = [name for rank in range(1, top + 1) for name in _added(rank)]
    require_room((row.cells for row in rows), added, "--output")
    return rows


def _added(rank: int) -> tuple[str, str]:
    """The columns of the class of a rank and of its probability."""
    return ("predicted", "confidence") if rank == 1 else (f"top_{rank}", f"top_{rank}_confidence")


def _write(
    output: Path,
    answered: "Iterator[tuple[list[Read], list[Answer]]]",
    top: int,
    *,
    force: bool,
    as_json: bool,
) -> None:
    written: list[dict[str, object]] = []
    unknown = 0
    for rows, found in answered:
        for row, answer in zip(rows, found, strict=True):
            unknown += answer["is_unknown"]
            written.append({**row.cells, **_cells(answer, top)})
    write_table(output, written, "--output", force=force)
    if as_json:
        print_json({"output": str(output), "rows": len(written), "unknown": unknown})
        return
    say = sentence_console().print
    say(f"Wrote {counted(len(written), 'row')} to {output}, with the columns predicted and confidence.")
    if unknown:
        say(f"{unknown} of them {'is' if unknown == 1 else 'are'} unknown.")


def _cells(answer: Answer, top: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for rank, (label, share) in enumerate(_ranked(answer, top), start=1):
        found |= zip(_added(rank), (label, share and round(share, 4)), strict=True)
    return found
