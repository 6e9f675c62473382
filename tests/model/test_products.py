"""Products by oneDNN are those of torch, and it is asked only where it is the faster one."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from repcl.model import products
from repcl.model.products import Linear, linear, prefers_onednn
from tests.conftest import tiny_encoder
from tests.model.test_packing import batch_of, states_and_gradients


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Multiply by oneDNN on any processor; gives what it has multiplied."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this torch comes without oneDNN")
    multiplied: list[Tensor] = []
    multiply = products._multiply

    def watched(left: Tensor, *others: Tensor | None) -> Tensor:
        multiplied.append(left)
        return multiply(left, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(products, "prefers_onednn", lambda: True)
    monkeypatch.setattr(products, "_multiply", watched)
    return multiplied


def test_training_has_the_gradients_of_products_by_torch(
    monkeypatch: pytest.MonkeyPatch, onednn: list[Tensor]
) -> None:
    ours, theirs = (tiny_encoder(dropout=0.0).train() for _ in range(2))
    batch = batch_of(ours)
    perturbation = 0.1 * torch.randn(*batch.ids.shape, ours.hidden_size)
    found = states_and_gradients(ours, batch, perturbation, (1.0,))
    assert len(onednn) > 30
    monkeypatch.setattr(products, "prefers_onednn", lambda: False)
    expected = states_and_gradients(theirs, batch, perturbation, (1.0,))
    assert len(found) == len(expected) > 30
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_batch_of_texts_has_the_product_of_its_rows(onednn: list[Tensor]) -> None:
    states, weight, bias = torch.randn(2, 3, 5), torch.randn(4, 5), torch.randn(4)
    expected = functional.linear(states, weight, bias)
    assert torch.allclose(linear(states, weight, bias), expected, atol=1e-5)
    assert len(onednn) == 1


def test_a_frozen_weight_costs_no_product_for_its_gradient(onednn: list[Tensor]) -> None:
    states, weight = torch.randn(3, 5, requires_grad=True), torch.randn(4, 5)
    linear(states, weight).sum().backward()  # type: ignore[no-untyped-call]
    assert len(onednn) == 2  # the product, and the gradient of the states


def test_a_frozen_encoder_keeps_the_bits_of_torch(onednn: list[Tensor]) -> None:
    layer, states = Linear(384, 384).eval().requires_grad_(False), torch.randn(50, 384)
    assert torch.equal(layer(states), functional.linear(states, layer.weight, layer.bias))
    assert not onednn


def test_keys_are_multiplied_as_what_they_follow_is(onednn: list[Tensor]) -> None:
    Linear(5, 4).requires_grad_(False).train()(torch.randn(3, 5))
    assert onednn


def test_what_learns_is_evaluated_as_it_is_trained(onednn: list[Tensor]) -> None:
    Linear(5, 4).eval()(torch.randn(3, 5))
    assert onednn


def test_mixed_precision_is_left_to_torch(onednn: list[Tensor]) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = Linear(5, 4)(torch.randn(3, 5))
    assert found.dtype == torch.bfloat16
    assert not onednn


def test_no_row_at_all_is_left_to_torch(onednn: list[Tensor]) -> None:
    assert linear(torch.empty(0, 5), torch.randn(4, 5)).shape == (0, 4)
    assert not onednn


@pytest.mark.parametrize(
    ("maker", "widest", "expected"),
    [("AuthenticAMD", "AVX512", True), ("AuthenticAMD", "AVX2", False), ("GenuineIntel", "AVX512", False)],
)
def test_onednn_is_preferred_where_mkl_holds_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, maker: str, widest: str, expected: bool
) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(f"processor\t: 0\nvendor_id\t: {maker}\nmodel name\t: one\n")
    monkeypatch.setattr(products, "PROCESSORS", described)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: widest)
    assert prefers_onednn.__wrapped__() == expected


def test_a_system_that_does_not_tell_its_processor_is_left_to_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(products, "PROCESSORS", tmp_path / "missing")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert not prefers_onednn.__wrapped__()
