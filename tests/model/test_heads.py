"""Heads: shapes, growth, and where gradients go."""

import pytest
import torch
from torch import nn

from repcl.model import ClassifierHead, GrowingLinear


def classifier(*, has_hidden_layer: bool = True, dropout: float = 0.5) -> ClassifierHead:
    return ClassifierHead(12, 8, has_hidden_layer=has_hidden_layer, dropout=dropout).eval()


def test_a_new_classifier_has_no_classes() -> None:
    assert classifier()(torch.randn(3, 12)).shape == (3, 0)


def test_a_classifier_has_one_score_per_row() -> None:
    head = classifier()
    head.output.grow_to(5)
    assert head(torch.randn(3, 12)).shape == (3, 5)


def test_growing_keeps_old_rows_to_the_bit() -> None:
    layer = GrowingLinear(8)
    layer.grow_to(3)
    old = layer.weight.detach().clone()
    layer.grow_to(7)
    assert layer.weight.shape == (7, 8)
    assert torch.equal(layer.weight[:3], old)


def test_growing_to_fewer_rows_changes_nothing() -> None:
    layer = GrowingLinear(8)
    layer.grow_to(3)
    before = layer.weight
    layer.grow_to(2)
    assert layer.weight is before


def test_new_rows_are_drawn_from_a_narrow_normal() -> None:
    layer = GrowingLinear(100)
    layer.grow_to(100)
    assert layer.weight.std().item() == pytest.approx(0.02, abs=0.0006)  # four deviations
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=0.0008)


def assert_uniform(values: torch.Tensor, size: int) -> None:
    """In ±1/√size, from end to end: 100 draws leave out a tenth at either end once in 10,000 times."""
    limit = size**-0.5
    assert -limit <= values.min() < -0.8 * limit
    assert 0.8 * limit < values.max() <= limit


def test_uniform_rows_and_biases_start_as_pytorchs_linear_layers_do() -> None:
    torch.manual_seed(0)
    layer = GrowingLinear(16, has_bias=True, is_uniform=True)
    layer.grow_to(100)
    assert layer.bias is not None
    assert_uniform(layer.weight, 16)
    assert_uniform(layer.bias, 16)


def test_the_hidden_layer_of_a_uniform_head_starts_as_pytorchs_linear_layers_do() -> None:
    torch.manual_seed(0)
    head = ClassifierHead(16, 100, has_hidden_layer=True, dropout=0.0, is_uniform=True)
    head.output.grow_to(5)
    assert_uniform(head.hidden[1].weight, 16)  # type: ignore[arg-type]
    assert_uniform(head.output.weight, 100)


def test_grown_rows_can_be_trained() -> None:
    layer = GrowingLinear(8)
    layer.grow_to(2)
    layer.grow_to(3)
    assert [parameter.shape for parameter in layer.parameters()] == [(3, 8)]
    assert layer.weight.requires_grad


def test_the_output_has_no_bias() -> None:
    head = classifier(has_hidden_layer=False)
    head.output.grow_to(4)
    assert head(torch.zeros(1, 12)).tolist() == [[0.0, 0.0, 0.0, 0.0]]


def test_an_event_head_has_no_hidden_layer() -> None:
    head = classifier(has_hidden_layer=False)
    representation = torch.randn(3, 12)
    assert [name for name, _ in head.named_parameters()] == ["output.weight"]
    assert torch.equal(head.features(representation), representation)


def test_an_event_head_has_no_dropout() -> None:
    head = classifier(has_hidden_layer=False).train()
    representation = torch.randn(3, 12)
    assert torch.equal(head.features(representation), representation)


def test_the_hidden_layer_is_linear_gelu_layer_norm() -> None:
    head = classifier()
    linear, norm = head.hidden[1], head.hidden[3]
    assert isinstance(linear, nn.Linear)
    assert isinstance(norm, nn.LayerNorm)
    representation = torch.randn(2, 12)
    inner = representation @ linear.weight.T + linear.bias
    inner = inner * (1 + torch.erf(inner / 2**0.5)) / 2  # the exact GELU
    centered = inner - inner.mean(dim=1, keepdim=True)
    expected = centered / (centered.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(head.features(representation), expected)


def test_dropout_stands_in_front_of_the_hidden_layer() -> None:
    head = classifier().train()
    seen: list[torch.Tensor] = []
    head.hidden[1].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    head.features(torch.ones(50, 12))
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}  # dropped, or scaled by 1 / (1 - 0.5)


def test_new_layers_start_as_those_of_bert_do() -> None:
    linear = ClassifierHead(100, 100, has_hidden_layer=True, dropout=0.0).hidden[1]
    assert isinstance(linear, nn.Linear)
    assert linear.weight.std().item() == pytest.approx(0.02, abs=0.0006)
    assert linear.bias.tolist() == [0.0] * 100
