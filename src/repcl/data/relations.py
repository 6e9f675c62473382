"""New relation examples made of tokenized ones: hybrids of two classes, and head and tail exchanged."""

from collections.abc import Sequence
from dataclasses import dataclass

from repcl.data.batches import TokenizedExample


@dataclass(frozen=True)
class RelationMixer:
    """Makes examples of synthetic relations (ACA, Wang et al., 2022).

    Attributes:
        markers: ids of the tokens that open and close the head, then the tail.
        frame: how many special tokens stand before and after every text.
        longest: most tokens of an example.
        window: tokens kept on either side of an entity in a hybrid.
    """

    markers: tuple[int, ...]
    frame: tuple[int, int]
    longest: int
    window: int = 5

    def hybrid_classes(self, classes: Sequence[Sequence[TokenizedExample]]) -> list[list[TokenizedExample]]:
        """A class for each class of the first half with its counterpart in the second, paired by position."""
        half = len(classes) // 2
        return [
            [
                mixed
                for first, second in zip(classes[at], classes[at + half], strict=False)
                if (mixed := self.hybrid(first, second)) is not None
            ]
            for at in range(half)
        ]

    def hybrid(self, first: TokenizedExample, second: TokenizedExample) -> TokenizedExample | None:
        """The head of one and the tail of the other example; nothing where a tail comes before its head."""
        before, after = self.frame
        texts = [row.ids[before : len(row.ids) - after] for row in (first, second)]
        if not all(self._is_marked(text) for text in texts):
            return None
        places = [[text.index(marker) for marker in self.markers] for text in texts]
        if any(tail <= head for head, _, tail, _ in places):
            return None
        (head, head_end, tail, _), (_, other_head_end, other_tail, other_tail_end) = places
        left = texts[0][max(0, head - self.window) : min(head_end + self.window + 1, tail)]
        right = texts[1][max(other_head_end + 1, other_tail - self.window) : other_tail_end + self.window + 1]
        ids = (*first.ids[:before], *left, *right, *first.ids[len(first.ids) - after :])
        if not self._is_marked(ids) or len(ids) > self.longest:  # nested entities lose markers on the way
            return None
        openings = (ids.index(self.markers[0]), ids.index(self.markers[2]))
        return TokenizedExample(ids, tuple((place, place + 1) for place in openings))

    def reverse(self, row: TokenizedExample) -> TokenizedExample:
        """The same text with head and tail exchanged; its own inverse."""
        head, head_end, tail, tail_end = self.markers
        swap = {head: tail, tail: head, head_end: tail_end, tail_end: head_end}
        return TokenizedExample(tuple(swap.get(token, token) for token in row.ids), row.spans[::-1])

    def _is_marked(self, ids: Sequence[int]) -> bool:
        return all(ids.count(marker) == 1 for marker in self.markers)
