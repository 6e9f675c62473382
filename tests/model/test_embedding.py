from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from repcl.data import Batch, Example, TokenizedExample
from repcl.errors import ResultMismatch
from repcl.model import Embedder, fingerprint
from repcl.model import embedding as embedding_module
from repcl.model.packing import can_pack
from tests.conftest import tiny_encoder, toy_task

EXAMPLES = toy_task("sentence", "fruit", "vehicle", "weather").train


class Counted(Embedder):
    """Counts the texts that had to be encoded."""

    encoded = 0

    def encode(self, examples: Sequence[Example]) -> torch.Tensor:
        self.encoded += len(examples)
        return super().encode(examples)


def test_a_row_is_what_the_encoder_says_of_the_text() -> None:
    encoder = tiny_encoder()
    found = Embedder(encoder)(EXAMPLES[:1])
    row = encoder.tokenize(EXAMPLES[:1])[0]
    states = encoder.backbone(torch.tensor([row.ids])).last_hidden_state
    torch.testing.assert_close(found, states.mean(dim=1))


def test_rows_come_in_the_order_of_the_examples() -> None:
    embed = Embedder(tiny_encoder())
    assert torch.equal(embed(EXAMPLES)[5], embed([EXAMPLES[5]])[0])
    assert torch.equal(embed(EXAMPLES[::-1]), embed(EXAMPLES).flip(0))


def test_a_text_has_the_same_bits_alone_and_in_company() -> None:
    alone = torch.cat([Embedder(tiny_encoder())([example]) for example in EXAMPLES])
    assert torch.equal(alone, Embedder(tiny_encoder())(EXAMPLES))


def not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_module, "can_pack", lambda _: False)


