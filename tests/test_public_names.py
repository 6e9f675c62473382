"""Public names: every `__all__` is sorted and can be imported."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import repcl

PACKAGE = Path(repcl.__file__).parent


def module_name(path: Path) -> str:
    parts = [part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__"]
    return ".".join(["repcl", *parts])


def public_names(path: Path) -> list[str] | None:
    """The list `__all__` of a file as it is written, if it has one."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


MODULES = {
    module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if public_names(path) is not None
}
every_module = pytest.mark.parametrize("module", MODULES)


def listed(module: str) -> list[str]:
    return public_names(MODULES[module]) or []


def ruff_order(name: str) -> tuple[int, list[tuple[int, str]]]:
    """CONSTANTS, then Classes, then functions; numbers inside names count as numbers."""
    group = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    parts = re.findall(r"\d+|\D+", name)
    return group, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


@every_module
def test_public_names_are_sorted(module: str) -> None:
    assert listed(module) == sorted(listed(module), key=ruff_order)


@every_module
def test_public_names_are_listed_once(module: str) -> None:
    assert len(set(listed(module))) == len(listed(module))


@every_module
def test_public_names_can_be_imported(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in listed(module) if not hasattr(loaded, name)] == []


@every_module
def test_public_names_are_not_private(module: str) -> None:
    assert [name for name in listed(module) if name.startswith("_") and name != "__version__"] == []


@pytest.mark.parametrize("layer", ["data", "model", "losses", "memory", "training", "methods", "evaluation"])
def test_a_layer_has_a_list_of_public_names(layer: str) -> None:
    assert listed(f"repcl.{layer}")
