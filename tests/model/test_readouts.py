"""Input kinds: where markers go, what truncation keeps, what is pooled."""

import re
import warnings

import pytest
import torch

from repcl.data import Batch, Example, Span
from repcl.errors import InvalidData
from repcl.model import READOUTS, Encoder
from repcl.model.readouts import MARKERS
from tests.conftest import library_tokenizer, tiny_encoder

LONGEST = 64  # of the tiny encoder, [CLS] and [SEP] included
FILLER = "the sun is warm and cold "


def tokens(encoder: Encoder, example: Example) -> list[str]:
    (row,) = encoder.tokenize([example])
    return library_tokenizer(encoder).convert_ids_to_tokens(list(row.ids))


def shortened_tokens(encoder: Encoder, example: Example) -> list[str]:
    with pytest.warns(UserWarning, match="shortened"):
        return tokens(encoder, example)


def span_of(text: str, part: str, start: int = 0) -> Span:
    at = text.index(part, start)
    return Span(at, at + len(part))


def relation(text: str, head: str, tail: str) -> Example:
    return Example(text, "x", head=span_of(text, head), tail=span_of(text, tail))


def read_at(encoder: Encoder, example: Example) -> list[list[str]]:
    """The tokens under each span that the representation is read from."""
    (row,) = encoder.tokenize([example])
    names = library_tokenizer(encoder).convert_ids_to_tokens(list(row.ids))
    return [names[start:end] for start, end in row.spans]


# ---- pooling ---------------------------------------------------------------------------------------


def batch_of(spans: list[list[tuple[int, int]]], length: int) -> Batch:
    rows = len(spans)
    zeros = torch.zeros(rows, length, dtype=torch.long)
    return Batch(zeros, zeros, torch.tensor(spans), torch.zeros(rows), torch.arange(rows))


def test_a_sentence_is_read_from_special_tokens_too_and_not_from_padding() -> None:
    encoder = tiny_encoder()
    row, _ = encoder.tokenize([Example("rain", "x"), Example("the sun is warm", "x")])
    assert row.spans == ((0, 3),)  # [CLS] rain [SEP]


def test_the_mean_of_a_sentence_leaves_padding_out() -> None:
    states = torch.tensor([[[1.0, 0.0], [3.0, 6.0], [5.0, 0.0], [100.0, 100.0]]])
    pooled = READOUTS["sentence"]().pool(states, batch_of([[(0, 3)]], 4))
    assert pooled.tolist() == [[3.0, 2.0]]


def test_padding_does_not_change_the_representation_of_a_sentence() -> None:
    encoder = tiny_encoder()
    (row,) = encoder.tokenize([Example("the sun is warm", "x")])
    length = len(row.ids)
    ids = torch.zeros(1, length + 5, dtype=torch.long)
    mask = torch.zeros(1, length + 5, dtype=torch.long)
    ids[0, :length], mask[0, :length] = torch.tensor(row.ids), 1
    padded = Batch(ids, mask, torch.tensor([row.spans]), torch.zeros(1), torch.zeros(1))
    bare = Batch(ids[:, :length], mask[:, :length], padded.spans, padded.labels, padded.positions)
    with torch.no_grad():
        torch.testing.assert_close(encoder.represent(padded), encoder.represent(bare))


def test_a_relation_is_the_head_state_followed_by_the_tail_state() -> None:
    states = torch.arange(10.0).reshape(1, 5, 2)
    pooled = READOUTS["relation"]().pool(states, batch_of([[(3, 4), (1, 2)]], 5))
    assert pooled.tolist() == [[6.0, 7.0, 2.0, 3.0]]


def test_an_event_is_the_mean_over_its_trigger_pieces() -> None:
    states = torch.tensor([[[9.0], [2.0], [4.0], [9.0]], [[1.0], [9.0], [9.0], [9.0]]])
    pooled = READOUTS["event"]().pool(states, batch_of([[(1, 3)], [(0, 1)]], 4))
    assert pooled.tolist() == [[3.0], [1.0]]


def test_only_relations_are_two_states_wide() -> None:
    assert {kind: readout.width for kind, readout in READOUTS.items()} == {
        "sentence": 1, "relation": 2, "event": 1,
    }  # fmt: skip


# ---- relations: where markers go -------------------------------------------------------------------

PLAIN = relation("anna works in paris", "anna", "paris")
REVERSED = relation("anna works in paris", "paris", "anna")
NESTED = relation("the red car company won", "red", "red car")
NESTED_AT_THE_END = relation("the red car won", "red car", "car")
OVERLAPPING = relation("the red car company won", "red car", "car company")
ADJACENT = relation("redcar won", "red", "car")
IDENTICAL = relation("the car won", "car", "car")
UNICODE = relation("ß ü 🚗 漢字 é anna was born in paris", "anna", "paris")
ACCENTED_ENTITY = relation("in bébé 漢 works bob", "bébé 漢", "bob")
LITERAL = relation("[E11] anna [E21] [E22] lives in [MASK] paris", "anna", "paris")
WHOLE_TEXT = relation("anna", "anna", "anna")

