"""What a grid needs on disk."""

from pathlib import Path

import pytest

from tests.conftest import save_encoder, tiny_encoder, toy_example


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A folder with a tiny encoder and a user's data file."""
    folder = tmp_path_factory.mktemp("grid")
    encoder = tiny_encoder()
    save_encoder(encoder, folder / "encoder")
    rows = [
        toy_example("sentence", topic, n)
        for topic in ("fruit", "vehicle", "weather", "place")
        for n in range(8)
    ]
    lines = [f"{row.text} {number},{row.label}" for number, row in enumerate(rows)]
    (folder / "tickets.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return folder
