"""Recipes: which runs give which of the paper's tables."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from repcl.errors import ResultMismatch, UnknownName
from repcl.experiments.paper.information import (
    READING,
    bias_figures,
    bias_tables,
    representation_figures,
    representation_tables,
)
from repcl.experiments.paper.numbers import MAIN_BENCHMARKS, Paper
from repcl.experiments.paper.tables import (
    MEMORY_SIZES,
    ablation_tables,
    full_tables,
    main_tables,
    memory_tables,
)
from repcl.experiments.reports.grouping import BenchmarkRuns
from repcl.experiments.reports.html import Part
from repcl.experiments.reports.table import Table
from repcl.experiments.runs.result import LARGEST_RESULT
from repcl.files import parse_json, read_plain, write_whole

RECIPES_FILE = "recipes.json"
TableMaker = Callable[[Sequence[BenchmarkRuns], Sequence[str], Paper], list[Table]]
FigureMaker = Callable[[Sequence[BenchmarkRuns], Sequence[str]], list[Part]]


def _no_figures(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str]) -> list[Part]:  # noqa: ARG001
    return []


@dataclass(frozen=True)
class Recipe:
    """The runs behind a table of the paper, and how the table is made of them.

    Attributes:
        methods: the rows, with `@variant` where settings differ.
        benchmarks: what is run unless the user chooses.
        make_tables: sets our values beside the paper's.
        rounds: how many unless the user chooses.
        save_representations: whether its runs save them; they are analyzed then.
        explanation: how the tables are read.
        make_figures: what is drawn below the tables.
    """

    name: str
    title: str
    methods: tuple[str, ...]
    benchmarks: tuple[str, ...]
    make_tables: TableMaker
    rounds: int = 5
    save_representations: bool = False
    explanation: str = ""
    make_figures: FigureMaker = _no_figures

    def choose(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The rows that the user wants: all, or those named; a plain name stands for its variants too."""
        if not wanted:
            return self.methods
        for name in wanted:
            if not any(_is_meant(row, name) for row in self.methods):
                raise UnknownName(f"row of recipe {self.name}", name, self.methods)
        return tuple(row for row in self.methods if any(_is_meant(row, name) for name in wanted))


_TEN = ("idbr", "kcn", "kdrk", "emar", "rp_cre", "crl", "crecl", "fea", "aca", "repcl")
_MEMORY = tuple(
    method if size == 10 else f"{method}@memory-{size}"
    for method in ("fea", "aca", "repcl")
    for size in MEMORY_SIZES
)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("main", "The paper's main table", _TEN, MAIN_BENCHMARKS, main_tables),
        Recipe("full", "The paper's table of all tasks", _TEN, MAIN_BENCHMARKS, full_tables),
        Recipe(
            "ablation",
            "The paper's ablation study",
            ("repcl", "repcl@no-con", "repcl@no-xmlm", "repcl@no-adv", "repcl@mlm"),
            MAIN_BENCHMARKS,
            ablation_tables,
        ),
        Recipe("memory", "The paper's study of memory sizes", _MEMORY, ("fewrel",), memory_tables),
        Recipe(
            "bias",
            "The paper's evidence of representation bias",
            ("joint", "crl", "crecl", "fea"),
            ("fewrel", "maven", "hwu64"),
            bias_tables,
            rounds=3,
            save_representations=True,
            explanation=READING,
            make_figures=bias_figures,
        ),
        Recipe(
            "representation",
            "The paper's study of representations",
            ("fea", "fea@infomax", "repcl"),
            ("fewrel",),
            representation_tables,
            rounds=3,
            save_representations=True,
            explanation=READING,
            make_figures=representation_figures,
        ),
    )
}


def find_recipe(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise UnknownName("recipe", name, RECIPES)
    return RECIPES[name]


def note_recipe(folder: Path, recipe: Recipe) -> None:
    """Write down that a folder holds runs of a recipe, so that every report of it shows the table."""
    names = [known.name for known in noted_recipes(folder)]
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RECIPES_FILE, json.dumps(list(dict.fromkeys([*names, recipe.name]))) + "\n")


def noted_recipes(folder: Path) -> list[Recipe]:
    """The recipes that a folder was made with."""
    path = folder / RECIPES_FILE
    if not os.path.lexists(path):
        return []
    try:
        return [RECIPES[name] for name in parse_json(read_plain(path, LARGEST_RESULT))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultMismatch(f"{path} does not hold a list of recipe names: delete it.") from error


def _is_meant(row: str, name: str) -> bool:
    return name in (row, row.partition("@")[0])