EVERY_PLACEMENT = {
    "plain": PLAIN,
    "reversed": REVERSED,
    "nested": NESTED,
    "nested at the end": NESTED_AT_THE_END,
    "overlapping": OVERLAPPING,
    "adjacent": ADJACENT,
    "identical": IDENTICAL,
    "unicode": UNICODE,
    "accented entity": ACCENTED_ENTITY,
    "literal markers": LITERAL,
    "whole text": WHOLE_TEXT,
}


@pytest.mark.parametrize("placement", EVERY_PLACEMENT)
def test_a_relation_is_read_at_the_opening_markers(placement: str) -> None:
    assert read_at(tiny_encoder("relation"), EVERY_PLACEMENT[placement]) == [["[E11]"], ["[E21]"]]


@pytest.mark.parametrize("placement", EVERY_PLACEMENT)
def test_each_marker_stands_in_the_text_exactly_once(placement: str) -> None:
    found = tokens(tiny_encoder("relation"), EVERY_PLACEMENT[placement])
    assert [found.count(marker) for marker in MARKERS] == [1, 1, 1, 1]


def test_markers_surround_entities_at_the_start_and_the_end_of_a_text() -> None:
    assert tokens(tiny_encoder("relation"), PLAIN) == [
        "[CLS]", "[E11]", "anna", "[E12]", "works", "in", "[E21]", "paris", "[E22]", "[SEP]",
    ]  # fmt: skip


def test_a_tail_before_the_head_is_marked_first() -> None:
    assert tokens(tiny_encoder("relation"), REVERSED) == [
        "[CLS]", "[E21]", "anna", "[E22]", "works", "in", "[E11]", "paris", "[E12]", "[SEP]",
    ]  # fmt: skip


def test_of_two_entities_that_start_together_the_longer_opens_first() -> None:
    assert tokens(tiny_encoder("relation"), NESTED) == [
        "[CLS]", "the", "[E21]", "[E11]", "red", "[E12]", "car", "[E22]", "company", "won", "[SEP]",
    ]  # fmt: skip


def test_of_two_entities_that_end_together_the_shorter_closes_first() -> None:
    assert tokens(tiny_encoder("relation"), NESTED_AT_THE_END) == [
        "[CLS]", "the", "[E11]", "red", "[E21]", "car", "[E22]", "[E12]", "won", "[SEP]",
    ]  # fmt: skip


def test_adjacent_entities_close_before_they_open() -> None:
    assert tokens(tiny_encoder("relation"), ADJACENT) == [
        "[CLS]", "[E11]", "red", "[E12]", "[E21]", "car", "[E22]", "won", "[SEP]",
    ]  # fmt: skip


def test_characters_outside_ascii_do_not_move_the_markers() -> None:
    found = tokens(tiny_encoder("relation"), UNICODE)
    assert found[found.index("[E11]") : found.index("[E12]")] == ["[E11]", "anna"]
    assert found[found.index("[E21]") : found.index("[E22]")] == ["[E21]", "paris"]


def test_an_entity_may_hold_characters_outside_ascii() -> None:
    found = tokens(tiny_encoder("relation"), ACCENTED_ENTITY)
    assert found[found.index("[E11]") + 1 : found.index("[E12]")] == ["b", "##é", "##b", "##é", "[UNK]"]


def test_a_marker_written_in_the_text_stays_plain_text() -> None:
    assert tokens(tiny_encoder("relation"), LITERAL)[1:6] == ["[", "e", "##1", "##1", "]"]


# ---- relations: truncation -------------------------------------------------------------------------


def test_far_apart_entities_survive_truncation_with_their_markers_and_order() -> None:
    text = "anna works " + 40 * FILLER + "in paris"
    found = shortened_tokens(tiny_encoder("relation"), relation(text, "anna", "paris"))
    assert len(found) == LONGEST
    assert found[:5] == ["[CLS]", "[E11]", "anna", "[E12]", "works"]
    assert found[-5:] == ["in", "[E21]", "paris", "[E22]", "[SEP]"]


def test_entities_in_the_middle_keep_their_neighborhood() -> None:
    text = 40 * FILLER + "anna works in paris " + 40 * FILLER
    found = shortened_tokens(tiny_encoder("relation"), relation(text, "anna", "paris"))
    start = found.index("[E11]")
    assert found[start : start + 8] == [
        "[E11]", "anna", "[E12]", "works", "in", "[E21]", "paris", "[E22]",
    ]  # fmt: skip
    assert abs((start - 1) - (len(found) - 1 - (start + 8))) <= 1  # as much before as after


@pytest.mark.parametrize("entity", ["head", "tail"])
def test_an_entity_longer_than_the_encoder_keeps_all_four_markers(entity: str) -> None:
    long, short = Span(0, 20 * len(FILLER) - 1), Span(20 * len(FILLER), 20 * len(FILLER) + 5)
    head, tail = (long, short) if entity == "head" else (short, long)
    found = shortened_tokens(
        tiny_encoder("relation"), Example(20 * FILLER + "paris", "x", head=head, tail=tail)
    )
    assert [found.count(marker) for marker in MARKERS] == [1, 1, 1, 1]
    assert len(found) == LONGEST


