"""Every reader of users' files, fed with what hypothesis thinks of: only errors for users come out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READERS = ["csv", "tsv", "jsonl", "parquet", "xlsx", "preset"]


def run(reader: str, cases: int, seed: int) -> int:
    """In a process of its own, for its memory is limited, and a library may take the process with it."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", reader, str(cases), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-4000:]
    return int(ended.stdout)


def test_three_thousand_generated_files_lead_to_no_traceback():
    assert run("all", 600, seed=1) >= 3000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reader", READERS)
def test_a_hundred_thousand_generated_files_lead_to_no_traceback(reader, seed):
    assert run(reader, 5000, seed) >= 4500
