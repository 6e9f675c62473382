"""Padded batches of similar length."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
import torch

from repcl.data import Batches, TokenizedExample
from repcl.data.batches import balanced_draw, similar_length_order

PAD = 9


def made_batches(lengths: Sequence[int], batch_size: int, *, seed: int | None = None) -> Batches:
    return Batches(
        [TokenizedExample(tuple(range(100, 100 + length)), ((0, length),)) for length in lengths],
        list(range(1000, 1000 + len(lengths))),
        batch_size=batch_size,
        pad_id=PAD,
        device=torch.device("cpu"),
        generator=None if seed is None else torch.Generator().manual_seed(seed),
    )


def positions(batches: Batches) -> list[list[int]]:
    return [batch.positions.tolist() for batch in batches]


def padded_tokens_per_real_token(orders: Iterable[Sequence[int]], lengths: Sequence[int]) -> float:
    padded = sum(len(rows) * max(lengths[row] for row in rows) for rows in orders)
    return padded / sum(lengths)


def made_up_lengths() -> list[int]:
    """2,000 lengths as skewed as those of sentences: median 20, most between 9 and 44."""
    spread = torch.randn(2000, generator=torch.Generator().manual_seed(0))
    return (20 * (0.4 * spread).exp()).round().int().tolist()


def test_rows_are_padded_on_the_right_with_the_pad_token() -> None:
    batch = made_batches([1, 3], 2).take([0, 1])
    assert batch.ids.tolist() == [[100, PAD, PAD], [100, 101, 102]]


def test_the_mask_is_one_on_real_tokens_only() -> None:
    batch = made_batches([1, 3], 2).take([0, 1])
    assert batch.mask.tolist() == [[1, 0, 0], [1, 1, 1]]


def test_rows_travel_with_their_labels_spans_and_positions() -> None:
    batch = made_batches([4, 2, 5], 2).take([2, 0])
    assert batch.labels.tolist() == [1002, 1000]
    assert batch.positions.tolist() == [2, 0]
    assert batch.spans.tolist() == [[[0, 5]], [[0, 4]]]


def test_a_batch_is_as_long_as_its_rows_are_many() -> None:
    assert len(made_batches([4, 2, 5], 2).take([2, 0])) == 2


@pytest.mark.parametrize("seed", [None, 3])
def test_every_row_comes_once_per_epoch(seed: int | None) -> None:
    seen = [row for rows in positions(made_batches([5, 3, 8, 1, 1, 9, 2], 3, seed=seed)) for row in rows]
    assert sorted(seen) == [0, 1, 2, 3, 4, 5, 6]


def test_the_number_of_batches_is_rounded_up() -> None:
    batches = made_batches([5, 3, 8, 1, 1, 9, 2], 3, seed=0)
    assert len(batches) == len(list(batches)) == 3


def test_epochs_differ_from_each_other() -> None:
    batches = made_batches(range(1, 41), 4, seed=0)
    assert positions(batches) != positions(batches)


def test_which_rows_meet_differs_between_epochs_too() -> None:
    batches = made_batches(range(1, 101), 4, seed=0)
    groups = [{frozenset(rows) for rows in positions(batches)} for _ in range(2)]
    assert groups[0] != groups[1]


def test_the_same_generator_gives_the_same_epochs() -> None:
    first, second = made_batches(range(1, 41), 4, seed=5), made_batches(range(1, 41), 4, seed=5)
    assert [positions(first) for _ in range(3)] == [positions(second) for _ in range(3)]


def test_without_a_generator_rows_come_by_length() -> None:
    assert positions(made_batches([5, 3, 8, 1], 2)) == [[3, 1], [0, 2]]


def test_without_a_generator_every_pass_is_the_same() -> None:
    batches = made_batches([5, 3, 8, 1], 2)
    assert positions(batches) == positions(batches)


def test_no_rows_make_no_batches() -> None:
    batches = made_batches([], 4, seed=0)
    assert (len(batches), list(batches)) == (0, [])


def test_random_batches_of_32_would_be_mostly_padding() -> None:
    lengths = made_up_lengths()
    shuffled = torch.randperm(len(lengths), generator=torch.Generator().manual_seed(1)).split(32)
    assert padded_tokens_per_real_token((rows.tolist() for rows in shuffled), lengths) > 1.8


def test_batches_of_similar_length_cut_the_padding() -> None:
    lengths = made_up_lengths()
    orders = similar_length_order(lengths, 32, torch.Generator().manual_seed(1))
    assert padded_tokens_per_real_token(orders, lengths) < 1.3


def test_long_batches_do_not_always_come_last() -> None:
    order = similar_length_order(range(1, 257), 32, torch.Generator().manual_seed(0))
    longest = [max(rows) for rows in order]
    assert longest != sorted(longest)


def test_a_balanced_draw_takes_equally_many_of_every_class() -> None:
    labels = [0] * 20 + [1] * 3 + [2] * 9
    drawn = balanced_draw(labels, 9, torch.Generator().manual_seed(0))
    assert len(set(drawn)) == 9
    assert Counter(labels[row] for row in drawn) == {0: 3, 1: 3, 2: 3}


def test_a_class_with_too_few_rows_leaves_its_share_to_the_others() -> None:
    labels = [0] * 20 + [1]
    drawn = balanced_draw(labels, 5, torch.Generator().manual_seed(0))
    assert Counter(labels[row] for row in drawn) == {0: 4, 1: 1}


def test_fewer_rows_than_classes_are_of_different_classes() -> None:
    drawn = balanced_draw([0, 0, 1, 1, 2, 2, 3, 3], 3, torch.Generator().manual_seed(0))
    assert len({row // 2 for row in drawn}) == 3


def test_rows_that_were_drawn_least_come_first() -> None:
    before = {0: 2, 1: 1, 2: 1, 4: 1, 5: 2, 6: 1}  # of a class 0 to 3, of the other 4 to 7
    drawn = balanced_draw([0] * 4 + [1] * 4, 2, torch.Generator().manual_seed(0), before)
    assert sorted(drawn) == [3, 7]


def test_fewer_rows_than_classes_are_of_those_that_were_drawn_least() -> None:
    drawn = balanced_draw([0, 1, 2, 3], 2, torch.Generator().manual_seed(0), {0: 1, 2: 1})
    assert sorted(drawn) == [1, 3]


def test_epochs_of_a_part_show_every_row_equally_often() -> None:
    batches = parts(of=12, most=6)
    shown = Counter(row for _ in range(6) for batch in batches for row in batch.positions.tolist())
    assert shown == dict.fromkeys(range(12), 3)


def parts(of: int, most: int) -> Batches:
    """Batches of so many rows, of three classes in turn, some of them in each epoch."""
    return Batches(
        [TokenizedExample((1,) * (2 + row), ((0, 1),)) for row in range(of)],
        [row % 3 for row in range(of)],
        batch_size=4,
        pad_id=0,
        device=torch.device("cpu"),
        generator=torch.Generator().manual_seed(0),
        most=most,
    )


def test_every_epoch_of_a_part_is_drawn_anew() -> None:
    batches = parts(of=12, most=6)
    epochs = [[batch.positions.tolist() for batch in batches] for _ in range(20)]
    assert len(batches) == 2
    for epoch in epochs:
        assert [len(batch) for batch in sorted(epoch, key=len)] == [2, 4]
        assert Counter(row % 3 for batch in epoch for row in batch) == {0: 2, 1: 2, 2: 2}
    assert {row for epoch in epochs for batch in epoch for row in batch} == set(range(12))


def test_a_part_larger_than_all_is_all() -> None:
    rows = [TokenizedExample((1,) * (2 + row), ((0, 1),)) for row in range(5)]
    orders = []
    for most in (None, 5, 9):
        generator = torch.Generator().manual_seed(0)
        batches = Batches(
            rows, [0] * 5, batch_size=2, pad_id=0, device=torch.device("cpu"), generator=generator, most=most
        )
        assert len(batches) == 3
        orders.append([batch.positions.tolist() for batch in batches])
    assert orders[0] == orders[1] == orders[2]
