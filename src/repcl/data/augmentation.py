"""Augmentations as pure functions on token ids."""

from collections.abc import Sequence

import torch
from torch import Tensor


def mask_tokens(
    ids: Tensor, maskable: Tensor, *, probability: float, mask_id: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Replace each maskable token by the mask token with a probability.

    Args:
        ids: (batch, length) token ids.
        maskable: (batch, length) booleans, false for special tokens, markers and padding.
        probability: of each token by itself; there is no 80/10/10 rule.
        mask_id: the mask token.
        generator: where the draws come from, on the CPU.

    Returns:
        The masked ids and (batch, length) booleans that say where.
    """
    drawn = torch.rand(ids.shape, generator=generator).to(ids.device) < probability
    masked = drawn & maskable
    return ids.masked_fill(masked, mask_id), masked


def same_class_partners(
    positions: Sequence[int], labels: Sequence[int], generator: torch.Generator
) -> list[int]:
    """For each row another row of the same class, drawn uniformly; itself only when it is alone.

    Args:
        positions: rows that need a partner.
        labels: the class of every row.
        generator: where the draws come from.
    """
    members: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    partners = []
    for row in positions:
        others = members[labels[row]]
        if len(others) == 1:
            partners.append(row)
            continue
        # Drawing among the others = drawing a shift, so no list without the row has to be built.
        shift = int(torch.randint(1, len(others), (1,), generator=generator))
        partners.append(others[(others.index(row) + shift) % len(others)])
    return partners
