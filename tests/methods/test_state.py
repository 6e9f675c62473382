"""What is written of a method, and what it keeps beside texts and weights."""

import json
import re
from pathlib import Path

import pytest
import torch

from repcl.errors import InvalidSetting, ResultMismatch
from repcl.methods import Method, build_method
from repcl.methods.state import load_method, save_method
from tests.conftest import tiny_encoder, toy_task


def learned(name: str = "fea") -> Method:
    method = build_method(name, "sentence", encoder=tiny_encoder(), settings={"initial_epochs": 1})
    method.learn(toy_task("sentence", "fruit", "vehicle", train=4))
    return method


def test_the_state_names_the_encoder_and_the_classes(tmp_path: Path) -> None:
    save_method(learned(), "fea", tmp_path)
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["method"], state["kind"], state["encoder"]) == ("fea", "sentence", "tiny")
    assert (state["classes"], state["seed"], state["tasks_learned"]) == (["fruit", "vehicle"], 0, 1)


def test_a_state_of_a_newer_version_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"format": 2}')
    sentence = f"{path} has format 2, this version of repcl reads up to 1; update repcl."
    with pytest.raises(ResultMismatch, match=f"^{re.escape(sentence)}$"):
        load_method(tmp_path)


@pytest.mark.parametrize(("name", "bytes_kept"), [("fea", 0), ("emar", 2 * 32 * 4)])
def test_prototypes_are_statistics_and_the_encoder_is_not(name: str, bytes_kept: int) -> None:
    assert learned(name).statistics_bytes() == bytes_kept


def test_classes_stay_where_something_kept_of_them_cannot_be_taken_apart() -> None:
    method = learned()
    method.register_buffer("mixture", torch.zeros(3))
    sentence = (
        "FEA keeps 'mixture', of which no row belongs to one class, so classes cannot be merged or removed: "
        "teach a new classifier instead."
    )
    with pytest.raises(InvalidSetting, match=f"^{re.escape(sentence)}$"):
        method.forget_class("fruit")
    assert method.classes == ["fruit", "vehicle"]
