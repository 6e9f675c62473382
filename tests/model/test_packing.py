"""A padded batch costs no more than its tokens: packed, it gives the same states and the same gradients."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from repcl.data import Batch, Example
from repcl.data.batches import collate
from repcl.model import Encoder
from repcl.model import encoder as encoder_module
from repcl.model.packing import can_pack
from tests.conftest import tiny_encoder

TEXTS = ("a red apple", "snow", "the wind in london was cold", "bob won the fight in the city of paris")


def batch_of(encoder: Encoder, texts: Sequence[str] = TEXTS) -> Batch:
    rows = encoder.tokenize([Example(text, "") for text in texts])
    return collate(rows, [0] * len(rows), range(len(rows)), pad_id=0, device=encoder.device)


def states_and_gradients(
    encoder: Encoder, batch: Batch, perturbation: Tensor, depths: Sequence[float]
) -> list[Tensor]:
    """States of all real tokens, and the gradients of a sum over them."""
    delta = perturbation.clone().requires_grad_()
    states = encoder(batch, delta, depths=depths)[batch.mask.bool()]
    (states * torch.linspace(-1.0, 1.0, states.numel()).view(states.shape)).sum().backward()
    weights = [weight.grad for weight in encoder.parameters() if weight.grad is not None]
    assert delta.grad is not None
    return [states, delta.grad, *weights]


def unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "can_pack", lambda _: False)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("depths", [(1.0,), (0.0, 0.5, 1.0)])
def test_packed_training_has_the_gradients_of_padded_training(
    monkeypatch: pytest.MonkeyPatch, attention: str, depths: tuple[float, ...]
) -> None:
    packed, padded = (tiny_encoder(dropout=0.0).train() for _ in range(2))
    for encoder in (packed, padded):
        encoder.backbone.set_attn_implementation(attention)
    batch = batch_of(packed)
    perturbation = 0.1 * torch.randn(*batch.ids.shape, packed.hidden_size)
    found = states_and_gradients(packed, batch, perturbation, depths)
    unpacked(monkeypatch)
    expected = states_and_gradients(padded, batch, perturbation, depths)
    assert len(found) == len(expected) > 30
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_segments_reach_packed_states(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = tiny_encoder().eval()
    batch = batch_of(encoder)
    segments = (torch.arange(batch.ids.shape[1]) > 2).long().expand(batch.ids.shape)
    found = encoder(batch, segments=segments)[batch.mask.bool()]
    unpacked(monkeypatch)
    assert torch.allclose(found, encoder(batch, segments=segments)[batch.mask.bool()], atol=1e-6)


def test_layers_see_no_padding() -> None:
    encoder, seen = tiny_encoder(), []
    batch = batch_of(encoder)
    assert not batch.mask.all()
    for layer in encoder.backbone.encoder.layer:
        layer.intermediate.register_forward_hook(lambda _, given, __: seen.append(given[0].shape[0]))
    encoder.train().represent(batch)
    assert seen == [int(batch.mask.sum())] * 2


def test_packed_attention_is_dropped_out_in_training_only() -> None:
    encoder = tiny_encoder(dropout=0.0)
    for layer in encoder.backbone.encoder.layer:
        layer.attention.self.dropout.p = 0.5
    batch = batch_of(encoder)
    first, second = (encoder.train().represent(batch) for _ in range(2))
    assert not torch.allclose(first, second)
    first, second = (encoder.eval().represent(batch) for _ in range(2))
    assert torch.equal(first, second)


def test_padding_gets_no_gradient() -> None:
    encoder = tiny_encoder().train()
    batch = batch_of(encoder)
    delta = torch.zeros(*batch.ids.shape, encoder.hidden_size, requires_grad=True)
    encoder.represent(batch, delta).square().sum().backward()
    assert delta.grad is not None
    assert not delta.grad[~batch.mask.bool()].any()
    assert delta.grad[batch.mask.bool()].any(dim=1).all()


def test_a_text_of_one_token_beside_a_long_one_is_packed() -> None:
    encoder = tiny_encoder().eval()
    batch = batch_of(encoder, ["", "the wind in london was cold"])
    assert can_pack(encoder)
    assert encoder.represent(batch).isfinite().all()
