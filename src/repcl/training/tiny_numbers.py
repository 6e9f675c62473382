"""Numbers too small for a normal float count as zero while a model is trained."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALLEST_NORMAL = torch.finfo(torch.float32).tiny


@contextmanager
def tiny_numbers_are_zero() -> Iterator[None]:
    """Within it, this thread takes floats below 1.2e-38 for zero, where the processor can.

    Other threads of torch do not, so training with several threads gains less. Experiments have one.

    A loss that is nearly zero has gradients that small, and many processors multiply them many times more
    slowly. What is learned stays the same: they are far too small to move a weight.
    """
    before = _are_zero()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _are_zero() -> bool:
    """Whether this thread takes tiny numbers for zero already; torch does not tell, but a product does."""
    return not (torch.tensor(SMALLEST_NORMAL) * 0.5).item()
