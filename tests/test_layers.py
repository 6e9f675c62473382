"""Imports point down the list of layers only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import repcl

PACKAGE = Path(repcl.__file__).parent
LAYERS = [
    {"cli"},
    {"serving"},
    {"classifier", "experiments"},
    {"presets"},
    {"analysis"},
    {"evaluation"},
    {"methods"},
    {"training"},
    {"memory"},
    {"losses"},
    {"model"},
    {"benchmarks"},
    {"data"},
    {"files"},
    {"errors"},
    {"lazy", "allocator"},
]
HEIGHT = {name: len(LAYERS) - index for index, names in enumerate(LAYERS) for name in names}
FREE = {"__init__", "__main__"}


def layer(module: str) -> str:
    """The layer that a module belongs to: `repcl.data.rows` -> `data`."""
    return [*module.split("."), "__init__"][1]


def imported(source: str) -> Iterator[str]:
    """Every module or name under repcl that a source text imports, wherever the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "repcl")
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "repcl":
                yield from (f"repcl.{alias.name}" for alias in node.names)
            elif node.module.startswith("repcl."):
                yield node.module


def upward_imports(module: str, source: str) -> list[str]:
    """What a module imports from above itself, or from a layer beside its own."""
    own = layer(module)
    return [
        name for name in imported(source) if layer(name) != own and HEIGHT.get(layer(name), 0) >= HEIGHT[own]
    ]


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = [part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__"]
        if parts and parts[0] not in FREE:
            found[".".join(["repcl", *parts])] = path
    return found


@pytest.mark.parametrize("module", modules())
def test_imports_point_down(module: str) -> None:
    assert upward_imports(module, modules()[module].read_text(encoding="utf-8")) == []


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer(module) for module in modules()} - HEIGHT.keys() == set()


def test_no_import_is_relative() -> None:
    relative = [
        module
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level > 0
    ]
    assert relative == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from repcl.methods import METHODS", ["repcl.methods"]),
        ("from repcl import methods", ["repcl.methods"]),
        ("import repcl.methods.fea", ["repcl.methods.fea"]),
        ("def f():\n    from repcl.cli import main", ["repcl.cli"]),
        ("from repcl.errors import InvalidData", []),
        ("from repcl.data.order import class_order", []),
        ("import torch", []),
    ],
)
def test_this_test_finds_imports_that_point_up(source: str, found: list[str]) -> None:
    assert upward_imports("repcl.data.rows", source) == found
