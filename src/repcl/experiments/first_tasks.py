"""What a search for settings may see: the first three tasks, scored on training texts that are held out."""

from collections.abc import Iterable
from random import Random

from repcl.data import Example, Provenance, Task, TaskStream, round_seed
from repcl.errors import InvalidData

TASKS = 3
HELD_OUT = 4  # one distinct text of a class in so many


def search_stream(stream: TaskStream) -> TaskStream:
    """The first three tasks of a stream, tested on a quarter of their own training texts.

    The stream's test texts and all later tasks are left behind. What is held out depends on the round only.
    """
    if len(stream.tasks) < TASKS:
        raise InvalidData(
            f"A search needs {TASKS} tasks, {stream.name} has {len(stream.tasks)}: "
            "choose a larger --tasks or other data."
        )
    first = stream.tasks[:TASKS]
    held_out = choose_held_out(
        (example for task in first for example in task.train), round_seed(stream.round)
    )
    if not held_out:
        raise InvalidData(
            f"Nothing can be held out in the first {TASKS} tasks of {stream.name}: "
            "no class has two different training texts; add texts."
        )
    notes = (f"The first {TASKS} of {len(stream.tasks)} tasks, tested on held-out training texts.",)
    known = stream.provenance
    provenance = Provenance(known.files, complete=known.complete, capped=known.capped, notes=notes)
    tasks = tuple(_divide(task, held_out) for task in first)
    return TaskStream(stream.name, stream.kind, tasks, stream.round, provenance)


def choose_held_out(examples: Iterable[Example], seed: int) -> set[Example]:
    """A quarter of the distinct examples of each class, at least one where a class has two."""
    by_class: dict[str, dict[Example, None]] = {}
    for example in examples:
        by_class.setdefault(example.label, {})[example] = None
    draw = Random(seed)
    held_out: set[Example] = set()
    for distinct in by_class.values():
        if len(distinct) > 1:
            held_out.update(draw.sample(list(distinct), max(1, round(len(distinct) / HELD_OUT))))
    return held_out


def _divide(task: Task, held_out: set[Example]) -> Task:
    """Copies of one text stay together, so that none is both learned and tested."""
    train = [example for example in task.train if example not in held_out]
    test = list(dict.fromkeys(example for example in task.train if example in held_out))
    return Task(task.classes, train, test)
