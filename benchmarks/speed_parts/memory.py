"""The most memory that learning takes, beside plain methods: each learns in a process of its own."""

import resource
import subprocess
import sys
from pathlib import Path

from speed_parts.contenders import NAMES, contender
from speed_parts.measured import Part, Row, exact
from speed_parts.options import Options

PAIRS = (("fea", "plain fea"), ("repcl", "plain repcl"), ("repcl fast", "repcl"))
MEGABYTE = 1 << 20


def measure(options: Options) -> Part:
    """Peaks of resident memory and their ratios; each is measured once, for it hardly varies."""
    peaks = {name: _peak_of_process(name, options) for name in NAMES}
    ratios = [exact(f"{ours} / {theirs}", peaks[ours] / peaks[theirs]) for ours, theirs in PAIRS]
    sizes = [Row(f"{name}, megabytes", peak, peak, peak) for name, peak in peaks.items()]
    return Part("memory", "peak of resident memory", (*ratios, *sizes))


def peak(name: str, options: Options) -> float:
    """Learn one task in this process and give the most megabytes that it took."""
    contender(name, options.first_tasks(32), options.encoder, {"initial_epochs": 1, "replay_epochs": 1})(
        lambda _: None
    )
    # of this program alone: `getrusage` also counts what the process held before it became this program
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024 / MEGABYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def _peak_of_process(name: str, options: Options) -> float:
    script = Path(__file__).parent.parent / "speed.py"
    words = [sys.executable, str(script), *options.words(), "--peak-of", name]
    ended = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    return float(ended.stdout)
