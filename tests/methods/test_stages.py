"""Which stages each method tells its observer about, in which order, and which losses."""

from collections.abc import Mapping
from typing import Any

import pytest
from torch import Tensor

from repcl.data import InputKind
from repcl.methods import METHODS, build_method
from repcl.training import Observer, Stage
from tests.classifier.conftest import cheap_settings
from tests.conftest import readout_of, tiny_encoder, toy_task

LEARN, REMEMBER, REPLAY = Stage.INITIAL_LEARNING, Stage.MEMORY_UPDATE, Stage.REPLAY
REPLAYED = [LEARN, REMEMBER, REPLAY]
RECONSOLIDATED = [LEARN, REMEMBER, Stage.ACTIVATION, Stage.RECONSOLIDATION]
SOLVED = [Stage.EMBEDDING, Stage.SOLVING]
SECOND_TASK: dict[str, list[Stage]] = {
    "repcl": REPLAYED,
    "fea": REPLAYED,
    "emar": RECONSOLIDATED,
    "rp_cre": [*REPLAYED, REMEMBER],
    "crl": [*REPLAYED, REMEMBER],
    "crecl": [LEARN, LEARN, REMEMBER, LEARN, REPLAY],
    "idbr": [LEARN, REMEMBER],  # old texts are replayed while new ones are learned
    "kcn": [LEARN, REMEMBER],
    "kdrk": [LEARN, REMEMBER],
    "aca": RECONSOLIDATED,
    "sequential": [LEARN],
    "joint": [LEARN],
    "instant": SOLVED,
    "ncm": SOLVED,
    "lda": SOLVED,
    "refit": SOLVED,
}
TERMS = {
    "repcl": "ce, con, xmlm, clean, adversarial 1",
    "fea": "ce",
    "emar": "ce, prototypes",
    "rp_cre": "ce",
    "crl": "con, kd",
    "crecl": "ce, js, prototypes",
    "idbr": "ce, order, retention",
    "kcn": "ce, fd, pd",
    "kdrk": "new, replay",
    "aca": "ce, prototypes",
    "sequential": "ce",
    "joint": "ce",
}
"""What the losses are called in progress, trackers and analyses."""


class Listener(Observer):
    """Writes down the stages that begin, and that each ends before the next begins."""

    def __init__(self) -> None:
        self.told: list[Stage] = []
        self.open: list[Stage] = []
        self.terms: set[str] = set()

    def stage_begins(self, stage: Stage, **_: Any) -> None:
        assert self.open == []
        self.told.append(stage)
        self.open.append(stage)

    def step_ends(self, terms: Mapping[str, Tensor]) -> None:
        self.terms |= terms.keys()

    def stage_ends(self, stage: Stage) -> None:
        assert self.open.pop() is stage


@pytest.mark.parametrize("name", SECOND_TASK)
def test_a_second_task_is_told_stage_by_stage(name: str) -> None:
    kind: InputKind = "relation" if "sentence" not in METHODS[name].kinds else "sentence"
    encoder = tiny_encoder(kind, readout=readout_of(name, kind))
    method = build_method(name, kind, encoder=encoder, settings=cheap_settings(name), seed=0)
    method.learn(toy_task(kind, "fruit", "vehicle", train=4))
    method.observer = listener = Listener()
    method.learn(toy_task(kind, "weather", train=4))
    assert (listener.told, listener.open) == (SECOND_TASK[name], [])
    assert listener.terms == set(TERMS.get(name, "").split(", ")) - {""}
