"""Mutation testing: break the code in small ways and see whether the tests notice.

    make mutants          (python benchmarks/mutants.py; stop it at any time, the same command resumes)

mutmut makes the mutants and runs, for each, only the tests that reach it ([tool.mutmut] in pyproject.toml).
Every mutant of the modules in WHOLE is tried, and of the other methods a sample with a fixed seed. Mutants
that change nothing are listed in equivalent_mutants.toml with the reason; of the rest 90 % have to be killed.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import tomllib

ROOT = Path(__file__).parents[1]
WHOLE = (
    "repcl.losses",
    "repcl.training",
    "repcl.memory",
    "repcl.evaluation",
    "repcl.methods.repcl",
    "repcl.classifier.guard",
    "repcl.classifier.store.folder",
    "repcl.classifier.store.files",
    "repcl.files",
)
SAMPLED = "repcl.methods"
SAMPLE, SEED = 300, 2021
BAR = 0.9
SURVIVED, NO_TESTS, NOT_CHECKED = (0,), (5, 33), (None, 2, 34)
AT_A_TIME = 400  # names on one command line


@dataclass(frozen=True)
class Equivalent:
    """A change that cannot be noticed: `was` becomes `is_now` in a module, both regular expressions."""

    module: re.Pattern[str]
    was: re.Pattern[str]
    is_now: re.Pattern[str]
    reason: str

    def explains(self, name: str, removed: str, added: str) -> bool:
        """Whether this is such a change."""
        return bool(self.module.search(name) and self.was.search(removed) and self.is_now.search(added))


def outcomes() -> dict[str, int | None]:
    """The exit code of the tests for every mutant that exists; None where they were not run."""
    found: dict[str, int | None] = {}
    for meta in sorted((ROOT / "mutants").rglob("*.meta")):
        found |= json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def is_whole(name: str) -> bool:
    return any(name.startswith(f"{module}.") for module in WHOLE)


def chosen(names: Iterable[str]) -> list[str]:
    """All mutants of the modules that are tried as a whole, and a sample of the other methods'."""
    known = list(names)
    others = [name for name in known if name.startswith(f"{SAMPLED}.") and not is_whole(name)]
    sample = Random(SEED).sample(sorted(others), min(SAMPLE, len(others)))
    return [name for name in known if is_whole(name)] + sorted(sample)


def try_mutants(names: list[str], children: int) -> None:
    for start in range(0, len(names), AT_A_TIME):
        part = names[start : start + AT_A_TIME]
        subprocess.run(["mutmut", "run", "--max-children", str(children), *part], cwd=ROOT, check=False)


def change(name: str) -> tuple[str, str]:
    """The lines that a mutant takes away and those it puts there."""
    shown = subprocess.run(["mutmut", "show", name], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    removed = "\n".join(line[1:] for line in lines if re.match(r"-(?!--)", line))
    added = "\n".join(line[1:] for line in lines if re.match(r"\+(?!\+\+)", line))
    return removed, added


def equivalents() -> list[Equivalent]:
    rows = tomllib.loads((ROOT / "benchmarks/equivalent_mutants.toml").read_text(encoding="utf-8"))["mutant"]
    compiled = [(re.compile(row["module"]), re.compile(row["was"]), re.compile(row["now"])) for row in rows]
    return [Equivalent(*parts, row["reason"]) for parts, row in zip(compiled, rows, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--children", type=int, default=2, help="mutants tried at a time")
    parser.add_argument("--report", action="store_true", help="only say what is known so far")
    options = parser.parse_args()
    if not options.report:
        subprocess.run(["mutmut", "run", "repcl.errors.none"], cwd=ROOT, check=False)  # makes them, runs none
        try_mutants(chosen(outcomes()), options.children)
    known = outcomes()
    names = chosen(known)
    tried = [name for name in names if known[name] not in NOT_CHECKED]
    alive = [name for name in tried if known[name] in (*SURVIVED, *NO_TESTS)]
    listed, unexplained = equivalents(), []
    for name in alive:
        removed, added = change(name)
        if not any(entry.explains(name, removed, added) for entry in listed):
            unexplained.append(name)
            print(f"\n{name}{' (no test reaches it)' if known[name] in NO_TESTS else ''}\n{removed}\n{added}")
    rest = len(tried) - (len(alive) - len(unexplained))
    share = 1 - len(unexplained) / rest if rest else 0.0
    print(
        f"\n{len(names)} mutants, {len(tried)} tried, {len(tried) - len(alive)} killed, "
        f"{len(alive) - len(unexplained)} equivalent, {len(unexplained)} not noticed: "
        f"{share:.1%} of those that could be noticed were."
    )
    sys.exit(int(share < BAR or len(tried) < len(names)))


if __name__ == "__main__":
    main()
