"""Running the command line in this process, with a tiny encoder saved to a folder."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from repcl.cli import main
from tests.conftest import save_encoder, tiny_encoder, toy_example


class Output(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def repcl(monkeypatch, capsys) -> Callable[..., Output]:
    """Run `repcl` with words as typed; gives exit code and output."""

    def run(*words: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["repcl", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        captured = capsys.readouterr()
        return Output(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tiny-encoder")
    encoder = tiny_encoder()
    save_encoder(encoder, folder)
    return folder


@pytest.fixture
def data_file(tmp_path) -> Path:
    """A user's CSV with four classes of eight texts."""
    rows = [
        toy_example("sentence", topic, n)
        for topic in ("fruit", "vehicle", "weather", "place")
        for n in range(8)
    ]
    path = tmp_path / "tickets.csv"
    path.write_text("text,label\n" + "".join(f"{row.text} {n},{row.label}\n" for n, row in enumerate(rows)))
    return path
