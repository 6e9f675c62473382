"""The model's answers compared with the right labels."""

from collections import Counter
from collections.abc import Sequence

from repcl.data import Example
from repcl.errors import InvalidData, InvalidSetting, listed
from repcl.serving.batching import Answerer
from repcl.serving.bodies import ClassScore, Confusion, EvaluateBody
from repcl.serving.model import Question

CONFUSIONS_SHOWN = 20
TEXTS_SHOWN = 5


async def evaluated(examples: Sequence[Example], answerer: Answerer) -> EvaluateBody:
    """Compare answers with labels; texts of classes that the model does not know are left out."""
    if answerer.current.served.state.is_multilabel:
        raise InvalidSetting("Texts of this model may have several labels: use `repcl evaluate`.")
    model, answers = await answerer.ask(Question(examples, top=1))
    known = set(model.state.names)
    rows = [
        (example, answer["top"][0]["label"], answer["confidence"])
        for example, answer in zip(examples, answers, strict=True)
        if example.label in known
    ]
    if not rows:
        names = listed(sorted({example.label for example in examples}), 5)
        raise InvalidData(
            f"No text is of a class that the model knows (found {names}): learn them first, or check the "
            "labels."
        )
    scores = _scores([(example.label, found) for example, found, _ in rows])
    wrong = sorted((row for row in rows if row[0].label != row[1]), key=lambda row: -row[2])
    return EvaluateBody(
        revision=model.number,
        accuracy=(len(rows) - len(wrong)) / len(rows),
        macro_recall=sum(score.recall for score in scores) / len(scores),
        classes=scores,
        confusions=_confusions([(example, found) for example, found, _ in wrong]),
    )


def _scores(pairs: Sequence[tuple[str, str]]) -> list[ClassScore]:
    """Recall and precision of every label that occurs, from labels and answers."""
    texts, answered = Counter(label for label, _ in pairs), Counter(found for _, found in pairs)
    right = Counter(label for label, found in pairs if label == found)
    return [
        ClassScore(
            label=label,
            texts=texts[label],
            recall=right[label] / texts[label],
            precision=right[label] / answered[label] if answered[label] else None,
        )
        for label in sorted(texts)
    ]


def _confusions(wrong: Sequence[tuple[Example, str]]) -> list[Confusion]:
    """What is taken for what, the most frequent first."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for example, found in wrong:
        pairs.setdefault((example.label, found), []).append(example.text)
    worst = sorted(pairs.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:CONFUSIONS_SHOWN]
    return [
        Confusion(label=label, predicted=predicted, count=len(texts), texts=texts[:TEXTS_SHOWN])
        for (label, predicted), texts in worst
    ]