@pytest.mark.parametrize("text", ["a", "the apple is red", "the apple is red " * 4])
def test_where_texts_are_not_packed_one_is_repeated_until_the_batch_has_sixteen_tokens_and_no_further(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tiny_encoder()
    sizes = []
    represent = encoder.represent

    def watched(batch: Batch) -> torch.Tensor:
        sizes.append(tuple(batch.ids.shape))
        return represent(batch)

    not_packed(monkeypatch)
    monkeypatch.setattr(encoder, "represent", watched)
    Embedder(encoder)([Example(text, "")])
    [(rows, length)] = sizes
    assert rows * length >= 16
    assert (rows - 1) * length < 16


@pytest.mark.parametrize("words", [1, 5, 30])
@pytest.mark.parametrize(("threads", "fewest"), [(1, 9), (2, 16)])
def test_a_packed_pass_has_the_fewest_rows_or_as_many_as_there_are_tokens(
    words: int, threads: int, fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_module, "fewest_rows", lambda _: 9)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    encoder, seen = tiny_encoder(), []
    layer = encoder.backbone.encoder.layer[0].intermediate
    layer.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    text = Example("red " * words, "")
    Embedder(encoder)([text])
    assert seen == [max(fewest, len(encoder.tokenize([text])[0].ids))]


class OtherBits(torch.nn.Linear):
    """Rounds otherwise where there are few rows, as some matrix libraries do."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return super().forward(rows) + (1e-6 if len(rows) < 9 else 0.0)


def test_a_pass_needs_as_many_rows_as_keep_the_bits_in_every_layer() -> None:
    assert embedding_module.fewest_rows([torch.nn.Linear(8, 8), OtherBits(8, 8)]) == 9


def test_each_text_is_encoded_once_whatever_its_label() -> None:
    embed = Counted(tiny_encoder())
    embed(EXAMPLES)
    embed([Example(example.text, "another") for example in EXAMPLES])
    assert embed.encoded == len({example.text for example in EXAMPLES})


def test_the_same_text_with_another_mark_is_another_question() -> None:
    embed = Counted(tiny_encoder("event"))
    event = toy_task("event", "fruit", train=1).train[0]
    other = Example(event.text, event.label, trigger=toy_task("relation", "fruit", train=1).train[0].tail)
    rows = embed([event, other])
    assert embed.encoded == 2
    assert not torch.equal(rows[0], rows[1])


def test_dropout_is_off_even_if_the_encoder_was_training() -> None:
    encoder = tiny_encoder(dropout=0.5)
    expected = Embedder(encoder)(EXAMPLES)
    assert torch.equal(Embedder(encoder.train())(EXAMPLES), expected)


MIXED = [*EXAMPLES, *(Example("red " * length, "") for length in (1, 2, 5, 9, 30))]


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_packed_texts_have_the_bits_that_they_have_among_texts_of_their_length(
    attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, plain = Embedder(tiny_encoder()), Embedder(tiny_encoder())
    for embed in (plain, packed):
        embed.encoder.backbone.set_attn_implementation(attention)
    assert can_pack(packed.encoder)
    found = packed(MIXED)
    not_packed(monkeypatch)
    assert torch.equal(found, plain(MIXED))


def test_packed_texts_have_the_same_bits_alone_and_in_company() -> None:
    packed, alone = Embedder(tiny_encoder()), Embedder(tiny_encoder())
    assert torch.equal(packed(MIXED), torch.cat([alone([example]) for example in MIXED]))


def test_packed_texts_pass_in_parts_where_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Embedder(tiny_encoder())(MIXED)
    monkeypatch.setattr(embedding_module, "MOST_PACKED", 20)
    assert torch.equal(Embedder(tiny_encoder())(MIXED), expected)


def test_a_decoder_is_not_packed_for_its_tokens_see_only_those_before_them() -> None:
    encoder = tiny_encoder()
    encoder.backbone.config.is_decoder = True
    assert not can_pack(encoder)


def test_padded_lengths_change_the_last_bits_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    not_packed(monkeypatch)
    embed = Embedder(tiny_encoder())
    embed.may_pad = True
    torch.testing.assert_close(embed(MIXED), Embedder(tiny_encoder())(MIXED), atol=1e-5, rtol=1e-4)


def test_a_batch_of_mixed_lengths_pads_no_text_much() -> None:
    rows = [TokenizedExample(tuple(range(length)), ((0, length),)) for length in (20, 4, 5, 6, 30, 26, 7, 4)]
    batches = [
        [len(rows[number].ids) for number in batch] for batch in embedding_module._similar_lengths(rows)
    ]
    assert batches == [[4, 4, 5, 6], [7], [20, 26], [30]]


def test_no_examples_give_no_rows() -> None:
    assert Embedder(tiny_encoder())([]).shape == (0, 32)


def test_the_oldest_rows_go_when_the_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_module, "LARGEST_CACHE", 2 * 32 * 4)
    embed = Counted(tiny_encoder())
    rows = [embed([example]) for example in EXAMPLES[:3]]
    embed(EXAMPLES[1:3])
    assert embed.encoded == 3
    assert torch.equal(embed(EXAMPLES[:1]), rows[0])
    assert embed.encoded == 4


def test_rows_on_disk_are_found_by_the_next_process_bit_for_bit(tmp_path: Path) -> None:
    first, second = Counted(tiny_encoder(), tmp_path), Counted(tiny_encoder(), tmp_path)
    assert torch.equal(first(EXAMPLES), second(EXAMPLES))
    assert second.encoded == 0


def test_rows_on_disk_do_not_serve_other_weights(tmp_path: Path) -> None:
    Embedder(tiny_encoder(), tmp_path)(EXAMPLES)
    changed = tiny_encoder()
    with torch.no_grad():
        next(changed.backbone.parameters()).mul_(1.01)
    embed = Counted(changed, tmp_path)
    assert torch.equal(embed(EXAMPLES), Embedder(changed)(EXAMPLES))
    assert embed.encoded > 0


def test_the_folder_can_be_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPCL_EMBEDDINGS", str(tmp_path / "deep" / "folder"))
    Embedder(tiny_encoder())(EXAMPLES)
    assert (tmp_path / "deep" / "folder" / "embeddings.sqlite").is_file()


def test_nothing_is_written_unless_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPCL_EMBEDDINGS", raising=False)
    monkeypatch.chdir(tmp_path)
    Embedder(tiny_encoder())(EXAMPLES)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(ResultMismatch, match="delete it, or unset REPCL_EMBEDDINGS"):
        Embedder(tiny_encoder(), tmp_path)(EXAMPLES)


def test_the_fingerprint_tells_weights_and_readouts_apart() -> None:
    assert fingerprint(tiny_encoder()) == fingerprint(tiny_encoder())
    assert fingerprint(tiny_encoder()) != fingerprint(tiny_encoder("event"))
