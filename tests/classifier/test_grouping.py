"""How many groups texts form."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from repcl.classifier.grouping import FEW_TEXTS, GROWTH, Guide, group_vectors, learned_guide, merge_gaps


def classes(count: int, each: int, *, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of unit length around directions drawn at random, and their classes."""
    draw = np.random.default_rng(seed)
    means = draw.normal(size=(count, 64))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    labels = np.repeat(np.arange(count), each)
    vectors = means[labels] + noise * draw.normal(size=(len(labels), 64)) / 8
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), labels


def test_the_gap_of_a_merge_is_worked_out_by_hand():
    # two pairs, 1 apart inside and 10 apart between their means
    tree = linkage(np.array([[0.0], [1.0], [10.0], [11.0]]), method="ward")
    inside = 0.5 / (1 + FEW_TEXTS)  # 1·1/(1+1)·1², harmonic mean of 1 and 1
    between = 100 / (2 + FEW_TEXTS)  # 2·2/(2+2)·10²
    assert merge_gaps(tree) == pytest.approx([inside, inside, between])


def test_a_merge_has_at_least_the_gaps_inside():
    tree = np.array([[0, 1, 9.0, 2], [2, 3, 1.0, 3]])
    assert merge_gaps(tree)[1] == merge_gaps(tree)[0]


def test_unlearned_classes_come_out_in_about_their_number():
    known, labels = classes(20, 15, noise=0.9)
    guide = learned_guide(known, labels)
    for count, each in ((8, 10), (16, 6), (30, 20)):
        strangers, _ = classes(count, each, noise=0.9, seed=count)
        found = len(set(group_vectors(strangers, guide=guide)[0].tolist()))
        assert 0.75 * count <= found <= 1.25 * count


def test_a_guide_of_wide_classes_makes_fewer_groups_than_one_of_narrow_classes():
    # twelve topics of three classes each: learned topics lead to topics, learned classes to classes
    draw = np.random.default_rng(0)
    topics = np.repeat(draw.normal(size=(12, 64)), 3, axis=0)
    means = topics + 0.6 * draw.normal(size=topics.shape)
    vectors = np.repeat(means, 8, axis=0) + 0.5 * draw.normal(size=(288, 64))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    of_class = np.repeat(np.arange(36), 8)
    half = of_class < 18
    narrow = learned_guide(vectors[half], of_class[half])
    wide = learned_guide(vectors[half], of_class[half] // 3)
    numbers = [len(set(group_vectors(vectors[~half], guide=guide)[0].tolist())) for guide in (wide, narrow)]
    assert numbers == [6, 18]


def test_few_texts_of_many_classes_are_no_lump():
    for seed in range(5):
        known, labels = classes(20, 10, noise=1.0, seed=seed)
        strangers, _ = classes(12, 3, noise=1.0, seed=seed + 100)
        groups, _ = group_vectors(strangers, guide=learned_guide(known, labels))
        assert np.bincount(groups).max() <= len(strangers) / 3


def test_one_learned_class_or_none_leaves_the_usual_gap():
    known, labels = classes(1, 10, noise=1.0)
    assert learned_guide(known, labels) == Guide()
    assert learned_guide(known[:0], labels[:0]) == Guide()


def test_learned_classes_of_one_text_each_leave_the_usual_gap():
    known, labels = classes(5, 1, noise=1.0)
    assert learned_guide(known, labels) == Guide()


def test_with_a_trained_encoder_gaps_are_shares_of_the_spread():
    known, labels = classes(8, 10, noise=0.5)
    guide = learned_guide(known, labels, is_trained=True)
    assert guide.log_gap(10, spread=0.4) - guide.log_gap(10, spread=0.2) == pytest.approx(np.log(2))


def test_texts_in_one_place_are_one_group():
    labels, separation = group_vectors(np.ones((10, 4)))
    assert set(labels.tolist()) == {0}
    assert separation is None


def test_far_apart_classes_come_out_exactly_whatever_their_size():
    known, labels = classes(10, 20, noise=0.3)
    guide = learned_guide(known, labels)
    for count, each in ((3, 4), (3, 60), (25, 4), (25, 40)):
        strangers, _ = classes(count, each, noise=0.3, seed=count)
        assert len(set(group_vectors(strangers, guide=guide)[0].tolist())) == count


def test_the_gap_grows_beyond_the_sizes_that_were_measured_as_it_grew_between_them():
    guide = Guide(classes=10**9, sizes=np.log([2, 4, 8]).tolist(), gaps=[1.0, 1.5, 2.0])
    assert guide.log_gap(32, spread=1.0) == pytest.approx(3.0)  # one half for each doubling


def test_where_two_sizes_were_measured_growth_is_the_usual_one():
    guide = Guide(classes=10**9, sizes=np.log([2, 4]).tolist(), gaps=[1.0, 1.5])
    assert guide.log_gap(8, spread=1.0) == pytest.approx(1.5 + GROWTH * np.log(2))
