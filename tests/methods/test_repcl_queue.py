"""The queue of contrastive keys."""

import torch
from torch import Tensor

from repcl.methods.repcl import KeyQueue

LETTERS = "abcdefxy"


def keys(letters: str) -> Tensor:
    """A key per letter: its place in the alphabet, twice."""
    return torch.tensor([[float(LETTERS.index(letter))] * 2 for letter in letters]).reshape(-1, 2)


def labels(letters: str) -> Tensor:
    return torch.tensor([LETTERS.index(letter) for letter in letters], dtype=torch.long)


def queue(size: int, letters: str = "") -> KeyQueue:
    return KeyQueue(size, keys(letters), labels(letters))


def content(held: KeyQueue) -> str:
    return "".join(LETTERS[label] for label in held.labels.tolist())


def test_queue_puts_newest_batch_first() -> None:
    held = queue(4)
    for batch in ("ab", "cd", "ef"):
        held.push(keys(batch), labels(batch))
    assert content(held) == "efcd"


def test_queue_drops_what_is_oldest() -> None:
    held = queue(4, "abcd")
    held.push(keys("xy"), labels("xy"))
    assert content(held) == "xyab"


def test_labels_move_with_their_keys() -> None:
    held = queue(4, "abcd")
    held.push(keys("xy"), labels("xy"))
    assert held.keys[:, 0].tolist() == held.labels.tolist()


def test_queue_is_never_longer_than_its_size() -> None:
    held = queue(3, "abcdef")
    lengths = [len(held.keys)]
    for batch in ("ab", "abcdef", "c"):
        held.push(keys(batch), labels(batch))
        lengths += [len(held.keys), len(held.labels)]
    assert lengths == [3] * 7


def test_queue_grows_until_it_is_full() -> None:
    held = queue(4, "a")
    held.push(keys("bc"), labels("bc"))
    assert content(held) == "bca"


def test_queue_holds_no_gradients() -> None:
    first, pushed = keys("ab").requires_grad_(), keys("cd").requires_grad_()
    held = KeyQueue(4, first, labels("ab"))
    held.push(pushed * 2, labels("cd"))
    assert not held.keys.requires_grad
