"""Reads many generated files in this process: `python -m tests.fuzz.run READER CASES SEED`; `all` for READER.

Anything but an error for users ends it with the case that led to it; so does more memory than `MEMORY`.
"""

import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from repcl.data.files import read_examples
from repcl.errors import LONGEST_SENTENCE, RepclError
from repcl.methods import METHODS, make_settings
from repcl.presets import load_preset
from tests.fuzz import seeds, strategies

MEMORY = 2 << 30


def read_preset(path: Path) -> None:
    settings = load_preset(str(path)).settings_for("repcl", "hwu64", "sentence")
    make_settings(METHODS["repcl"].Settings, settings)


def read_quietly(path: Path) -> None:
    """Read without what is noted about other encodings and separators."""
    read_examples(path, note=lambda _: None)


READERS: dict[str, tuple[Callable[[Path], object], str, st.SearchStrategy[bytes], list[bytes]]] = {
    "csv": (read_quietly, "a.csv", strategies.CSV, seeds.CSV),
    "tsv": (read_quietly, "a.tsv", strategies.CSV, seeds.CSV),
    "jsonl": (read_quietly, "a.jsonl", strategies.JSONL, seeds.JSONL),
    "parquet": (read_quietly, "a.parquet", strategies.PARQUET, seeds.PARQUET),
    "xlsx": (read_quietly, "a.xlsx", strategies.XLSX, seeds.XLSX),
    "preset": (read_preset, "a.toml", strategies.PRESETS, seeds.PRESETS),
}


def fuzz(name: str, cases: int, number: int) -> int:
    """Read so many files, the stored ones first; the number that were read."""
    read, file_name, strategy, stored = READERS[name]
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file_name

        def check(data: bytes) -> None:
            nonlocal count
            count += 1
            path.write_bytes(data)
            try:
                read(path)
            except RepclError as error:
                message = str(error)
                if len(message) > LONGEST_SENTENCE or not message or len(message.splitlines()) != 1:
                    raise AssertionError(f"not one sentence: {message!r}") from error

        for data in stored:
            check(data)
        limits = settings(
            max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        seed(number)(limits(given(strategy)(check)))()
    return count


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    chosen = list(READERS) if sys.argv[1] == "all" else [sys.argv[1]]
    sys.stdout.write(f"{sum(fuzz(name, int(sys.argv[2]), int(sys.argv[3])) for name in chosen)}\n")
