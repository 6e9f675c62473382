"""Reads many generated files in this process: `python -m tests.fuzz.run SEED READER=CASES ...`.

Anything but an error for users ends it with the case that led to it; so does more memory than `MEMORY`.
"""

import resource
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from repcl.data.files import read_examples
from repcl.errors import LONGEST_SENTENCE, RepclError
from repcl.methods import METHODS, make_settings
from repcl.presets import load_preset
from tests.fuzz import seeds, strategies
from tests.fuzz.folders import BLOBS, FOLDERS, good_export, good_files

MEMORY = 2 << 30
EXPORT = ("export", "graph")


class Reader(NamedTuple):
    """Something that reads files of strangers.

    Attributes:
        prepare: gets an empty folder, and gives what puts bytes there and reads them.
        files: what it is fed with.
        stored: what comes first.
    """

    prepare: Callable[[Path], Callable[[bytes], object]]
    files: st.SearchStrategy[bytes]
    stored: list[bytes]


def read_preset(path: Path) -> None:
    settings = load_preset(str(path)).settings_for("repcl", "hwu64", "sentence")
    make_settings(METHODS["repcl"].Settings, settings)


def read_quietly(path: Path) -> None:
    """Read without what is noted about other encodings and separators."""
    read_examples(path, note=lambda _: None)


def single(name: str, read: Callable[[Path], object]) -> Callable[[Path], Callable[[bytes], object]]:
    """A reader of one file by itself."""

    def prepare(folder: Path) -> Callable[[bytes], object]:
        def put_and_read(data: bytes) -> object:
            (folder / name).write_bytes(data)
            return read(folder / name)

        return put_and_read

    return prepare


SINGLE = {
    "csv": Reader(single("a.csv", read_quietly), strategies.CSV, seeds.CSV),
    "tsv": Reader(single("a.tsv", read_quietly), strategies.CSV, seeds.CSV),
    "jsonl": Reader(single("a.jsonl", read_quietly), strategies.JSONL, seeds.JSONL),
    "parquet": Reader(single("a.parquet", read_quietly), strategies.PARQUET, seeds.PARQUET),
    "xlsx": Reader(single("a.xlsx", read_quietly), strategies.XLSX, seeds.XLSX),
    "preset": Reader(single("a.toml", read_preset), strategies.PRESETS, seeds.PRESETS),
}


def reader(name: str) -> Reader:
    """A reader by its name; those of folders begin from files as they are written now."""
    if name in SINGLE:
        return SINGLE[name]
    with tempfile.TemporaryDirectory() as folder:
        good = (good_export if name in EXPORT else good_files)(Path(folder))[name]
    if name == "graph":
        return Reader(FOLDERS[name], strategies.changed([good]), [good, *seeds.FOUND.get(name, [])])
    holds_tensors = name in ("tensor", "representations")
    files = strategies.tensor_files(good) if holds_tensors else strategies.json_files(good)
    strange = [] if name in BLOBS else seeds.JSON
    return Reader(FOLDERS[name], files, [good, *strange, *seeds.FOUND.get(name, [])])


def fuzz(name: str, cases: int, number: int) -> int:
    """Read so many files, the stored ones first; the number that were read."""
    chosen, count = reader(name), 0
    with tempfile.TemporaryDirectory() as folder:
        read = chosen.prepare(Path(folder))

        def check(data: bytes) -> None:
            nonlocal count
            count += 1
            try:
                read(data)
            except RepclError as error:
                message = str(error)
                if len(message) > LONGEST_SENTENCE or not message or len(message.splitlines()) != 1:
                    raise AssertionError(f"not one sentence: {message!r}") from error

        for data in chosen.stored:
            check(data)
        limits = settings(
            max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        seed(number)(limits(given(chosen.files)(check)))()
    return count


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    wanted = [word.split("=") for word in sys.argv[2:]]
    read = sum(fuzz(name, int(cases), int(sys.argv[1])) for name, cases in wanted)
    sys.stdout.write(f"{read}\n")
