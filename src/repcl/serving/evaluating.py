"""The model's answers compared with the right labels, of which a text may have several."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from repcl.classifier.judging import JudgedText, scores_by_label
from repcl.classifier.state import ClassifierState
from repcl.data import Example
from repcl.data.label_cells import labels_of_cell
from repcl.errors import InvalidData, listed
from repcl.serving.batching import Answerer
from repcl.serving.bodies import ClassScore, Confusion, EvaluateBody
from repcl.serving.model import Answer, Question, ServedModel

CONFUSIONS_SHOWN = 20
TEXTS_SHOWN = 5


async def evaluated(examples: Sequence[Example], answerer: Answerer) -> EvaluateBody:
    """Compare answers with labels; labels that the model does not know are left out."""
    state = answerer.current.served.state
    wanted = _labels_of_texts(examples, state)
    asked = [example for example, _ in wanted]
    model, answers = await answerer.ask(Question(asked, top=len(state.names) if state.is_multilabel else 1))
    known = frozenset(model.state.names)
    judged = [
        JudgedText(example.text, labels & known, _found(model, answer), answer["confidence"])
        for (example, labels), answer in zip(wanted, answers, strict=True)
        if labels & known
    ]
    if not judged:
        names = listed(sorted({example.label for example in examples}), 5)
        raise InvalidData(
            f"No text is of a class that the model knows (found {names}): learn them first, or check the "
            "labels."
        )
    scores = scores_by_label(judged)
    return EvaluateBody(
        revision=model.number,
        texts=len(judged),
        unknown_labels=Counter(sorted(label for _, labels in wanted for label in labels - known)),
        accuracy=sum(one.is_right for one in judged) / len(judged),
        macro_recall=sum(score.recall for score in scores) / len(scores),
        classes=[
            ClassScore(label=one.label, texts=one.texts, recall=one.recall, precision=one.precision)
            for one in scores
        ],
        confusions=_confusions(judged),
    )


def _labels_of_texts(
    examples: Sequence[Example], state: ClassifierState
) -> list[tuple[Example, frozenset[str]]]:
    """Examples with their labels, read as in learning; a text has several where the model allows it."""
    if not state.is_multilabel:
        return [(example, frozenset([str(state.label_of(example.label))])) for example in examples]
    found: dict[Example, frozenset[str]] = {}
    for example in examples:
        text = replace(example, label="")
        own = frozenset(str(state.label_of(label)) for label in labels_of_cell(example.label))
        found[text] = found.get(text, frozenset()) | own
    return list(found.items())


def _found(model: ServedModel, answer: Answer) -> frozenset[str]:
    """The labels that a text gets, whether it would be called unknown or not."""
    names = [one["label"] for one in answer["top"]]
    if not model.state.is_multilabel:
        return frozenset(names[:1])
    probabilities = np.array([[one["probability"] for one in answer["top"]]])
    has_label = model.state.has_labels(probabilities, names=names)[0]
    return frozenset(name for name, is_one in zip(names, has_label, strict=True) if is_one)


def _confusions(judged: Sequence[JudgedText[str]]) -> list[Confusion]:
    """What is taken for what, the most frequent first; of each the model's surest texts."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for one in sorted(judged, key=lambda one: -one.confidence):
        for pair in one.confusions():
            pairs.setdefault(pair, []).append(one.asked)
    worst = sorted(pairs.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:CONFUSIONS_SHOWN]
    return [
        Confusion(label=label, predicted=predicted, count=len(texts), texts=texts[:TEXTS_SHOWN])
        for (label, predicted), texts in worst
    ]
