"""A run to be made: which method, on which data, with which options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from repcl.benchmarks import load_benchmark
from repcl.data import TaskStream
from repcl.experiments.plan import RunPlan, plan_run

StreamKey = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class RunRequest:
    """One run to be made.

    Attributes:
        method: its name, with `@variant` if wanted.
        stream: the arguments of `load_benchmark`.
        options: the other arguments of `run_experiment`.
    """

    method: str
    stream: Mapping[str, Any]
    options: Mapping[str, Any]

    def load_stream(self) -> TaskStream:
        """The data of the run; the last ones loaded in this process are not read again."""
        return _load_stream(self.stream_key)

    def plan(self, stream: TaskStream) -> RunPlan:
        """The settled settings of the run on its loaded data."""
        decisive = ("encoder", "preset", "settings")
        return plan_run(
            self.method, stream, **{key: self.options[key] for key in decisive & self.options.keys()}
        )

    @property
    def stream_key(self) -> StreamKey:
        """Equal for runs that learn the same data."""
        return tuple(sorted(self.stream.items()))

    @property
    def title(self) -> str:
        """How the run is called in overviews."""
        return f"{Path(self.stream['name']).stem} {self.method} round {self.stream['round']}"

    @property
    def error_log(self) -> Path:
        """Where its traceback is kept if it fails."""
        name = self.title.replace(" ", "-").replace(os.sep, "-")
        return Path(self.options["out"]) / f"{name}.error.txt"


@lru_cache(maxsize=2)
def _load_stream(arguments: StreamKey) -> TaskStream:
    return load_benchmark(**dict(arguments))
