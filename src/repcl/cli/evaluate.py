"""`repcl evaluate`: compare a model's answers with the labels of a data file; what is taken for what."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from repcl.cli.answered import require_room, require_table, write_table
from repcl.cli.console import make_console, print_json, sentence_console
from repcl.cli.evaluate_labels import confused_pairs, found_cell, label_sets, scores_of_labels, wanted_labels
from repcl.cli.options import (
    Device,
    Json,
    LabelColumn,
    Model,
    Revision,
    TextColumn,
    Threshold,
    require_use,
)
from repcl.cli.outputs import Force
from repcl.cli.stages import notes_to
from repcl.cli.tables import counted, print_table
from repcl.cli.texts import print_note
from repcl.errors import InvalidData, listed

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier
    from repcl.data.files import Read

CONFUSIONS_SHOWN = 10
TEXTS_SHOWN = 2
LONGEST_TEXT = 60
ADDED = ("predicted", "confidence")


def evaluate(
    model: Model,
    data: Annotated[
        Path, typer.Argument(help="CSV, JSONL, Parquet or Excel file with columns text and label.")
    ],
    errors: Annotated[
        Path | None,
        typer.Option(help="A .csv, .tsv or .jsonl file for all rows that the model got wrong."),
    ] = None,
    force: Force = False,
    unknown: Annotated[
        bool,
        typer.Option(
            "--unknown", help="Also measure how many known texts are accepted and unknown ones caught."
        ),
    ] = False,
    unknown_label: Annotated[
        str | None,
        typer.Option(help="Label that marks unknown texts in DATA; classes never learned count, too."),
    ] = None,
    threshold: Threshold = "auto",
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    revision: Revision = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compare a model's answers with the labels in DATA."""
    from repcl.classifier.store.folder import ModelFolder
    from repcl.data.files import read_labeled

    if errors is not None:
        require_table(errors, "--errors", force=force, sources=(data,))
    ModelFolder(model).current()
    rows = read_labeled(
        data,
        text_column=text_column,
        label_column=label_column,
        note=print_note,
        every_column=errors is not None,
    )
    if errors is not None:
        require_room((row.cells for row in rows), ADDED, "--errors")
    from repcl.classifier import ContinualClassifier  # takes seconds; a bad file is said at once

    classifier = ContinualClassifier.load(model, revision=revision, device=device)
    has_several = classifier.fitted_state().is_multilabel
    labels = [wanted_labels(classifier, row, has_several=has_several) for row in rows]
    if not has_several:
        require_use(threshold, unknown=unknown, unknown_label=unknown_label is not None)
        rows = [_with_label(row, name) for row, (name,) in zip(rows, labels, strict=True)]
    known = {str(label) for label in classifier.classes_} - {unknown_label}
    is_known = [not known.isdisjoint(names) for names in labels]
    tested = [row for row, is_one in zip(rows, is_known, strict=True) if is_one]
    strangers = [row for row, is_one in zip(rows, is_known, strict=True) if not is_one]
    if not tested:
        names = listed(sorted({row.example.label for row in strangers}), 5)
        raise InvalidData(
            f"No text of {data} is of a class that {model} knows (found {names}): "
            "learn them first, or check the labels."
        )
    with notes_to(sentence_console(stderr=True)):
        judged = (_judged_sets if has_several else _judged)(classifier, tested, threshold)
        rejection = None
        if unknown or unknown_label is not None:
            rejection = _rejection(classifier, tested, strangers, threshold)
    wrong = judged.wrong
    result = judged.scores | {
        "unknown_labels": dict(sorted(Counter(row.example.label for row in strangers).items())),
        "confusions": _confusions(judged.confused),
    }
    result |= {"unknown": rejection} if rejection else {}
    if errors is not None:
        columns = [*dict.fromkeys(name for row in rows for name in row.cells), *ADDED]
        cells = [
            {**one.row.cells, **dict(zip(ADDED, (one.predicted, round(one.confidence, 4)), strict=True))}
            for one in wrong
        ]
        write_table(errors, cells, "--errors", force=force, columns=columns)
    print_json(result) if as_json else _show(result, len(wrong), errors)


class Wrong(NamedTuple):
    """A row that got another label than its own."""

    row: "Read"
    predicted: str
    confidence: float


class Judged(NamedTuple):
    """What came out: scores, the rows that got another answer, and what was taken for what in them."""

    scores: dict[str, Any]
    wrong: list[Wrong]
    confused: list[Wrong]


def _judged(classifier: "ContinualClassifier", tested: "Sequence[Read]", _: str) -> Judged:
    """Answers of a model that gives a text one label."""
    probabilities = classifier.predict_proba([row.example for row in tested])
    found = [str(label) for label in classifier.classes_[probabilities.argmax(axis=1)]]
    wrong = _wrong(tested, found, probabilities.max(axis=1))
    return Judged(_scores([row.example.label for row in tested], found), wrong, wrong)


