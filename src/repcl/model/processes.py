"""Several processes as one: each encodes its rows of a batch, and all continue with the same whole.

All processes draw the same batches, masks and partners from the same seeds. Only the encoder, which is nearly
all of the work, is split; what comes after it is computed by everyone and is equal everywhere.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch import distributed as torch_distributed
from torch.utils.checkpoint import checkpoint

Precision = Literal["no", "bf16"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Processes:
    """The processes that make a run together, as one of them sees them, and how it encodes.

    Torch's process group must be there if there are several.

    Attributes:
        number: how many there are.
        rank: which one this is; the first, 0, prints and writes.
        device: where it computes; the best one present if not given.
        precision: of the encoder, mixed with `bf16` or full; heads and losses always have full precision.
        chunks: one after another in which rows are encoded: activations of one chunk are in memory at a time.
    """

    number: int = 1
    rank: int = 0
    device: torch.device | None = None
    precision: Precision = "no"
    chunks: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the one that prints and writes."""
        return self.rank == 0

    @property
    def parts(self) -> int:
        """In how many parts a batch is encoded."""
        return self.number * self.chunks

    def share_rows(
        self,
        function: Callable[..., Tensor],
        inputs: tuple[Tensor | None, ...],
        *,
        draws: bool,
        device: torch.device,
    ) -> Tensor:
        """`function(*inputs)` with its rows split over processes and chunks; all processes get the whole.

        Args:
            function: computes each row of its result from the same row of its inputs.
            inputs: tensors with equal numbers of rows, the first one always there.
            draws: whether the function makes random draws (dropout).
            device: where it does.
        """
        first = inputs[0]
        if self.parts == 1 or first is None:
            return function(*inputs)
        rows = len(first)
        with self._own_draws(device) if draws and self.number > 1 else nullcontext():
            results = [
                self._computed(function, [None if tensor is None else tensor[chunk] for tensor in inputs])
                for chunk in self.own_rows(rows).to(device).tensor_split(self.chunks)
                if len(chunk)
            ]
        return self.join_rows(torch.cat(results))[:rows]

    def own_rows(self, rows: int) -> Tensor:
        """The rows that this process computes; the last one is repeated until all have as many."""
        each = -(-rows // self.number)
        return torch.arange(self.rank * each, (self.rank + 1) * each).clamp(max=rows - 1)

    def join_rows(self, own: Tensor) -> Tensor:
        """The rows of all processes in their order; gradients flow back to each process's own."""
        if self.number == 1:
            return own
        joined: Tensor = _Join.apply(own, self)  # type: ignore[no-untyped-call]
        return joined

    def average_gradients(self, leaves: Iterable[Tensor]) -> None:
        """Replace gradients by their mean over processes, in one message; those that are equal stay so."""
        gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
        if self.number == 1 or not gradients:
            return
        together = torch.cat([gradient.flatten() for gradient in gradients])
        torch_distributed.all_reduce(together)
        means = torch.split(together / self.number, [gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))

    def of_the_first(self, value: Value) -> Value:
        """The value that the first process holds: what decides must not differ by a device's last bit."""
        if self.number == 1:
            return value
        held = [value]
        torch_distributed.broadcast_object_list(held, src=0)
        return held[0]

    def is_equal_everywhere(self, value: object) -> bool:
        """Whether all processes hold an equal value; also a point at which they wait for each other."""
        if self.number == 1:
            return True
        values: list[object] = [None] * self.number
        torch_distributed.all_gather_object(values, value)
        return all(other == values[0] for other in values)

    @contextmanager
    def encoder_precision(self, device: torch.device) -> Iterator[bool]:
        """Compute with the wanted precision here; gives whether it is mixed."""
        is_mixed = self.precision == "bf16"
        with torch.autocast(device.type, torch.bfloat16) if is_mixed else nullcontext():
            yield is_mixed

    def _computed(self, function: Callable[..., Tensor], inputs: list[Tensor | None]) -> Tensor:
        """One chunk; of several, activations are dropped and made again, draws included, on the way back."""
        if self.chunks == 1 or not torch.is_grad_enabled():
            return function(*inputs)
        result: Tensor = checkpoint(function, *inputs, use_reentrant=False)
        return result

    @contextmanager
    def _own_draws(self, device: torch.device) -> Iterator[None]:
        """Draws that differ between processes, from a seed that all draw together; outside all stay equal."""
        seed = int(torch.randint(2**62, ()))
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(seed + self.rank)
            yield


ALONE = Processes()
"""One process, full precision, whole batches."""


class _Join(torch.autograd.Function):
    """All rows forward. Backward, the gradient of the own rows, times the number of processes.

    The loss is computed equally everywhere, so every process holds the whole gradient of all rows; each
    continues with its part alone, and `average_gradients`, which divides by that number, makes the sum of the
    parts.
    """

    @staticmethod
    def forward(context: Any, own: Tensor, processes: Processes) -> Tensor:
        """Gather the rows of all processes."""
        context.processes = processes
        joined = [torch.empty_like(own) for _ in range(processes.number)]
        torch_distributed.all_gather(joined, own.contiguous())
        return torch.cat(joined)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Take the part of the own rows."""
        here: Processes = context.processes
        return gradients[0].chunk(here.number)[here.rank] * here.number, None
