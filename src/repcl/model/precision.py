"""Whether this processor computes faster with numbers of 16 bits: measured, not guessed from its name."""

import time
from functools import cache

import torch
from torch import Tensor

from repcl.model.products import linear

CLEAR_GAIN = 0.8
ROWS, SIZE, WIDTH = 512, 384, 1536  # a layer of the bundled encoder on a batch of short texts


@cache
def gains_from_bfloat16() -> bool:
    """Whether a matrix product in bfloat16 takes clearly less time here; takes a fraction of a second."""
    left, right = torch.ones(ROWS, SIZE), torch.ones(WIDTH, SIZE)
    half = left.bfloat16(), right.bfloat16()
    spent: dict[bool, float] = {}
    for _ in range(5):  # in turns, and the best of each: other work holds up both
        for is_half, pair in ((False, (left, right)), (True, half)):
            spent[is_half] = min(spent.get(is_half, float("inf")), _seconds(*pair))
    return spent[True] < CLEAR_GAIN * spent[False]


def _seconds(left: Tensor, right: Tensor) -> float:
    began = time.perf_counter()
    for _ in range(3):
        linear(left, right)
    return time.perf_counter() - began
