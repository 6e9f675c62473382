"""Which stream of tasks is wanted: the data, the round, and how classes are arranged in tasks."""

from dataclasses import dataclass
from pathlib import Path

from repcl.benchmarks.base import PROTOCOLS, Split
from repcl.benchmarks.order_file import read_class_order
from repcl.data.order import equal_parts
from repcl.errors import InvalidData, InvalidSetting, UnknownName, require_whole


@dataclass(frozen=True)
class StreamSpec:
    """One round of a benchmark, or of a user's data file; None leaves the benchmark's own way.

    Attributes:
        name: a benchmark's name, or the path of a CSV, TSV, JSONL or Parquet file.
        round: decides class order and split of a benchmark, and the split of a user's file.
        data_dir: holds one folder per benchmark; else `REPCL_DATA`, else the user's cache folder.
        tasks: number of tasks, as equal as possible.
        classes_per_task: size of each task; with `tasks`, the first so many tasks are used.
        class_order_file: one class name per line, or a JSON list of tasks, each a list of class names.
        max_train_per_class: keep the first so many training examples of a class.
        max_test_per_class: keep the first so many test examples of a class.
        test_file: test part of a user's file; without it, a fifth of each class is held out.
        text_column: column with the texts of a user's file.
        label_column: column with the labels of a user's file.
        protocol: `code` or `paper`, which to follow where a paper and its released code differ.
    """

    name: str
    round: int = 0
    data_dir: Path | None = None
    tasks: int | None = None
    classes_per_task: int | None = None
    class_order_file: Path | None = None
    max_train_per_class: int | None = None
    max_test_per_class: int | None = None
    test_file: Path | None = None
    text_column: str = "text"
    label_column: str = "label"
    protocol: str = "code"

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UnknownName("protocol", self.protocol, PROTOCOLS)
        require_whole("round", self.round, least=0)
        for name in ("tasks", "classes_per_task", "max_train_per_class", "max_test_per_class"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), least=1)

    def divide(self, order: list[str], default_tasks: int) -> list[list[str]]:
        """Cut the ordered classes into tasks."""
        if not order:
            raise InvalidData(
                f"Expected texts of at least one class in the files of {self.name}, found none."
            )
        if self.class_order_file is not None:
            order, explicit = read_class_order(self.class_order_file, order)
            if explicit:
                return self._checked(explicit)
        if self.classes_per_task is None:
            return equal_parts(order, self._fitting_tasks(len(order), default_tasks))
        size = self.classes_per_task
        tasks = [order[start : start + size] for start in range(0, len(order), size)]
        return self._first(tasks)

    def cap(self, split: Split) -> Split:
        """Keep the first examples of a class, as many as wanted."""
        return Split(split.train[: self.max_train_per_class], split.test[: self.max_test_per_class])

    def _fitting_tasks(self, classes: int, default_tasks: int) -> int:
        if self.tasks is None:
            return min(default_tasks, classes)
        if self.tasks > classes:
            raise InvalidSetting(
                f"{self.tasks} tasks need as many classes, but there are {classes}: use fewer."
            )
        return self.tasks

    def _first(self, tasks: list[list[str]]) -> list[list[str]]:
        if self.tasks is not None and self.tasks > len(tasks):
            raise InvalidSetting(
                f"{self.tasks} tasks of {self.classes_per_task} classes were asked for, but the classes make "
                f"{len(tasks)}: use fewer tasks or fewer classes per task."
            )
        return tasks[: self.tasks]

    def _checked(self, explicit: list[list[str]]) -> list[list[str]]:
        if self.classes_per_task is not None or self.tasks not in (None, len(explicit)):
            raise InvalidSetting(
                f"{self.class_order_file} already lists {len(explicit)} tasks: "
                "leave out the number of tasks and of classes per task."
            )
        return explicit
