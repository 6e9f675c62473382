"""An export answers in the place of its revision; otherwise torch does, and the log says why, once."""

import pytest

from repcl.classifier import ModelFolder
from repcl.classifier.export import export_model
from repcl.serving.model import CurrentModel, Question
from tests.serving.conftest import examples, teach

TEXT = "the pear is cold"


@pytest.fixture
def exported(model):
    """A model folder with an export."""
    folder = ModelFolder(model)
    with folder.lock("exporting"):
        export_model(folder, precision="fp32")
    return folder


def test_an_export_answers_what_torch_would(exported, serve):
    fast, slow = serve(device=None), serve(device="cpu", is_read_only=True)
    assert fast.service.current.served.export is not None
    assert slow.service.current.served.export is None
    asked = {"texts": [TEXT, *(one["text"] for one in examples("fruit", "weather"))], "nearest": 2}
    found, expected = (client.post("/v1/predict", json=asked).json() for client in (fast, slow))
    for answer, other in zip(found["predictions"], expected["predictions"], strict=True):
        assert answer["label"] == other["label"]
        assert answer["confidence"] == pytest.approx(other["confidence"], abs=1e-3)
        assert answer["nearest"] == other["nearest"]


def test_an_export_answers_for_the_next_revision_too(exported):
    current = CurrentModel(exported)
    number = teach(exported.path, "place")
    current.refresh()
    assert current.served.number == number
    assert current.served.export is not None
    assert current.served.answers([Question(())]) == [[]]


def test_a_damaged_export_is_left_alone_and_named_once(exported, caplog):
    graph = exported.path / "blobs" / exported.export().graph.file
    graph.write_bytes(b"no graph")
    current = CurrentModel(exported)
    teach(exported.path, "place")
    current.refresh()
    assert current.served.export is None
    assert current.served.answers([Question([])]) == [[]]
    told = [record.message for record in caplog.records if "export" in record.message]
    assert len(told) == 1, told
    assert "repcl export" in told[0]
