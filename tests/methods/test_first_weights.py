"""How classifier rows start: as in the code of each method's authors."""

from typing import Any

import pytest

from repcl.methods import build_method
from tests.conftest import tiny_encoder, toy_task

NO_MOVE: dict[str, Any] = {"learning_rate": 1e-12, "head_learning_rate": 1e-12, "initial_epochs": 1}


def largest_first_weight(name: str, **settings: Any) -> tuple[float, int]:
    """The largest number among the rows of six classes that hardly moved, and how long a row is."""
    kind = "relation" if name == "aca" else "sentence"
    encoder = tiny_encoder(kind)
    method = build_method(name, kind, encoder=encoder, settings={**NO_MOVE, **settings}, seed=0)
    method.learn(toy_task(kind, "fruit", "vehicle", "weather", "place"))
    rows = method.head.output.weight.detach()
    return rows.abs().max().item(), rows.shape[1]


@pytest.mark.parametrize("name", ["emar", "rp_cre", "aca", "crecl", "idbr", "kcn", "kdrk"])
def test_rows_start_uniform_as_pytorchs_layers_do(name: str) -> None:
    largest, size = largest_first_weight(name)
    assert 0.9 * size**-0.5 < largest <= size**-0.5 + 1e-6


@pytest.mark.parametrize(
    ("name", "settings"),
    [("fea", {}), ("repcl", {}), ("sequential", {}), ("joint", {}), ("kcn", {"head": "hidden"})],
)
def test_rows_start_in_a_narrow_normal_as_berts_layers_do(name: str, settings: dict[str, Any]) -> None:
    largest, _ = largest_first_weight(name, **settings)
    assert 0.03 < largest < 0.1  # of 128 draws from N(0, 0.02)
