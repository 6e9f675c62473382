"""A model on a tiny encoder behind an application, asked in this process; jobs share one learning process."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from repcl.classifier import ContinualClassifier, ModelFolder
from repcl.serving import jobs as jobs_module
from repcl.serving.app import create_app
from repcl.serving.jobs import FINAL
from repcl.serving.options import Options
from repcl.serving.process import LearningProcess
from repcl.serving.service import Service
from tests.classifier.conftest import cheap_settings, save_tiny_encoder, toy

TOKEN = "a token of the tests".replace(" ", "-")
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 120.0
ROUNDING = 1e-4
"""Texts that are answered together are padded, which changes the last bits."""


class Shared(LearningProcess):
    """A learning process that outlives the services of the tests: starting one takes seconds."""

    def kill(self) -> None:
        """Stay."""


class Client(TestClient):
    """Asks a service, and knows what is behind it."""

    service: Service

    def wait_for(self, holds: Callable[[], bool]) -> bool:
        """Whether something holds, sooner or later."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if holds():
                return True
            threading.Event().wait(0.02)
        return False

    def wait(self, job: str) -> dict[str, Any]:
        """A job, once nothing more happens to it by itself."""
        self.wait_for(lambda: self.get(f"/v1/jobs/{job}").json()["state"] in {*FINAL, "refused"})
        found: dict[str, Any] = self.get(f"/v1/jobs/{job}").json()
        return found

    def change(self, route: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a change and wait for its job."""
        sent = self.post(f"/v1/{route}", json=body, headers=WITH_TOKEN)
        assert sent.status_code == 202, sent.text
        return self.wait(sent.json()["id"])

    def label(self, text: str) -> str:
        """The best label of a text."""
        answer = self.post("/v1/predict", json={"texts": [text]}).json()
        label: str = answer["predictions"][0]["top"][0]["label"]
        return label


@pytest.fixture(scope="session")
def taught(tmp_path_factory) -> Path:
    """A model folder with three classes, to be copied."""
    folder = tmp_path_factory.mktemp("served")
    encoder = save_tiny_encoder(folder / "encoder")
    classifier = ContinualClassifier(
        "instant", str(encoder), settings=cheap_settings("instant"), device="cpu", tolerance=1.0
    )
    classifier.fit(*toy("fruit", "vehicle", "weather", texts=8)).save(folder / "model")
    return folder / "model"


@pytest.fixture
def model(taught: Path, tmp_path: Path) -> Path:
    """A model folder of its own."""
    shutil.copytree(taught, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="session")
def learner() -> Iterator[Shared]:
    process = Shared()
    yield process
    LearningProcess.kill(process)


def started(stack: ExitStack, path: Path, **options: Any) -> Client:
    """Serve a model until the stack is left; who has the token of the tests may write."""
    given = {"token": TOKEN, "device": "cpu"} | options
    app = create_app(Options(path, **given))
    client = Client(app, base_url="http://localhost", raise_server_exceptions=False)
    client.service = app.service
    return stack.enter_context(client)


@pytest.fixture
def serve(model: Path, learner: Shared, monkeypatch) -> Iterator[Callable[..., Client]]:
    """Serve the model, as often as a test wants."""
    monkeypatch.setattr(jobs_module, "LearningProcess", lambda: learner)
    with ExitStack() as stack:
        yield lambda **options: started(stack, model, **options)


@pytest.fixture(scope="module")
def calm(taught: Path, tmp_path_factory) -> Iterator[Client]:
    """A service that is asked by many tests, and changed by none."""
    path = tmp_path_factory.mktemp("calm") / "model"
    shutil.copytree(taught, path)
    with ExitStack() as stack:
        yield started(stack, path)


@pytest.fixture
def client(serve: Callable[..., Client]) -> Client:
    return serve()


def teach(model: Path, *topics: str, texts: int = 6, start: int = 50) -> int:
    """Teach a model as the command line does, whatever the guard says, and give the revision's number."""
    folder = ModelFolder(model)
    with folder.lock("learning", wait=60):
        classifier = ContinualClassifier.load(model, device="cpu").set_params(tolerance=1.0)
        return classifier.partial_fit(*toy(*topics, texts=texts, start=start)).commit(folder).number


def examples(*topics: str, texts: int = 6, start: int = 50) -> list[dict[str, str]]:
    """Texts and labels as a request has them."""
    found, labels = toy(*topics, texts=texts, start=start)
    return [{"text": text, "label": label} for text, label in zip(found, labels, strict=True)]
