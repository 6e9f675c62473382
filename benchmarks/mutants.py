"""Mutation testing: break the code in small ways and see whether the tests notice.

    make mutants          (python benchmarks/mutants.py; stop it at any time, the same command resumes)
    python benchmarks/mutants.py --again      (after writing tests: tries once more what no test noticed)

mutmut makes the mutants and finds out which tests reach them ([tool.mutmut] in pyproject.toml); each meets
those tests only, in a fork of one pytest session (tests/mutants_session.py), until one fails. Every mutant of
the modules in WHOLE is tried, and of the other methods a sample with a fixed seed. Mutants that change
nothing are listed in equivalent_mutants.toml with the reason; of the rest 90 % have to be killed, everywhere.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import tomllib
from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant

ROOT = Path(__file__).parents[1]
MADE = ROOT / "mutants"
TRIED = MADE / "tried.jsonl"
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
ALIVE = (0, 33)  # all tests passed, or no test reaches it
TIMEOUT = -24  # the signal of too much CPU time

Outcomes = dict[str, int]


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


@dataclass(frozen=True)
class Tally:
    """How the mutants of some modules fared."""

    mutants: int
    tried: int
    timeouts: int
    equivalent: int
    not_noticed: int

    @property
    def killed(self) -> int:
        """Those that a test noticed, by failing or by not ending."""
        return self.tried - self.equivalent - self.not_noticed

    @property
    def share(self) -> float:
        """How many of those that could be noticed were."""
        return self.killed / max(self.tried - self.equivalent, 1)

    def __str__(self) -> str:
        return (
            f"{self.mutants} mutants, {self.tried} tried, {self.killed} killed ({self.timeouts} by not "
            f"ending), {self.equivalent} equivalent, {self.not_noticed} not noticed: {self.share:.1%}"
        )


def made() -> dict[str, str]:
    """Every mutant, with the hash of the function that it is made of."""
    found: dict[str, str] = {}
    for meta in sorted(MADE.rglob("*.meta")):
        content = json.loads(meta.read_text(encoding="utf-8"))
        hashes = content["hash_by_function_name"]
        for name in content["exit_code_by_key"]:
            found[name] = hashes[name.rpartition("__mutmut_")[0].rpartition(".")[2]]
    return found


def outcomes() -> Outcomes:
    """How the tests ended for each mutant that was tried, if its function has not changed since."""
    rows = map(json.loads, TRIED.read_text(encoding="utf-8").splitlines()) if TRIED.exists() else ()
    hashes = made()
    return {row["mutant"]: row["code"] for row in rows if hashes.get(row["mutant"]) == row["function"]}


def group_of(name: str) -> str | None:
    """The entry of WHOLE that a mutant belongs to, SAMPLED for other methods, None for the rest."""
    return next((module for module in (*WHOLE, SAMPLED) if name.startswith(f"{module}.")), None)


def chosen(names: Iterable[str]) -> list[str]:
    """All mutants of the modules that are tried as a whole, and a sample of the other methods'."""
    known = list(names)
    others = [name for name in known if group_of(name) == SAMPLED]
    sample = Random(SEED).sample(sorted(others), min(SAMPLE, len(others)))
    return [name for name in known if group_of(name) in WHOLE] + sorted(sample)


def try_mutants(children: int, *, again: bool) -> None:
    """Make the mutants, and try those that were chosen and not tried yet."""
    subprocess.run(["mutmut", "run", "repcl.errors.none"], cwd=ROOT, check=False)  # makes them, runs none
    hashes, known = made(), outcomes()
    wanted = [name for name in chosen(hashes) if name not in known or (again and known[name] in ALIVE)]
    asked = {"children": children, "mutants": {name: hashes[name] for name in wanted}}
    (MADE / "to-try.json").write_text(json.dumps(asked), encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    plugins = ["-p", "no:cacheprovider", "-p", "tests.mutants_plugin", "-p", "tests.mutants_session"]
    tests = settings["pytest_add_cli_args_test_selection"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir=.", "--quiet", "--tb=no", *plugins, *tests],
        cwd=MADE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(MADE / "src"), str(MADE)])},
        check=False,
    )


def change(name: str) -> tuple[str, str]:
    """The lines that a mutant takes away and those it puts there."""
    lines = get_diff_for_mutant(name, path=find_mutant(name).path).splitlines()
    removed = "\n".join(line[1:] for line in lines if re.match(r"-(?!--)", line))
    added = "\n".join(line[1:] for line in lines if re.match(r"\+(?!\+\+)", line))
    return removed, added


def equivalents() -> list[Equivalent]:
    """The listed changes that no test can notice."""
    rows = tomllib.loads((ROOT / "benchmarks/equivalent_mutants.toml").read_text(encoding="utf-8"))["mutant"]
    compiled = [(re.compile(row["module"]), re.compile(row["was"]), re.compile(row["now"])) for row in rows]
    return [Equivalent(*parts, row["reason"]) for parts, row in zip(compiled, rows, strict=True)]


def show_unexplained(known: Outcomes, names: Iterable[str]) -> list[str]:
    """Print each mutant that lives and is not listed as equivalent, and give their names."""
    listed, unexplained = equivalents(), []
    for name in names:
        if known.get(name) not in ALIVE:
            continue
        removed, added = change(name)
        if not any(entry.explains(name, removed, added) for entry in listed):
            unexplained.append(name)
            print(f"\n{name}{' (no test reaches it)' if known[name] else ''}\n{removed}\n{added}")
    return unexplained


def tally(known: Outcomes, names: Iterable[str], unexplained: Iterable[str]) -> Tally:
    """Count outcomes."""
    listed, not_noticed = list(names), set(unexplained)
    codes = [known[name] for name in listed if name in known]
    alive = sum(code in ALIVE for code in codes)
    here = sum(name in not_noticed for name in listed)
    return Tally(
        mutants=len(listed),
        tried=len(codes),
        timeouts=codes.count(TIMEOUT),
        equivalent=alive - here,
        not_noticed=here,
    )


def main() -> None:
    """Try what is left to try, and say how the tests did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--children", type=int, default=2, help="mutants tried at a time")
    parser.add_argument("--again", action="store_true", help="also try those that no test has noticed so far")
    parser.add_argument("--report", action="store_true", help="only say what is known so far")
    options = parser.parse_args()
    os.chdir(ROOT)  # where mutmut looks for its settings
    if not options.report:
        try_mutants(options.children, again=options.again)
    known = outcomes()
    names = chosen(made())
    unexplained = show_unexplained(known, names)
    print()
    groups = {group: [name for name in names if group_of(name) == group] for group in (*WHOLE, SAMPLED)}
    tallies = {group: tally(known, own, unexplained) for group, own in groups.items()}
    tallies["total"] = tally(known, names, unexplained)
    for group, counted in tallies.items():
        print(f"{group}: {counted}")
    sys.exit(any(counted.share < BAR or counted.tried < counted.mutants for counted in tallies.values()))


if __name__ == "__main__":
    main()
