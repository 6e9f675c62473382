"""What an update did, for people who were not there: a sentence, and every old class before and after."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from repcl.classifier import Update
from repcl.classifier.state import ClassifierState
from repcl.classifier.wording import advice, described
from repcl.serving.bodies import ClassEffect, DoubtfulText, Summary

LOST_TEXTS_SHOWN = 5
DOUBTFUL_TEXTS_SHOWN = 20


class Right(NamedTuple):
    """How many checked texts of a class there are, and how many get its label."""

    texts: int
    correct: int

    @property
    def share(self) -> float | None:
        """The share that gets its label; None without any."""
        return self.correct / self.texts if self.texts else None


def was_right(state: ClassifierState) -> dict[str, Right]:
    """Checked texts of every class, before or after a change."""
    checks = state.checks_before().values()
    texts = Counter(check.label for check in checks)
    correct = Counter(check.label for check in checks if check.is_correct)
    return {name: Right(texts[name], correct[name]) for name in state.names}


def summary_of(
    update: Update, before: Mapping[str, Right], after: Mapping[str, Right], notes: Sequence[str]
) -> Summary:
    """What an update did; regressed classes come first."""
    sentence = described(update)
    return Summary(
        sentence=f"{sentence[:1].upper()}{sentence[1:]}.",
        reasons=list(update.reasons),
        new_classes=list(update.new_classes),
        examples=update.examples,
        corrected=update.corrected,
        accuracy_before=update.accuracy_before,
        accuracy_after=update.accuracy_after,
        classes=[*_regressed(update), *_steady(update, before, after)],
        doubtful_texts=_doubtful(update) if update.is_refused else [],
        notes=list(notes),
    )


def _doubtful(update: Update) -> list[DoubtfulText]:
    return [
        DoubtfulText(text=one.text, label=one.label, likelier=one.answer)
        for one in update.doubtful_texts[:DOUBTFUL_TEXTS_SHOWN]
    ]


def _regressed(update: Update) -> list[ClassEffect]:
    return [
        ClassEffect(
            label=change.name,
            texts=change.texts,
            before=change.correct_before / change.texts if change.texts else None,
            after=change.correct_after / change.texts if change.texts else None,
            regressed=True,
            taken_by=change.taken_by,
            lost_texts=[one.text for one in update.lost_texts if one.label == change.name][:LOST_TEXTS_SHOWN],
            advice=advice(change, update),
        )
        for change in update.regressed
    ]


def _steady(update: Update, before: Mapping[str, Right], after: Mapping[str, Right]) -> list[ClassEffect]:
    """Old classes that are still there and did not get worse."""
    worse = {change.name for change in update.regressed}
    return [
        ClassEffect(
            label=name,
            texts=right.texts,
            before=right.share,
            after=after[name].share,
            regressed=False,
        )
        for name, right in sorted(before.items())
        if name in after and name not in worse
    ]
