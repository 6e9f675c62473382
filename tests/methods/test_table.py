"""The table of methods agrees with the classes that it names, and is cheap to import."""

import subprocess
import sys

import pytest

from repcl.errors import UnknownName
from repcl.methods import METHODS, TABLE, build_method, method_class, method_entry, relative_cost
from repcl.methods.base import is_of_encoder
from repcl.methods.search_ranges import Range
from tests.conftest import readout_of, tiny_encoder

every_method = pytest.mark.parametrize("name", TABLE)


@every_method
def test_the_table_has_the_inputs_of_the_class(name: str) -> None:
    assert TABLE[name].kinds == METHODS[name].kinds


@every_method
def test_the_table_has_the_variants_of_the_class(name: str) -> None:
    assert list(TABLE[name].variants) == list(METHODS[name].variants)


@every_method
def test_the_table_says_whether_the_class_keeps_texts(name: str) -> None:
    method = METHODS[name]
    keeps = "memory_per_class" in method.Settings.model_fields or method.keeps_everything
    assert TABLE[name].keeps_texts == keeps


@every_method
def test_the_table_says_whether_statistics_are_kept(name: str) -> None:
    """Buffers of a new method, except the task of each class, which is a number that needs no text."""
    kind = TABLE[name].kinds[0]
    encoder = tiny_encoder(kind, readout=readout_of(name, kind))
    method = build_method(name, kind, encoder=encoder, settings={}, device="cpu")
    own = {buffer for buffer, _ in method.named_buffers() if not is_of_encoder(buffer)}
    expected = TABLE[name].also_keeps not in ("none", "all training texts")
    assert bool(own - {"class_tasks"}) == expected


@every_method
def test_a_year_and_a_cost_are_plausible(name: str) -> None:
    year = TABLE[name].year
    assert year is None or 2010 < year < 2030
    assert 0 < TABLE[name].cost < 10


@every_method
def test_ranges_of_a_search_belong_to_settings(name: str) -> None:
    settings = METHODS[name].Settings
    for key, dimension in settings.search.items():
        named = {key, *(dimension.unless if isinstance(dimension, Range) else ())}
        assert named <= settings.model_fields.keys()


def test_every_variant_is_built_by_a_class_of_its_method() -> None:
    for name, method in METHODS.items():
        for changes in ({}, *method.variants.values()):
            assert issubclass(method.for_settings(method.Settings(**changes)), method), name


def test_an_unknown_method_is_named_with_the_nearest_one() -> None:
    for look_up in (method_entry, method_class):
        with pytest.raises(UnknownName, match="Did you mean 'repcl'"):
            look_up("recpl")


@pytest.mark.parametrize(
    ("row", "cost"),
    [("repcl", 1.99), ("repcl@no-xmlm", 1.4), ("repcl@mlm", 1.99), ("fea@memory-5", 1.0), ("mine", 1.0)],
)
def test_a_variant_costs_what_its_method_costs_unless_it_was_measured(row: str, cost: float) -> None:
    assert relative_cost(row) == cost


@pytest.mark.parametrize(
    "module", ["repcl.methods.table", "repcl.methods", "repcl.model", "repcl.data.files", "repcl.benchmarks"]
)
def test_names_can_be_listed_without_heavy_packages(module: str) -> None:
    heavy = ("torch", "transformers", "numpy", "scipy", "sklearn")
    script = f"import {module}, sys; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
