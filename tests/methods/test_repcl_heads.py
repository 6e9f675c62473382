"""The heads that RepCL learns with."""

from typing import Any

import torch
from torch import nn

from repcl.methods.repcl import ContrastHead, TokenHead


def test_keys_and_anchors_have_the_same_width() -> None:
    head = ContrastHead(12, 8)
    representation = torch.randn(3, 12)
    assert head.projection(representation).shape == head(representation).shape == (3, 8)


def test_anchors_are_predictions_made_from_projections() -> None:
    head = ContrastHead(12, 8).eval()
    representation = torch.randn(3, 12)
    anchors = head(representation)
    assert torch.equal(anchors, head.prediction(head.projection(representation)))
    assert anchors.abs().max() < 1  # tanh


def layers(head: nn.Sequential) -> list[tuple[Any, ...]]:
    """What each layer is, and the shape of its weights or the share that it drops."""
    return [
        (type(layer), getattr(layer, "p", None) or tuple(getattr(layer, "weight", torch.empty(0)).shape))
        for layer in head
    ]


NARROW, NORM = (nn.Linear, (8, 8)), (nn.LayerNorm, (8,))


def test_projection_and_prediction_have_the_layers_of_mocose() -> None:
    head, drop = ContrastHead(12, 8, dropout=0.3), (nn.Dropout, 0.3)
    assert layers(head.projection) == [(nn.Linear, (8, 12)), NARROW, NORM, drop]
    assert layers(head.prediction) == [NARROW, NORM, drop, NARROW, (nn.Tanh, (0,))]


def test_the_contrast_drops_a_tenth_if_nothing_else_is_said() -> None:
    assert layers(ContrastHead(12, 8).projection)[-1] == (nn.Dropout, 0.1)


def test_a_token_head_has_the_layers_of_bert() -> None:
    assert layers(TokenHead(8, 12, 20).transform) == [(nn.Linear, (8, 20)), (nn.GELU, (0,)), NORM]


def token_scores(help_size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:
    states = torch.randn(5, 8, requires_grad=True)
    help_ = torch.randn(5, help_size, requires_grad=True) if help_size else None
    embeddings = torch.randn(20, 8, requires_grad=True)
    return TokenHead(8, help_size, 20)(states, help_, embeddings), states, help_, embeddings


def test_token_scores_cover_the_vocabulary() -> None:
    assert token_scores(help_size=12)[0].shape == (5, 20)


def test_token_gradients_reach_states_help_and_embeddings() -> None:
    scores, states, help_, embeddings = token_scores(help_size=12)
    scores.square().sum().backward()
    for part in (states, help_, embeddings):
        assert part is not None
        assert part.grad is not None
        assert part.grad.abs().sum() > 0


def test_tokens_can_be_predicted_without_help() -> None:
    assert token_scores(help_size=0)[0].shape == (5, 20)


def test_nothing_masked_gives_no_scores() -> None:
    head = TokenHead(8, 12, 20)
    assert head(torch.empty(0, 8), torch.empty(0, 12), torch.randn(20, 8)).shape == (0, 20)


def test_a_token_head_does_not_own_the_embeddings_it_is_tied_to() -> None:
    names = [name for name, _ in TokenHead(8, 12, 20).named_parameters()]
    assert {name.split(".")[0] for name in names} == {"bias", "transform"}
