import pytest
import torch

from repcl.data import Batch, TokenizedExample
from repcl.data.batches import collate
from repcl.methods.idbr.halves import Frame, in_two_parts, middle_cut, random_cut

CLS, SEP, PAD = 101, 102, 0
FRAME = Frame(before=1, after=1, separator=SEP, pad=PAD, longest=512)
A, B, C, D, E = 1, 2, 3, 4, 5


def row(*tokens: int, spans: tuple[tuple[int, int], ...] = ()) -> TokenizedExample:
    ids = (CLS, *tokens, SEP)
    return TokenizedExample(ids, spans or ((0, len(ids)),))


def batch_of(*rows: TokenizedExample) -> Batch:
    numbers = list(range(len(rows)))
    return collate(rows, numbers, numbers, pad_id=PAD, device=torch.device("cpu"))


def test_a_text_cut_after_two_tokens_has_the_rest_behind_a_separator() -> None:
    parted, segments = in_two_parts(batch_of(row(A, B, C, D, E)), [2], FRAME)
    assert parted.ids.tolist() == [[CLS, A, B, SEP, C, D, E, SEP]]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]


def test_a_swapped_text_begins_with_its_second_part() -> None:
    parted, segments = in_two_parts(batch_of(row(A, B, C, D, E)), [3], FRAME, is_swapped=True)
    assert parted.ids.tolist() == [[CLS, D, E, SEP, A, B, C, SEP]]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]


def test_a_text_of_one_token_has_one_empty_part() -> None:
    in_order, _ = in_two_parts(batch_of(row(A)), [1], FRAME)
    swapped, _ = in_two_parts(batch_of(row(A)), [1], FRAME, is_swapped=True)
    assert in_order.ids.tolist() == [[CLS, A, SEP, SEP]]
    assert swapped.ids.tolist() == [[CLS, SEP, A, SEP]]


def test_padding_belongs_to_the_second_segment_and_to_no_mask() -> None:
    parted, segments = in_two_parts(batch_of(row(A), row(A, B, C)), [1, 1], FRAME)
    assert parted.ids.tolist() == [[CLS, A, SEP, SEP, PAD, PAD], [CLS, A, SEP, B, C, SEP]]
    assert parted.mask.tolist() == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
    assert segments.tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1]]


def test_labels_and_positions_stay() -> None:
    batch = batch_of(row(A, B), row(B, A))
    parted, _ = in_two_parts(batch, [1, 1], FRAME)
    assert torch.equal(parted.labels, batch.labels)
    assert torch.equal(parted.positions, batch.positions)


@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize("tokens", [1, 2, 3, 5, 8])
def test_every_token_can_be_read_at_its_new_place(tokens: int, is_swapped: bool) -> None:
    text = range(10, 10 + tokens)
    one_by_one = tuple((index, index + 1) for index in range(1, tokens + 1))
    for cut in range(1, max(tokens, 2)):
        parted, _ = in_two_parts(batch_of(row(*text, spans=one_by_one)), [cut], FRAME, is_swapped=is_swapped)
        ids = parted.ids[0].tolist()
        assert [ids[start] for start, _ in parted.spans[0].tolist()] == list(text)
        assert sorted(ids) == sorted([CLS, *text, SEP, SEP])
        assert len(ids) == tokens + 3


def test_a_span_of_the_whole_row_stays_the_whole_row() -> None:
    parted, _ = in_two_parts(batch_of(row(A, B, C)), [1], FRAME)
    assert parted.spans.tolist() == [[[0, 6]]]


def test_a_span_of_several_tokens_moves_as_one() -> None:
    trigger = row(A, B, C, D, spans=((2, 4),))  # B and C
    in_order, _ = in_two_parts(batch_of(trigger), [1], FRAME)
    swapped, _ = in_two_parts(batch_of(trigger), [3], FRAME, is_swapped=True)
    assert in_order.spans.tolist() == [[[3, 5]]]
    assert swapped.ids.tolist() == [[CLS, D, SEP, A, B, C, SEP]]
    assert swapped.spans.tolist() == [[[4, 6]]]


def test_the_last_separator_gives_way_where_there_is_no_room() -> None:
    full = Frame(before=1, after=1, separator=SEP, pad=PAD, longest=4)
    parted, _ = in_two_parts(batch_of(row(A, B)), [1], full)
    assert parted.ids.tolist() == [[CLS, A, SEP, B]]
    assert parted.spans.tolist() == [[[0, 4]]]


def test_random_cuts_leave_a_token_on_either_side() -> None:
    generator = torch.Generator().manual_seed(0)
    assert {random_cut(4, (), generator) for _ in range(50)} == {1, 2, 3}


def test_random_cuts_never_cut_a_span() -> None:
    generator = torch.Generator().manual_seed(0)
    assert {random_cut(5, [(1, 4)], generator) for _ in range(50)} == {1, 4}


@pytest.mark.parametrize(("tokens", "spans"), [(1, []), (3, [(0, 3)]), (0, [])])
def test_a_text_without_a_place_to_cut_is_left_whole(tokens: int, spans: list[tuple[int, int]]) -> None:
    assert random_cut(tokens, spans, torch.Generator()) == tokens


@pytest.mark.parametrize(("tokens", "expected"), [(0, 0), (1, 0), (2, 1), (5, 2)])
def test_the_middle_cut_halves_the_tokens(tokens: int, expected: int) -> None:
    assert middle_cut(tokens, ()) == expected


def test_the_middle_cut_makes_way_for_a_span() -> None:
    assert middle_cut(8, [(3, 7)]) == 3


def test_the_frame_sees_the_spans_of_a_text_but_not_the_whole_row() -> None:
    batch = batch_of(row(A, B, C, spans=((2, 4),)))
    assert FRAME.inside(batch) == [(3, [(1, 3)])]
    assert FRAME.inside(batch_of(row(A, B, C))) == [(3, [])]
