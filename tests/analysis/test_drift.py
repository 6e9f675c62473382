"""Drift and confusion by hand."""

from dataclasses import replace

import numpy as np
import pytest

from repcl.analysis.drift import centroid_movements, taken_for_newer
from repcl.evaluation import TestedExample


def test_movement_is_the_turn_and_the_relative_distance_of_old_centroids(make_snapshots):
    snapshots = make_snapshots([1.0] * 4, is_frozen=True)
    before = np.tile([3.0, 4.0, 0, 0, 0, 0, 0, 0], (120, 1)).astype(np.float32)
    after = np.tile([-4.0, 3.0, 0, 0, 0, 0, 0, 0], (120, 1)).astype(np.float32)  # a quarter turn
    moments = {**snapshots.after, 1: replace(snapshots.after[1], test=before)}
    moments[2] = replace(snapshots.after[2], test=after)
    first, second = centroid_movements(replace(snapshots, after=moments))
    assert (first.task, first.classes, second.classes) == (1, 2, 4)
    assert first.turned == pytest.approx(1)
    assert first.moved == pytest.approx(2**0.5)


def test_a_frozen_encoder_does_not_move(make_snapshots):
    for movement in centroid_movements(make_snapshots([1.0] * 4, is_frozen=True)):
        assert movement.turned == pytest.approx(0, abs=1e-6)
        assert movement.moved == 0


def test_only_mistakes_for_later_classes_count_the_most_frequent_first():
    tasks = {"a": 0, "b": 0, "c": 1, "d": 2}

    def tested(label: str, guess: str | None) -> TestedExample:
        return TestedExample("x", tasks[label], label, ("z", guess))

    examples = [
        *(tested("a", guess) for guess in ("a", "d", "d", "c", "b")),
        tested("b", "d"),
        tested("d", "a"),
        tested("c", None),
    ]
    found = [(one.label, one.taken_for, one.texts, one.share) for one in taken_for_newer(examples, tasks)]
    assert found == [("a", "d", 2, 0.4), ("a", "c", 1, 0.2), ("b", "d", 1, 1.0)]
    assert len(taken_for_newer(examples, tasks, most=1)) == 1
