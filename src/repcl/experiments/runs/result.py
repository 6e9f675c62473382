"""The result of one run, as it stands in `result.json`."""

import json
import platform
from collections.abc import Iterable, Sized
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from repcl.errors import ResultMismatch
from repcl.files import parse_json, read_plain

FORMAT = 1
LARGEST_RESULT = 64 << 20
"""Bytes of a file of one run that no one has to write by hand; one of a real run has a hundredth of it."""
STRICT = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)
"""A number in quotes is none: `parse_json` has not looked at how large it is."""
PACKAGES = ("repcl", "torch", "transformers", "scikit-learn", "numpy")


class DataSummary(BaseModel):
    """What was learned and tested on."""

    model_config = STRICT

    files: dict[str, str]
    train: int
    test: int
    classes: int
    complete: bool
    capped: bool
    notes: list[str]


class MemorySummary(BaseModel):
    """What was kept at the end."""

    model_config = STRICT

    exemplars_per_class: dict[str, int]
    text_bytes: int
    statistics_bytes: int


class Seconds(BaseModel):
    """Time spent: in each stage of each task by its name, and the total.

    Attributes:
        tasks: wall time, which other work on the machine makes longer.
        all: its sum.
        processor_tasks: time of the processor, in all threads; empty in results of earlier versions.
        processor_all: its sum.
        embeddings_read: how many embeddings were read from a folder that an earlier run had filled; a run
            that read any cost less than its method does.
    """

    model_config = STRICT

    tasks: list[dict[str, float]]
    all: float
    processor_tasks: list[dict[str, float]] = []
    processor_all: float | None = None
    embeddings_read: int = 0


class SavedRepresentations(BaseModel):
    """The representations saved beside the result, and their cost on disk."""

    model_config = STRICT

    folder: str
    files: int
    bytes: int


class Result(BaseModel):
    """One method on one round of one benchmark.

    Attributes:
        processor: what it was made on; None in results of earlier versions. Times of two processors cannot be
            compared.
        finished: when the run ended; None in results of earlier versions.
    """

    model_config = STRICT

    format: int = FORMAT
    method: str
    variant: str | None
    benchmark: str
    encoder: str
    round: int
    preset: str
    settings: dict[str, Any]
    fingerprint: str
    command: str | None
    versions: dict[str, str]
    threads: int
    processor: str | None = None
    processes: int = 1
    precision: str = "no"
    finished: Annotated[AwareDatetime | None, Field(strict=False)] = None
    data: DataSummary
    class_order: Annotated[list[list[str]], Field(min_length=1)]
    accuracy_matrix: list[list[float | None]]
    accuracy_after_task: list[float | None]
    final_accuracy: float | None
    forgetting_rate: float | None
    average_incremental_accuracy: float | None
    backward_transfer: float | None
    forgetting_rate_f1: float | None
    predictions: str
    seconds: Seconds
    memory: MemorySummary
    representations: SavedRepresentations | None = None

    @field_validator("accuracy_matrix")
    @classmethod
    def _check_matrix(cls, rows: list[list[float | None]], known: ValidationInfo) -> list[list[float | None]]:
        _check_lengths([rows, *rows], known)
        return rows

    @field_validator("accuracy_after_task")
    @classmethod
    def _check_accuracies(cls, values: list[float | None], known: ValidationInfo) -> list[float | None]:
        _check_lengths([values], known)
        return values

    @property
    def row(self) -> str:
        """The name of the table row it belongs to."""
        return f"{self.method}@{self.variant}" if self.variant else self.method

    def to_json(self) -> str:
        """The content of `result.json`."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def read_result(path: Path) -> Result:
    """Read a `result.json`."""
    try:
        content = parse_json(read_plain(path, LARGEST_RESULT))
        version = content["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultMismatch(
            f"{path} is not a readable result file; delete it, or use --fresh to run it again."
        ) from error
    if not isinstance(version, int) or version > FORMAT:
        raise ResultMismatch(
            f"{path} has format {version}, this version of repcl reads up to {FORMAT}; update repcl."
        )
    try:
        return Result(**content)
    except ValidationError as error:
        first = error.errors()[0]
        raise ResultMismatch(
            f"{path} is damaged at {'.'.join(map(str, first['loc']))} ({first['msg'].lower()}); "
            "delete it, or use --fresh to run it again."
        ) from error


def installed_versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def processor_name() -> str:
    """The processor of this machine, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _check_lengths(lists: Iterable[Sized], known: ValidationInfo) -> None:
    """Each has one entry for each task, if the order of the tasks is known."""
    tasks = known.data.get("class_order")
    for found in map(len, lists):
        if tasks is not None and found != len(tasks):
            raise PydanticCustomError(
                "tasks",
                "expected {tasks} entries, one for each task, found {found}",
                {"tasks": len(tasks), "found": found},
            )