def _judged_sets(classifier: "ContinualClassifier", tested: "Sequence[Read]", threshold: str) -> Judged:
    """Answers of a model that may give a text several labels."""
    sets = label_sets(classifier, tested, threshold)
    wrong = [Wrong(one.asked, found_cell(one), one.confidence) for one in sets if not one.is_right]
    return Judged(scores_of_labels(sets), wrong, [Wrong(*pair) for pair in confused_pairs(sets)])


def _wrong(tested: "Sequence[Read]", found: Sequence[str], confidence: Any) -> list[Wrong]:
    return [
        Wrong(row, predicted, float(share))
        for row, predicted, share in zip(tested, found, confidence, strict=True)
        if predicted != row.example.label
    ]


def _scores(labels: Sequence[str], found: Sequence[str]) -> dict[str, Any]:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

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
        "macro_recall": float(recall.mean()),
        "texts": len(labels),
        "classes": classes,
    }


def _confusions(wrong: Sequence[Wrong]) -> list[dict[str, Any]]:
    """What is taken for what, the most frequent first, with the texts that the model is surest about."""
    pairs: dict[tuple[str, str], list[Wrong]] = {}
    for one in sorted(wrong, key=lambda one: -one.confidence):
        pairs.setdefault((one.row.example.label, one.predicted), []).append(one)
    worst = sorted(pairs.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:CONFUSIONS_SHOWN]
    return [
        {
            "label": label,
            "predicted": predicted,
            "texts": len(own),
            "examples": [one.row.example.text for one in own[:TEXTS_SHOWN]],
        }
        for (label, predicted), own in worst
    ]


def _with_label(row: "Read", label: str) -> "Read":
    return row._replace(example=replace(row.example, label=label))


def _rejection(
    classifier: "ContinualClassifier", tested: "Sequence[Read]", strangers: "Sequence[Read]", threshold: str
) -> dict[str, Any]:
    """How well the rule for unknown texts tells texts of known classes from others."""
    from sklearn.metrics import roc_auc_score

    state = classifier.fitted_state()
    rule = state.unknown_rule(threshold)
    of_known = state.evidence([row.example for row in tested])
    accepted = 1 - float(rule.applies(of_known).mean())
    is_least_confidence = rule.familiarity is None or of_known.nearness is None
    result = {
        "threshold": rule.least if is_least_confidence else None,
        "known_texts": len(tested),
        "accepted": accepted,
    }
    if not strangers:
        return result | {"unknown_texts": 0, "caught": None, "auroc": None}
    of_unknown = state.evidence([row.example for row in strangers])
    certainty = [*rule.certainty(of_known), *rule.certainty(of_unknown)]
    is_known = [True] * len(tested) + [False] * len(strangers)
    return result | {
        "unknown_texts": len(strangers),
        "caught": float(rule.applies(of_unknown).mean()),
        "auroc": float(roc_auc_score(is_known, certainty)),
    }


# ---- what is shown ------------------------------------------------------------------------------


def _show(result: Mapping[str, Any], wrong: int, errors: Path | None) -> None:
    console = make_console()
    rows = [
        [row["class"], str(row["texts"]), f"{row['recall']:.1%}", _percent(row["precision"])]
        for row in sorted(result["classes"], key=lambda row: -row["recall"])
    ]
    print_table(console, "Classes, worst last", ["class", "texts", "recall", "precision"], rows)
    say = sentence_console().print
    texts, over = counted(result["texts"], "text"), f"over {counted(len(rows), 'class')}"
    if "f1" in result:
        say(
            f"F1 {result['f1']:.1%}, macro F1 {result['macro_f1']:.1%} {over}; "
            f"exactly the right labels for {result['accuracy']:.1%} of {texts}."
        )
    else:
        say(
            f"Accuracy {result['accuracy']:.1%} on {texts}; macro recall {result['macro_recall']:.1%} {over}."
        )
    if result["unknown_labels"]:
        count, names = sum(result["unknown_labels"].values()), listed(result["unknown_labels"])
        say(f"Left out: {counted(count, 'text')} of classes the model does not know ({names}).")
    if "unknown" in result:
        say(_about_unknown(result["unknown"]))
    if result["confusions"]:
        title = f"{'Labels missed and added' if 'f1' in result else 'Taken for another class'}: "
        title += counted(wrong, "text")
        columns = ["label", "answer", "texts", "such as"]
        cells = [
            (one["label"], one["predicted"], str(one["texts"]), tuple(map(_cut, one["examples"])))
            for one in result["confusions"]
        ]
        print_table(console, title, columns, cells)
    if errors is not None:
        say(f"Wrote {counted(wrong, 'row')} to {errors}.")


def _about_unknown(found: Mapping[str, Any]) -> str:
    least = found["threshold"]
    rule = "by confidence and nearness" if least is None else f"below a confidence of {least:.3f}"
    accepted = (
        f"Unknown texts, {rule}: {found['accepted']:.1%} of {counted(found['known_texts'], 'text')} of known "
        "classes accepted"
    )
    if not found["unknown_texts"]:
        return f"{accepted}; no texts of other classes to catch."
    texts = counted(found["unknown_texts"], "unknown text")
    return f"{accepted}, {found['caught']:.1%} of {texts} caught; AUROC {found['auroc']:.3f}."


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[:LONGEST_TEXT]}…"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
