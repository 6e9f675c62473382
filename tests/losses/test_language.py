"""The masked-token loss."""

from math import log

import pytest
import torch

from repcl.losses import masked_token_loss


def test_even_scores_give_the_log_of_the_vocabulary() -> None:
    assert masked_token_loss(torch.zeros(3, 80), torch.tensor([0, 1, 79])).item() == pytest.approx(4.382027)


def test_the_loss_is_the_mean_over_masked_positions() -> None:
    logits = torch.tensor([[0.0, log(3)], [0.0, log(3)]])  # probabilities 1/4 and 3/4
    expected = (log(4) + log(4 / 3)) / 2
    assert masked_token_loss(logits, torch.tensor([0, 1])).item() == pytest.approx(expected)


def test_nothing_masked_gives_a_zero_that_can_be_differentiated() -> None:
    hidden = torch.randn(2, 4, requires_grad=True)
    logits = hidden[torch.zeros(2, dtype=torch.bool)] @ torch.randn(4, 7)
    loss = masked_token_loss(logits, torch.empty(0, dtype=torch.long))
    loss.backward()
    assert loss.item() == 0
    assert hidden.grad is not None
    assert (hidden.grad == 0).all()


def test_the_gradient_raises_the_score_of_the_masked_token_only() -> None:
    logits = torch.zeros(1, 4, requires_grad=True)
    masked_token_loss(logits, torch.tensor([2])).backward()
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([0.25, 0.25, -0.75, 0.25])
