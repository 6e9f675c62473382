"""Reading a file in a process of its own that may use one gigabyte, as a bomb must not need more."""

import os
import subprocess
import sys
from pathlib import Path

READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from repcl.data.files import read_examples
from repcl.errors import RepclError
try:
    print(len(read_examples(sys.argv[1])))
except RepclError as error:
    print(error)
    sys.exit(2)
"""


def read_limited(path: Path, *, seconds: float = 30) -> tuple[int, str]:
    """The exit code of the reading, and the number of examples or the sentence that it ended with."""
    ended = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        text=True,
        timeout=seconds,
        # the pool that pyarrow has by default reserves address space it does not use
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.strip()
