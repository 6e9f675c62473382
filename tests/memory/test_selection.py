"""Which examples of a class are kept."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from repcl.memory import nearest_to_centers, nearest_to_mean


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)[:, None]


def clusters(sizes: tuple[int, ...], *, spread: float = 0.1) -> np.ndarray:
    random = np.random.default_rng(0)
    parts = [10.0 * at + spread * random.normal(size=(size, 4)) for at, size in enumerate(sizes)]
    return np.concatenate(parts).astype(np.float32)


def test_two_centers_on_a_line_select_the_middle_of_each_group() -> None:
    features = column(0, 0.1, 0.2, 10, 10.1, 10.3)
    assert sorted(features[nearest_to_centers(features, 2), 0].tolist()) == pytest.approx([0.1, 10.1])


def test_the_row_of_the_largest_cluster_comes_first() -> None:
    chosen = nearest_to_centers(clusters((3, 9, 5)), 3)
    assert [("small", "large", "medium")[(row >= 3) + (row >= 12)] for row in chosen] == [
        "large", "medium", "small",
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9, 10, 11, 100])
def test_exactly_as_many_rows_as_asked_for_or_as_there_are(count: int) -> None:
    assert len(nearest_to_centers(clusters((4, 6)), count)) == min(count, 10)


@pytest.mark.parametrize("count", range(1, 20))
def test_no_row_is_chosen_twice(count: int) -> None:
    chosen = nearest_to_centers(np.random.default_rng(count).normal(size=(20, 3)), count)
    assert len(set(chosen)) == len(chosen)


def test_equal_rows_are_filled_up_with_different_ones() -> None:
    chosen = nearest_to_centers(column(1, 1, 1, 1, 5, 5), 4)
    assert len(set(chosen)) == 4
    assert {1.0, 5.0} == set(column(1, 1, 1, 1, 5, 5)[chosen, 0].tolist())


def test_rows_that_are_all_equal_are_no_trouble() -> None:
    assert sorted(nearest_to_centers(np.ones((6, 4), dtype=np.float32), 3)) == [0, 1, 2]


def test_of_many_equal_rows_the_first_are_kept() -> None:
    assert nearest_to_centers(np.ones((40, 4), dtype=np.float32), 3) == [0, 1, 2]


def test_of_many_clusters_of_one_size_the_order_is_that_of_their_numbers() -> None:
    features = clusters((3,) * 24)
    fitted = KMeans(24, n_init=10, random_state=0).fit(features)
    chosen = nearest_to_centers(features, 24)
    assert fitted.labels_[chosen].tolist() == list(range(24))


def test_rows_that_differ_by_rounding_alone_are_no_trouble() -> None:
    features = clusters((5, 5, 5), spread=1e-7) + 1.0
    chosen = nearest_to_centers(features, 6)
    assert len(set(chosen)) == 6
    assert {row // 5 for row in chosen[:3]} == {0, 1, 2}


def test_a_single_row_is_kept() -> None:
    assert nearest_to_centers(column(3.0), 10) == [0]


def test_no_rows_leave_nothing_to_keep() -> None:
    assert nearest_to_centers(np.empty(0, dtype=np.float32), 10) == []


def test_the_choice_is_the_same_each_time() -> None:
    features = np.random.default_rng(0).normal(size=(40, 3))
    assert nearest_to_centers(features, 5) == nearest_to_centers(features, 5)


def test_choosing_leaves_numpys_own_generator_alone() -> None:
    np.random.seed(0)
    untouched = np.random.random()
    np.random.seed(0)
    nearest_to_centers(np.random.default_rng(0).normal(size=(40, 3)), 5)
    assert np.random.random() == untouched


def test_nearest_to_mean_orders_rows_by_their_distance() -> None:
    assert nearest_to_mean(column(0, 4, 5, 11), 3) == [2, 1, 0]  # the mean is 5


def test_nearest_to_mean_gives_no_more_rows_than_there_are() -> None:
    assert nearest_to_mean(column(1, 2), 10) == [0, 1]


def test_rows_equally_near_to_the_mean_come_in_their_order() -> None:
    features = column(*[3, 1, -1, -3] * 10)  # the mean is 0
    near = [row for row in range(40) if row % 4 in (1, 2)]
    assert nearest_to_mean(features, 20) == near
