"""Training with the word embeddings that can occur, apart from all others."""

import copy

import pytest
import torch
from torch import Tensor, nn

from repcl.data.batches import collate
from repcl.model import Encoder, OccurringRows, follow_decay, only_rows, output_indices, output_rows
from tests.conftest import tiny_encoder, toy_example

TEXTS = [toy_example("sentence", topic, number) for topic in ("fruit", "weather") for number in range(3)]


def shown(encoder: Encoder) -> Tensor:
    """The representations of all texts."""
    rows = encoder.tokenize(TEXTS)
    pad = int(encoder.tokenizer.pad_token_id)
    return encoder.represent(
        collate(rows, [0] * len(rows), range(len(rows)), pad_id=pad, device=encoder.device)
    )


def loss_of(encoder: Encoder, *, has_outputs: bool) -> Tensor:
    """A loss through the inputs and, if wanted, through scores of all tokens."""
    pooled = shown(encoder)
    loss = pooled.square().sum()
    if has_outputs:
        table = encoder.word_embeddings
        scores = torch.cat([pooled @ part.T for part in output_rows(table)], dim=1)
        words = torch.tensor([row.ids[2] for row in encoder.tokenize(TEXTS)])
        loss = loss + nn.functional.cross_entropy(scores, output_indices(table, words))
    return loss


def table_gradient(encoder: Encoder) -> Tensor:
    """The gradient of the whole table, whether it is exchanged or not."""
    table = encoder.word_embeddings
    if not isinstance(table, OccurringRows):
        assert table.weight.grad is not None
        return table.weight.grad
    whole = torch.zeros(len(table.indices), table.embedding_dim)
    for ids, part in ((table.ids, table.weight), (table.other_ids, table.others)):
        if part is not None:
            assert part.grad is not None
            whole[ids] = part.grad
    return whole


@pytest.mark.parametrize("has_outputs", [False, True])
def test_gradients_are_those_of_the_whole_table(has_outputs: bool) -> None:
    plain, exchanged = tiny_encoder(dropout=0.0), tiny_encoder(dropout=0.0)
    loss_of(plain, has_outputs=has_outputs).backward()
    ids = exchanged.occurring_ids(TEXTS)
    with only_rows(exchanged, ids, others_learn=has_outputs):
        assert len(exchanged.word_embeddings.weight) < len(plain.word_embeddings.weight)
        loss_of(exchanged, has_outputs=has_outputs).backward()
        torch.testing.assert_close(table_gradient(exchanged), table_gradient(plain), rtol=1e-5, atol=1e-5)
        others = dict(exchanged.named_parameters())
        for name, value in plain.named_parameters():
            if "word_embeddings" not in name and value.grad is not None:
                torch.testing.assert_close(others[name].grad, value.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("has_outputs", [False, True])
def test_rows_that_never_occur_become_what_adamw_makes_of_them(has_outputs: bool) -> None:
    plain, exchanged = tiny_encoder(dropout=0.0), tiny_encoder(dropout=0.0)
    before = plain.word_embeddings.weight.detach().clone()
    train(plain, has_outputs=has_outputs)
    with only_rows(exchanged, exchanged.occurring_ids(TEXTS), others_learn=has_outputs):
        train(exchanged, has_outputs=has_outputs)
    after = exchanged.word_embeddings.weight
    torch.testing.assert_close(after, plain.word_embeddings.weight, rtol=1e-5, atol=1e-5)
    never = [row for row in range(len(before)) if row not in set(exchanged.occurring_ids(TEXTS).tolist())]
    if not has_outputs:  # three steps of rate 0.01 and decay 0.1
        torch.testing.assert_close(after[never], before[never] * 0.999**3)


def train(encoder: Encoder, *, has_outputs: bool) -> None:
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.01, weight_decay=0.1, eps=1e-3)
    follow_decay(encoder, optimizer)
    for _ in range(3):
        loss_of(encoder, has_outputs=has_outputs).backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_step_without_a_gradient_decays_nothing() -> None:
    encoder = tiny_encoder()
    before = encoder.word_embeddings.weight.detach().clone()
    with only_rows(encoder, encoder.occurring_ids(TEXTS)):
        optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.01, weight_decay=0.1)
        follow_decay(encoder, optimizer)
        optimizer.step()
    assert torch.equal(encoder.word_embeddings.weight, before)


def test_the_table_itself_comes_back_even_after_an_error() -> None:
    encoder = tiny_encoder()
    table, weight = encoder.word_embeddings, encoder.word_embeddings.weight
    before = weight.detach().clone()
    with pytest.raises(KeyboardInterrupt), only_rows(encoder, encoder.occurring_ids(TEXTS)):
        raise KeyboardInterrupt
    assert encoder.word_embeddings is table
    assert table.weight is weight
    assert torch.equal(weight, before)


def test_representations_do_not_change() -> None:
    encoder = tiny_encoder()
    before = shown(encoder)
    with only_rows(encoder, encoder.occurring_ids(TEXTS)):
        assert torch.equal(shown(encoder), before)


def test_a_token_that_was_not_foreseen_is_refused() -> None:
    encoder = tiny_encoder()
    with only_rows(encoder, encoder.occurring_ids(TEXTS[:1])), pytest.raises(IndexError):
        shown(encoder)


def test_padding_takes_no_gradient() -> None:
    encoder = tiny_encoder(dropout=0.0)
    with only_rows(encoder, encoder.occurring_ids(TEXTS)):
        loss_of(encoder, has_outputs=False).backward()
        assert not table_gradient(encoder)[int(encoder.tokenizer.pad_token_id)].any()


def test_rows_of_a_frozen_table_do_not_learn() -> None:
    encoder = tiny_encoder().requires_grad_(False)
    with only_rows(encoder, encoder.occurring_ids(TEXTS), others_learn=True):
        assert not any(part.requires_grad for part in output_rows(encoder.word_embeddings))


def test_inside_itself_it_changes_nothing() -> None:
    encoder = tiny_encoder()
    with only_rows(encoder, encoder.occurring_ids(TEXTS)):
        table = encoder.word_embeddings
        with only_rows(encoder, encoder.occurring_ids(TEXTS[:1])):
            assert encoder.word_embeddings is table
        assert encoder.word_embeddings is table


@pytest.mark.parametrize("kind", ["sentence", "relation"])
def test_a_copy_made_inside_reads_the_same_rows(kind: str) -> None:
    encoder = tiny_encoder(kind)  # type: ignore[arg-type]
    examples = [toy_example(kind, "fruit", number) for number in range(3)]  # type: ignore[arg-type]
    with only_rows(encoder, encoder.occurring_ids(examples)):
        copied = copy.deepcopy(encoder)
        assert torch.equal(copied.word_embeddings.weight, encoder.word_embeddings.weight)
