"""Transfer: probes against a plain loop, and the cases that are zero by construction."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from repcl.analysis.transfer import (
    forward_transfer,
    masked_backward_transfer,
    masked_matrix,
    probe_accuracy,
    probe_matrix,
    steps_to_halve,
)


def plain_probe(snapshots, done, task, shots):
    """What the library computes, as anyone would write it with scikit-learn."""
    moment = snapshots.after[done]
    accuracies = []
    for start in range(0, 10, shots):
        rows, labels = [], []
        for label in (2 * task, 2 * task + 1):
            members = moment.probe[snapshots.probe_labels == label]
            for row in members[start : start + shots]:
                rows.append(row / np.linalg.norm(row))
                labels.append(label)
        is_tested = snapshots.test_tasks == task
        tested = np.array([row / np.linalg.norm(row) for row in moment.test[is_tested]])
        probe = LogisticRegression(C=10.0, max_iter=1000).fit(np.array(rows), labels)
        accuracies.append(probe.score(tested, snapshots.test_labels[is_tested]))
    return fmean(accuracies)


@pytest.mark.parametrize("shots", [1, 5, 10])
def test_the_probe_matrix_agrees_with_a_plain_loop(make_snapshots, shots):
    snapshots = make_snapshots([1.0, 2.0, 4.0, 4.0])
    matrix = probe_matrix(snapshots, shots=shots)
    for done in range(3):
        for task in range(3):
            expected = plain_probe(snapshots, done, task, shots) if task >= done else None
            assert matrix[done][task] == pytest.approx(expected)


def test_forward_transfer_compares_just_before_a_task_with_the_untouched_encoder():
    matrix = [[0.9, 0.8, 0.7], [None, 0.6, 0.65], [None, None, 0.5]]
    assert forward_transfer(matrix) == pytest.approx(((0.6 - 0.8) + (0.5 - 0.7)) / 2)


@pytest.mark.parametrize("shots", [1, 5, 10])
def test_forward_transfer_of_a_frozen_encoder_is_zero(make_snapshots, shots):
    snapshots = make_snapshots([1.0] * 4, is_frozen=True)
    assert forward_transfer(probe_matrix(snapshots, shots=shots)) == 0


def test_an_encoder_that_blurs_future_classes_has_negative_forward_transfer(make_snapshots):
    transfer = forward_transfer(probe_matrix(make_snapshots([0.5, 3.0, 6.0, 6.0]), shots=10))
    assert transfer is not None
    assert transfer < -0.1


def test_forward_transfer_needs_the_moment_before_a_task(make_snapshots):
    snapshots = make_snapshots([1.0] * 4)
    ends = replace(snapshots, after={done: snapshots.after[done] for done in (0, 3)})  # as for `joint`
    assert forward_transfer(probe_matrix(ends, shots=5)) is None


def test_a_task_of_one_class_cannot_be_probed():
    rows = np.ones((3, 2), dtype=np.float32)
    assert probe_accuracy(rows, np.zeros(3), rows, np.zeros(3), shots=1) is None


def test_every_set_of_a_probe_has_as_many_texts_of_every_class():
    # the only set of 2 + 2 texts: the third text of class 0, which lies among class 1, would spoil a second
    rows = np.array([[1, 0], [1, 0.1], [0, 1], [0, 1], [0.1, 1], [0.2, 1]], dtype=np.float32)
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert probe_accuracy(rows, labels, rows[[0, 3]], labels[[0, 3]], shots=2) == 1


def test_one_text_of_each_of_many_classes_is_probed_without_a_warning():
    rows, labels = np.eye(30, dtype=np.float32), np.arange(30)  # warnings are errors in this suite
    assert probe_accuracy(rows, labels, rows, labels, shots=1) == 1


def test_a_class_with_few_probe_texts_is_probed_with_what_it_has():
    rows = np.array([[1, 0], [1, 0.1], [1, 0.2], [0, 1]], dtype=np.float32)
    labels = np.array([0, 0, 0, 1])
    assert probe_accuracy(rows, labels, rows, labels, shots=2) == 1


def test_masked_accuracies_are_counted_within_the_task(make_snapshots):
    snapshots = make_snapshots([1.0] * 4)
    last = snapshots.after[3]
    within = last.within_task.copy()
    within[:10] = 1  # half of class 0 is taken for the other class of its task
    changed = replace(snapshots, after={**snapshots.after, 3: replace(last, within_task=within)})
    assert masked_matrix(changed).as_lists() == [[1.0, None, None], [1.0, 1.0, None], [0.75, 1.0, 1.0]]
    assert masked_backward_transfer(changed) == pytest.approx((-0.25 + 0) / 2)


def test_backward_transfer_is_zero_when_within_task_answers_stay(make_snapshots):
    assert masked_backward_transfer(make_snapshots([1.0] * 4)) == 0


def test_learning_speed_is_the_first_step_at_half_the_first_loss():
    assert steps_to_halve([4, 4, 3, 2, 1, 1], window=1) == 4
    assert steps_to_halve([4, 4, 2, 2, 1, 1], window=2) == 4  # the mean of steps 3 and 4
    assert steps_to_halve([4, 4, 3, 3], window=1) is None
    assert steps_to_halve([], window=5) is None
