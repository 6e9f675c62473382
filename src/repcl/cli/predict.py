"""`repcl predict` and `repcl evaluate`: ask a model, and compare its answers with a data file."""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.options import Device, Json, LabelColumn, Model, TextColumn
from repcl.cli.stages import notes_to
from repcl.cli.tables import print_table
from repcl.errors import InvalidData, listed, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from repcl.data import Example

CHUNK = 1000
UNKNOWN = "unknown"

Revision = Annotated[int | None, typer.Option(help="Another revision than the one in use.")]
File = Annotated[
    Path | None,
    typer.Option(help="A data file, or a .txt file with one text per line; - for the standard input."),
]


def predict(
    model: Model,
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of the input.")] = None,
    file: File = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes to name.")] = 1,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Say so when no class is likely enough.")
    ] = False,
    threshold: Annotated[
        str, typer.Option(help="The least confidence with --unknown: auto, or a number from 0 to 1.")
    ] = "auto",
    text_column: TextColumn = "text",
    revision: Revision = None,
    device: Device = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text.")] = False,
) -> None:
    """Name the most likely class of each text."""
    from repcl.classifier import ContinualClassifier

    classifier = ContinualClassifier.load(model, revision=revision, device=device)
    state = classifier.fitted_state()
    rule = state.unknown_rule(threshold, UNKNOWN) if unknown else None
    texts = iter(text_examples(text, file, text_column))
    show = _show_json if as_json else _show
    while chunk := list(islice(texts, CHUNK)):
        with notes_to(sentence_console(stderr=True)):
            probabilities = classifier.predict_proba(chunk)
            is_unknown = rule.applies(state.evidence(chunk)).tolist() if rule else [False] * len(chunk)
        show(chunk, answers(classifier.classes_, probabilities, top, is_unknown))


def answers(classes: Any, probabilities: Any, top: int, is_unknown: "Sequence[bool]") -> list[dict[str, Any]]:
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


def evaluate(
    model: Model,
    data: Annotated[Path, typer.Argument(help="CSV, JSONL or Parquet with columns text and label.")],
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    revision: Revision = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare a model's answers with the labels in DATA."""
    from repcl.classifier import ContinualClassifier
    from repcl.data.files import read_examples

    examples = read_examples(data, text_column=text_column, label_column=label_column)
    classifier = ContinualClassifier.load(model, revision=revision, device=device)
    meant = {label: str(classifier.label_of(label)) for label in {example.label for example in examples}}
    examples = [replace(example, label=meant[example.label]) for example in examples]
    known = {str(label) for label in classifier.classes_}
    tested = [example for example in examples if example.label in known]
    strangers = Counter(example.label for example in examples if example.label not in known)
    if not tested:
        raise InvalidData(
            f"No text of {data} is of a class that {model} knows (found {listed(sorted(strangers), 5)}): "
            "learn them first, or check the labels."
        )
    with notes_to(sentence_console(stderr=True)):
        found = [str(label) for label in classifier.predict(tested)]
    result = _scores(tested, found, strangers)
    _show_scores_json(result) if as_json else _show_scores(result)


def text_examples(texts: Sequence[str] | None, file: Path | None, column: str) -> "Iterator[Example]":
    """Texts as typed, from a file, or from the standard input."""
    from repcl.data import Example
    from repcl.data.files import iterate_examples
    from repcl.data.rows import require_file

    if texts and file is not None:
        raise InvalidData("Expected texts or --file, found both: leave one out.")
    if texts:
        yield from (Example(text, "") for text in texts)
    elif file is None or str(file) == "-":
        if sys.stdin.isatty():
            print("Texts, one per line; end with Ctrl-D.", file=sys.stderr)
        with suppress(AttributeError, ValueError):  # a stream that was put in its place, or read before
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")  # type: ignore[union-attr]
        yield from _lines(sys.stdin, Path("the standard input"))
    elif file.suffix == ".txt":
        require_file(file)
        with file.open(encoding="utf-8-sig") as lines:
            yield from _lines(lines, file)
    else:
        yield from iterate_examples(file, text_column=column, label_column=None)


def _lines(file: TextIO, where: Path) -> "Iterator[Example]":
    from repcl.data import Example
    from repcl.data.rows import Lines

    lines = Lines(where, file)
    try:
        for line in lines:
            lines.end_row()
            if line.strip():
                yield Example(line.rstrip("\r\n"), "")
    except UnicodeDecodeError as error:
        raise InvalidData(f"Expected UTF-8 in {where}, found other bytes: save it as UTF-8.") from error


def _show_json(texts: "Sequence[Example]", found: Sequence[dict[str, Any]]) -> None:
    for example, answer in zip(texts, found, strict=True):
        print_json({"text": example.text} | answer)


def _show(texts: "Sequence[Example]", found: Sequence[dict[str, Any]]) -> None:
    """A table on a terminal; elsewhere lines of label, confidence and text, separated by tabs."""
    rows = [[example.text, " | ".join(_ranks(answer))] for example, answer in zip(texts, found, strict=True)]
    console = make_console()
    if console.is_terminal:
        print_table(console, "Most likely classes", ["text", "class"], rows)
        return
    for example, answer in zip(texts, found, strict=True):
        ranks, line = " | ".join(_ranks(answer)), " ".join(example.text.split())
        print(f"{printable(ranks)}\t{printable(line)}", flush=True)


def _ranks(answer: dict[str, Any]) -> list[str]:
    named = [f"{rank['label']} {rank['probability']:.2f}" for rank in answer["top"]]
    return [UNKNOWN, *(f"({name})" for name in named)] if answer["is_unknown"] else named


def _scores(tested: "Sequence[Example]", found: Sequence[str], strangers: Counter[str]) -> dict[str, Any]:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    labels = [example.label for example in tested]
    names = sorted(set(labels))
    precision, recall, _, texts = precision_recall_fscore_support(
        labels, found, labels=names, zero_division=math.nan
    )
    classes = [
        {
            "class": name,
            "texts": int(texts[index]),
            "recall": float(recall[index]),
            "precision": None if math.isnan(precision[index]) else float(precision[index]),
        }
        for index, name in enumerate(names)
    ]
    return {
        "accuracy": float(accuracy_score(labels, found)),
        "texts": len(tested),
        "classes": classes,
        "unknown_labels": dict(sorted(strangers.items())),
    }


def _show_scores_json(result: dict[str, Any]) -> None:
    print_json(result)


def _show_scores(result: dict[str, Any]) -> None:
    console = make_console()
    rows = [
        [row["class"], str(row["texts"]), f"{row['recall']:.1%}", _percent(row["precision"])]
        for row in result["classes"]
    ]
    print_table(console, "Classes", ["class", "texts", "recall", "precision"], rows)
    console.print(f"Accuracy {result['accuracy']:.1%} on {result['texts']} texts.", highlight=False)
    if result["unknown_labels"]:
        count, names = sum(result["unknown_labels"].values()), listed(result["unknown_labels"])
        console.print(
            f"Left out: {count} texts of classes the model does not know ({names}).",
            highlight=False,
        )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