def test_spans_follow_the_opening_markers_through_truncation() -> None:
    encoder = tiny_encoder("relation")
    example = relation("bob " + 40 * FILLER + "anna " + 40 * FILLER + "paris", "paris", "anna")
    with pytest.warns(UserWarning, match="shortened"):
        encoder.tokenize([example])
    assert read_at(encoder, example) == [["[E11]"], ["[E21]"]]


# ---- events ----------------------------------------------------------------------------------------


def event(text: str, trigger: str) -> Example:
    return Example(text, "x", trigger=span_of(text, trigger))


@pytest.mark.parametrize(
    ("example", "pieces"),
    [
        (event("the war was lost", "war"), ["war"]),
        (event("bob fights in paris", "fights"), ["fight", "##s"]),
        (event("bob won the war in paris", "won the war"), ["won", "the", "war"]),
        (event("é 🚗 漢 bob lost", "lost"), ["lost"]),
        (event("the bébé won", "bébé"), ["b", "##é", "##b", "##é"]),
        (event("a [MASK] war", "war"), ["war"]),
        (event("warship", "war"), ["war"]),
        (event("lost", "lost"), ["lost"]),
    ],
    ids=["word", "sub-words", "words", "unicode before", "unicode", "literal", "part of a word", "all"],
)
def test_an_event_is_read_at_the_pieces_of_its_trigger(example: Example, pieces: list[str]) -> None:
    assert read_at(tiny_encoder("event"), example) == [pieces]


def test_a_long_text_is_shortened_around_the_trigger() -> None:
    encoder = tiny_encoder("event")
    example = event(40 * FILLER + "lost " + 40 * FILLER, "lost")
    found = shortened_tokens(encoder, example)
    (start, end), *_ = encoder.tokenize([example])[0].spans
    assert found[start:end] == ["lost"]
    assert len(found) == LONGEST
    assert abs(start - (len(found) - end)) <= 1  # as much before as after


def test_a_trigger_longer_than_the_encoder_is_read_as_far_as_it_fits() -> None:
    encoder = tiny_encoder("event")
    example = Example(40 * FILLER, "x", trigger=Span(0, 40 * len(FILLER)))
    with pytest.warns(UserWarning, match="shortened"):
        (row,) = encoder.tokenize([example])
    assert row.spans == ((1, LONGEST - 1),)


def test_a_trigger_without_tokens_is_refused_by_name() -> None:
    with pytest.raises(InvalidData, match="drops the trigger ' ' of 'the war'"):
        tiny_encoder("event").tokenize([Example("the war", "x", trigger=Span(3, 4))])


# ---- spans and very long texts ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "span",
    [None, Span(2, 2), Span(3, 1), Span(-1, 2), Span(5, 9)],
    ids=["missing", "empty", "reversed", "negative", "beyond the end"],
)
def test_a_trigger_outside_the_text_is_refused(span: Span | None) -> None:
    with pytest.raises(InvalidData) as refused:
        tiny_encoder("event").tokenize([Example("the war", "x", trigger=span)])
    assert str(refused.value) == (
        f"Expected a trigger inside the text as [start, end) in characters, found {span} for a text of "
        "7 characters: 'the war'."
    )


@pytest.mark.parametrize("missing", ["head", "tail"])
def test_a_relation_needs_both_entities(missing: str) -> None:
    spans = {"head": Span(0, 3), "tail": Span(4, 7)}
    del spans[missing]
    with pytest.raises(InvalidData, match=f"Expected a {missing} inside the text"):
        tiny_encoder("relation").tokenize([Example("the war", "x", **spans)])


def test_a_text_of_100000_characters_is_shortened_with_one_warning() -> None:
    encoder = tiny_encoder()
    text = (FILLER * 4000)[:100_000]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        (row, _) = encoder.tokenize([Example(text, "x"), Example("rain", "x")])
        encoder.tokenize([Example(text, "x")])
    (warning,) = heard
    assert len(row.ids) == LONGEST
    assert re.fullmatch("1 of 2 texts .* 64 tokens .* shortened[.]", str(warning.message))


def test_a_long_sentence_keeps_its_beginning() -> None:
    found = shortened_tokens(tiny_encoder(), Example("rain snow wind " + 40 * FILLER, "x"))
    assert found[:4] == ["[CLS]", "rain", "snow", "wind"]
    assert found[-1] == "[SEP]"


def test_a_text_that_just_fits_is_left_alone() -> None:
    (row,) = tiny_encoder().tokenize([Example("rain " * 62, "x")])
    assert len(row.ids) == LONGEST


def test_a_text_without_tokens_is_read_from_its_special_tokens() -> None:
    (row,) = tiny_encoder().tokenize([Example(" ", "x")])
    assert row.spans == ((0, 2),)
