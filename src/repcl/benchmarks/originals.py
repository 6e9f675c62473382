"""Steps that the readers of original files share: grouping by class, token offsets, judging completeness."""

from collections.abc import Iterable, Mapping, Sequence

from repcl.benchmarks.base import Corpus, Split
from repcl.data.examples import Example, Span


def by_class(examples: Iterable[Example]) -> dict[str, list[Example]]:
    """Group examples by label, labels in order of first appearance."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.label, []).append(example)
    return groups


def token_span(tokens: Sequence[str], first: int, end: int) -> Span:
    """Characters that tokens `[first, end)` take up once all tokens are joined by single spaces."""
    if not 0 <= first < end <= len(tokens):
        raise IndexError(f"tokens {first} to {end} of a sentence of {len(tokens)} tokens")
    start = sum(map(len, tokens[:first])) + first
    return Span(start, start + sum(map(len, tokens[first:end])) + end - first - 1)


def part_counts(splits: Mapping[str, Split]) -> dict[str, int]:
    """How much there is to learn and to test."""
    return {
        "classes": len(splits),
        "training texts": sum(len(split.train) for split in splits.values()),
        "test texts": sum(len(split.test) for split in splits.values()),
    }


def counted_corpus(
    splits: Mapping[str, Split], labels: Iterable[str], found: Mapping[str, int], expected: Mapping[str, int]
) -> Corpus:
    """A corpus in the order of the label list, complete when every count reaches what the protocol asks."""
    ordered = {label: splits[label] for label in labels if label in splits}
    lacking = [
        f"{found[what]:,} of {number:,} {what}" for what, number in expected.items() if found[what] < number
    ]
    if not lacking:
        return Corpus(ordered)
    note = f"The files hold {', '.join(lacking)}; results on them are not comparable with published numbers."
    return Corpus(ordered, complete=False, notes=(note,))
