"""Small tasks in which every text has a length of its own, so that a text is known by its length alone."""

from repcl.data import Example, InputKind, Span, Task
from tests.conftest import TOPICS, WORDS


def text(kind: InputKind, topic: str, number: int) -> Example:
    """A text of `number` words and a few more, with its topic's word early and late."""
    words = TOPICS[topic]
    word, other = words[number % len(words)], words[(number + 1) % len(words)]
    filler = " ".join(WORDS[(number * 5 + 3 * index) % 18] for index in range(number))
    written = f"the {word} {filler} is {other}" if filler else f"the {word} is {other}"
    first, last = Span(4, 4 + len(word)), Span(len(written) - len(other), len(written))
    if kind == "relation":
        return Example(written, topic, head=first, tail=last)
    if kind == "event":
        return Example(written, topic, trigger=first)
    return Example(written, topic)


def task(*topics: str, kind: InputKind = "sentence", each: int = 2, shortest: int = 0) -> Task:
    """So many texts of each topic; the lengths of all are different."""
    train = [
        text(kind, topic, shortest + index + len(topics) * number)
        for index, topic in enumerate(topics)
        for number in range(each)
    ]
    test = [text(kind, topic, 17 + index) for index, topic in enumerate(topics)]
    return Task(topics, train, test)
