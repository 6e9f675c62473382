"""Every reader of files that may come from strangers, fed with what hypothesis thinks of.

Only errors for users come out: one sentence each.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ["csv", "tsv", "jsonl", "parquet", "xlsx", "preset"]
RUNS = ["result", "predictions", "analysis", "progress", "representations"]
RECORDS = ["current", "revision"]
BLOBS = ["exemplars", "config", "tokenizer", "tensor"]
SERVICE = ["collected", "jobs"]
EXPORT = ["export", "graph"]


def run(readers: dict[str, int], seed: int) -> int:
    """In a process of its own, for its memory is limited, and a library may take the process with it."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", str(seed), *(f"{one}={readers[one]}" for one in readers)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-4000:]
    return int(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "readers",
    [
        dict.fromkeys(DATA, 600),
        dict.fromkeys([*RUNS, *RECORDS], 150) | dict.fromkeys(BLOBS, 50),
        dict.fromkeys(SERVICE, 150) | dict.fromkeys(EXPORT, 50),
    ],
    ids=["data", "folders", "service and export"],
)
def test_some_thousand_generated_files_lead_to_no_traceback(readers):
    assert run(readers, seed=1) >= sum(readers.values())


# 6 * 4 * 4,000 + 9 * 2 * 1,250 + 6 * 2 * 400 = 123,300 files
@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "cases", "seed"),
    [
        *((reader, 4000, seed) for reader in DATA for seed in range(4)),
        *((reader, 1250, seed) for reader in (*RUNS, *RECORDS, *SERVICE) for seed in range(2)),
        *((reader, 400, seed) for reader in (*BLOBS, *EXPORT) for seed in range(2)),
    ],
)
def test_a_hundred_thousand_generated_files_lead_to_no_traceback(reader, cases, seed):
    assert run({reader: cases}, seed) >= 0.9 * cases
