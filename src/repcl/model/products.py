"""Matrix products by the library that makes the most of this processor.

torch multiplies by MKL, which keeps its widest instructions to Intel's processors. oneDNN, which comes with
torch as well, does not ask who made a processor: on AMD's with AVX-512 it takes half the time. Products are
the same up to the rounding of float32.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PROCESSORS = Path("/proc/cpuinfo")


class Linear(nn.Linear):
    """A linear layer that is faster where it learns; in a frozen encoder it keeps the bits of torch's own."""

    def forward(self, states: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        multiply = linear if self.training or self.weight.requires_grad else functional.linear
        return multiply(states, self.weight, self.bias)


def linear(states: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product states · weightᵀ, and the bias: (..., inputs) -> (..., outputs)."""
    if _is_for_onednn(states, weight):
        return _Product.apply(states, weight, bias)  # type: ignore[no-any-return, no-untyped-call]
    return functional.linear(states, weight, bias)


def _is_for_onednn(states: Tensor, weight: Tensor) -> bool:
    return (
        prefers_onednn()
        and states.dtype == weight.dtype == torch.float32
        and states.device.type == "cpu"
        and states.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and not is_exporting()
    )


@cache
def prefers_onednn() -> bool:
    """Whether oneDNN multiplies faster here: told by the processor, not by a clock, so that bits stay."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and "AuthenticAMD" in _maker()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def is_exporting() -> bool:
    """Whether an export is being written; torch would load much to say that none is."""
    return "torch.onnx" in sys.modules and torch.onnx.is_in_onnx_export()


def _maker() -> str:
    """Who made the processor, where the system tells; else nothing."""
    try:
        with PROCESSORS.open() as lines:
            return next((line for line in lines if line.startswith("vendor_id")), "")
    except OSError:
        return ""


class _Product(torch.autograd.Function):
    """A product by oneDNN, and its gradients, which are products as well."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(states, weight)
        return _multiply(states, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (states, weight) = gradients, ctx.saved_tensors
        for_states, for_weight, for_bias = ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.shape[-1])
        return (
            _multiply(gradient, weight.T) if for_states else None,
            _multiply(rows.T, states.reshape(-1, states.shape[-1]).T) if for_weight else None,
            rows.sum(dim=0) if for_bias else None,
        )


def _multiply(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product left · rightᵀ, and the bias."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return found
