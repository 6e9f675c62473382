"""How learners with scores of different scales vote: each text's scores are standardized and added."""

from torch import Tensor


def standardized(scores: Tensor) -> Tensor:
    """Scores of each text with mean 0 and standard deviation 1 over the classes, (texts, classes).

    Where all classes have the same score nobody is voted for: the row is zero.
    """
    around = scores.double() - scores.double().mean(dim=1, keepdim=True)
    spread = around.square().mean(dim=1, keepdim=True).sqrt()
    return around / spread.masked_fill(spread == 0, 1.0)
