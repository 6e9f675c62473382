"""How fast learning and answering are: ratios of CPU time, with 95 % intervals, on one thread.

    python benchmarks/speed.py [--only PART]... [--data-dir DIR] [--out results/speed] [--quick]

Parts:
    steps      training beside plain FEA and RepCL (`plain_methods.py`), step by step in turns, in one process
    growth     late tasks beside early ones; many classes beside few
    memory     peaks of resident memory, each in a process of its own
    answers    one text and a thousand beside the bare encoder, by torch and by exports; whether they agree
    commands   whole processes beside `import torch`

Each part writes a file of its name, and `docs/make_speed.py` makes the page of them. Measure while nothing
else runs. `--quick` tries all of it on the bundled texts; its numbers mean nothing.
"""

import argparse
import importlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

for library in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read when torch is imported, and by commands
    os.environ[library] = "1"

import torch  # noqa: E402
from speed_parts.memory import peak  # noqa: E402
from speed_parts.options import Options  # noqa: E402
from transformers.utils.logging import disable_progress_bar  # noqa: E402

PARTS = ("steps", "growth", "memory", "answers", "commands")
RESULTS = Path(__file__).parent.parent / "results" / "speed"


def main(words: Sequence[str] | None = None) -> None:
    given = read_options(words)
    options = Options(given.encoder, given.data_dir, given.quick)
    torch.set_num_threads(1)
    disable_progress_bar()
    if given.peak_of:
        print(peak(given.peak_of, options))
        return
    for name in given.only or PARTS:
        part = importlib.import_module(f"speed_parts.{name}").measure(options)
        part.show()
        part.write(given.out, shlex.join(["python", "benchmarks/speed.py", "--only", name]))


def read_options(words: Sequence[str] | None) -> argparse.Namespace:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="this part; may be given several times"
    )
    parser.add_argument("--encoder", default=Options.encoder)
    parser.add_argument("--data-dir", type=Path, help="holds hwu64 and clinc150; default REPCL_DATA")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="try it out; the numbers mean nothing")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
