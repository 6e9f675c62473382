"""Frozen lower layers whose states are kept."""

import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from repcl.data import Batch
from repcl.data.batches import collate
from repcl.errors import InvalidSetting
from repcl.model import Encoder
from repcl.model.lower_layers import LowerLayers
from tests.conftest import tiny_encoder, toy_example

TEXTS = [toy_example("sentence", topic, number) for topic in ("fruit", "weather") for number in range(3)]


def batch_of(encoder: Encoder, count: int = len(TEXTS)) -> Batch:
    rows = encoder.tokenize(TEXTS[:count])
    pad = int(encoder.tokenizer.pad_token_id)
    return collate(rows, [0] * count, range(count), pad_id=pad, device=encoder.device)


def frozen(**options: Any) -> Encoder:
    encoder = tiny_encoder(**options)
    encoder.freeze_lower(0.5)
    return encoder


def test_states_are_those_of_the_whole_encoder() -> None:
    plain, halved = tiny_encoder(), frozen()
    expected = plain(batch_of(plain))
    with halved.kept_states(TEXTS):
        for _ in range(2):  # computed, then kept
            found = halved(batch_of(halved))
            real = batch_of(plain).mask.bool()
            torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-5)


def test_gradients_above_the_cut_are_those_of_the_whole_encoder() -> None:
    plain, halved = tiny_encoder(dropout=0.0), frozen(dropout=0.0)
    for encoder in (plain, halved):
        encoder.represent(batch_of(encoder)).square().sum().backward()
    theirs = dict(plain.named_parameters())
    above = [name for name, value in halved.named_parameters() if value.grad is not None]
    assert {name.split(".")[3] for name in above} == {"1"}  # of two layers the upper one
    for name in above:
        torch.testing.assert_close(halved.get_parameter(name).grad, theirs[name].grad, rtol=0, atol=1e-5)


def test_nothing_below_the_cut_learns() -> None:
    names = [name for name, value in frozen().named_parameters() if value.requires_grad]
    assert not [name for name in names if "embeddings" in name or "layer.0." in name]


def test_a_text_goes_through_the_lower_layers_once() -> None:
    encoder = frozen().train()
    seen: list[int] = []
    lowest = cast(Any, encoder.backbone).encoder.layer[0]
    lowest.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    with encoder.kept_states(TEXTS):
        encoder(batch_of(encoder, 4))
        encoder(batch_of(encoder))
        encoder(batch_of(encoder))
    assert seen == [4, 2]
    encoder(batch_of(encoder))
    assert seen == [4, 2, 6]  # nothing is kept afterwards


def test_texts_that_were_not_announced_are_not_kept() -> None:
    encoder = frozen()
    with encoder.kept_states(TEXTS[:1]):
        encoder(batch_of(encoder))
        assert encoder.lower is not None
        assert len(encoder.lower._kept) == 1


def test_a_perturbation_is_added_at_the_cut_and_gets_a_gradient() -> None:
    encoder = frozen(dropout=0.0)
    batch = batch_of(encoder)
    perturbation = torch.zeros(*batch.ids.shape, encoder.hidden_size, requires_grad=True)
    moved: Tensor = encoder.represent(batch, perturbation)
    moved[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    assert perturbation.grad is not None
    assert perturbation.grad[batch.mask.bool()].abs().sum() > 0
    assert not perturbation.grad[~batch.mask.bool()].any()


def test_a_copy_shares_what_is_kept_until_it_starts_over() -> None:
    encoder = frozen()
    copied = copy.deepcopy(encoder)
    assert copied.lower is encoder.lower
    copied.start_over()
    assert copied.lower is not None
    assert copied.lower is not encoder.lower


def test_an_encoder_of_another_kind_is_refused() -> None:
    other = SimpleNamespace(config=SimpleNamespace(model_type="deberta", num_hidden_layers=2))
    with pytest.raises(InvalidSetting, match="frozen_layers = 0"):
        LowerLayers(cast(Any, other), 0.5)
