"""A tiny encoder in a folder, classifiers on it that learn in a tenth of a second, and toy texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repcl import ContinualClassifier
from repcl.data import InputKind
from repcl.methods import METHODS
from tests.conftest import save_encoder, tiny_encoder, toy_task

WANTED = {"batch_size": 16, "learning_rate": 1e-3, "warmup_epochs": 0.0, "features": 40, "maps": 2}


def cheap_settings(method: str) -> dict[str, Any]:
    fields = METHODS[method].Settings.model_fields
    once = {field: 1 for field in fields if field.endswith("epochs")}
    return {**once, **{field: value for field, value in WANTED.items() if field in fields}}


def save_tiny_encoder(folder: Path, kind: InputKind = "sentence") -> Path:
    encoder = tiny_encoder(kind)
    save_encoder(encoder, folder)
    return folder


def toy(*topics: str, texts: int = 10, start: int = 0) -> tuple[list[str], list[str]]:
    """Texts and labels of topics."""
    examples = toy_task("sentence", *topics, train=texts, start=start).train
    return [f"{one.text} {number}" for number, one in enumerate(examples, start)], [
        one.label for one in examples
    ]


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory) -> Path:
    return save_tiny_encoder(tmp_path_factory.mktemp("tiny-encoder"))


@pytest.fixture(scope="session")
def make(encoder_folder) -> Callable[..., ContinualClassifier]:
    """A classifier that learns fast; the guard is quiet unless a test asks for it."""

    def build(method: str = "fea", **options: Any) -> ContinualClassifier:
        settings = cheap_settings(method) | options.pop("settings", {})
        defaults = {"encoder": str(encoder_folder), "holdout_per_class": 0, "device": "cpu"}
        return ContinualClassifier(method, settings=settings, **(defaults | options))

    return build
