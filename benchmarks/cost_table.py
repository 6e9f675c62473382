"""How the cost of learning grows with texts and classes: a table, computed from measured rates.

    python benchmarks/cost_table.py [--train-rate 85] [--embed-rate 480] [--classes-per-task 10] ...

The rates are those of one core with the bundled encoder and short texts (docs/scale.md says where each comes
from); give those of your machine and texts to get its table. Testing is not counted.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

SIZES = ((50, 10_000), (100, 100_000), (300, 1_000_000), (1_000, 1_000_000), (1_000, 10_000_000))
FORWARD = 1 / 3  # a forward pass as a part of a training step


@dataclass(frozen=True)
class Assumptions:
    """What the table is computed from; times are in seconds."""

    train_rate: float = 85.0
    embed_rate: float = 480.0
    booking: float = 0.00035
    solving: float = 0.5
    solving_per_class: float = 0.0007
    initial_epochs: int = 5
    replay_epochs: int = 5
    memory_per_class: int = 10
    memory_total: int = 2_000
    classes_per_task: int = 10


@dataclass(frozen=True)
class Cost:
    """Seconds on one core for a whole stream of tasks."""

    new_texts: float
    replay: float
    bounded_replay: float
    instant: float
    retraining: float


def cost(classes: int, texts: int, given: Assumptions) -> Cost:
    """The cost of learning all classes, so many per task, with equally many texts each."""
    seen = [
        min(classes, end)
        for end in range(given.classes_per_task, classes + given.classes_per_task, given.classes_per_task)
    ]
    exemplars = [given.memory_per_class * number for number in seen[1:]]  # the first task has no replay
    bounded = [min(given.memory_per_class, given.memory_total // number) * number for number in seen[1:]]
    solved = sum(given.solving + given.solving_per_class * number for number in seen)
    return Cost(
        new_texts=texts * (given.initial_epochs + FORWARD) / given.train_rate,  # FORWARD: choosing exemplars
        replay=given.replay_epochs * sum(exemplars) / given.train_rate,
        bounded_replay=given.replay_epochs * sum(bounded) / given.train_rate,
        instant=texts * (1 / given.embed_rate + given.booking) + solved,
        retraining=given.initial_epochs * sum(texts * number / classes for number in seen) / given.train_rate,
    )


def table(sizes: Sequence[tuple[int, int]], given: Assumptions) -> str:
    """A row for each number of classes and texts, in Markdown."""
    columns = (
        "classes",
        "tasks",
        "texts",
        "new texts",
        "replay",
        f"replay, memory_total {given.memory_total:,}",
    )
    lines = [
        "| " + " | ".join((*columns, "FEA total", "`instant`", "retraining at every task")) + " |",
        "|" + "--:|" * 9,
    ]
    for classes, texts in sizes:
        own = cost(classes, texts, given)
        times = (
            own.new_texts,
            own.replay,
            own.bounded_replay,
            own.new_texts + own.replay,
            own.instant,
            own.retraining,
        )
        tasks = -(-classes // given.classes_per_task)
        lines.append(f"| {classes:,} | {tasks} | {texts:,} | " + " | ".join(map(duration, times)) + " |")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """A time in the largest unit of which there is more than one."""
    for unit, size in (("years", 365 * 86_400), ("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            amount = seconds / size
            return f"{amount:,.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def read_options() -> Assumptions:
    parser = argparse.ArgumentParser(description="cost of learning, computed from measured rates")
    defaults = Assumptions()
    for name, help_text in (
        ("train_rate", "texts per second in a training step"),
        ("embed_rate", "texts per second through the frozen encoder"),
        ("booking", "seconds per text to add it to instant's sums"),
        ("solving", "seconds to solve after a task"),
        ("solving_per_class", "seconds more for each class"),
        ("initial_epochs", "epochs on new texts"),
        ("replay_epochs", "epochs on the memory after each task"),
        ("memory_per_class", "exemplars of a class"),
        ("memory_total", "exemplars in all, in the column where they are bounded"),
        ("classes_per_task", "new classes of a task"),
    ):
        value = getattr(defaults, name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=help_text)
    return Assumptions(**vars(parser.parse_args()))


if __name__ == "__main__":
    print(table(SIZES, read_options()))
