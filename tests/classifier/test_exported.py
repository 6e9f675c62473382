"""An export answers as its revision does, belongs to what it was made from, and a stranger's is refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from repcl.classifier.answerer import open_answerer
from repcl.classifier.export import export_model
from repcl.classifier.exported import KEPT_ROWS, Exported, _OpenGraph, _table, leads, open_graph
from repcl.classifier.learned import Learned
from repcl.classifier.store.files import BlobsInMemory
from repcl.classifier.store.graph import check_graph
from repcl.classifier.store.records import FORMAT, DamagedModel, Export, _digest
from repcl.classifier.store.tensors import TensorFile
from repcl.data import Example
from repcl.methods.frozen.instant import Instant
from tests.classifier.conftest import toy

TEXTS = [Example("the pear is cold", ""), Example("a", ""), Example("snow in the city of paris was warm", "")]


def exported(folder: Path, precision: Any = "fp32") -> Export:
    model = ModelFolder(folder)
    with model.lock("exporting"):
        return export_model(model, precision=precision)[1]


def teach(folder: Path, texts: int) -> None:
    classifier = ContinualClassifier.load(folder)
    classifier.partial_fit(*toy("place", texts=texts))
    classifier.save(folder)


def use(folder: Path, number: int) -> None:
    model = ModelFolder(folder)
    with model.lock("rolling back"):
        model.rollback(number)


@pytest.fixture
def model(make, tmp_path) -> Callable[..., Path]:
    def build(method: str = "instant", **options: Any) -> Path:
        classifier: ContinualClassifier = make(method, **{"holdout_per_class": 5, "tolerance": 1.0} | options)
        classifier.partial_fit(*toy("fruit", "vehicle", "weather", texts=12))
        classifier.save(tmp_path / "model")
        return tmp_path / "model"

    return build


@pytest.mark.parametrize("method", ["instant", "ncm", "lda", "refit", "fea", "emar"])
def test_an_export_answers_as_torch_does(model, method) -> None:
    folder = model(method)
    exported(folder)
    fast, slow = open_answerer(folder), open_answerer(folder, device="cpu")
    assert isinstance(fast, Exported)
    assert isinstance(slow, Learned)
    rule = slow.unknown_rule("auto", "unknown")
    found, expected = fast.answer(TEXTS, rule), slow.answer(TEXTS, rule)
    assert np.abs(found.probabilities - expected.probabilities).max() < 1e-3
    assert (found.is_unknown == expected.is_unknown).all()
    assert (fast.classes_ == slow.classes_).all()


def test_a_frozen_encoders_export_answers_for_later_revisions(model) -> None:
    folder = model()
    exported(folder)
    classifier = ContinualClassifier.load(folder)
    classifier.partial_fit(*toy("place", texts=8))
    classifier.save(folder)
    fast, slow = open_answerer(folder), open_answerer(folder, device="cpu")
    assert isinstance(fast, Exported)
    assert fast.revision == 2
    assert "place" in fast.classes_
    assert np.abs(fast.answer(TEXTS)[0] - slow.answer(TEXTS)[0]).max() < 1e-3


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("method", ["instant", "ncm", "lda", "refit"])
def test_a_solution_that_a_rollback_does_not_bring_back_is_solved_for_the_export(model, method, precision):
    folder, told = model(method), []
    teach(folder, 8)
    for number in (1, 2):
        use(folder, number)
        exported(folder, precision)
        fast, slow = open_answerer(folder, tell=told.append), open_answerer(folder, device="cpu")
        assert isinstance(fast, Exported)
        fast.calibration = slow.calibration
        assert fast.revision == number
        assert np.abs(fast.answer(TEXTS)[0] - slow.answer(TEXTS)[0]).max() < (
            1e-3 if precision == "fp32" else 1
        )
    assert told == []


def test_a_solution_with_other_last_bits_is_kept_beside_the_export_while_its_revision_is_in_use(
    model, monkeypatch
) -> None:
    folder = model()
    teach(folder, 8)
    use(folder, 1)
    solve = Instant.solve
    monkeypatch.setattr(Instant, "solve", lambda self: tuple(part * (1 + 1e-9) for part in solve(self)))
    solved = [folder / "blobs" / blob.file for blob in exported(folder).solved.values()]
    assert isinstance(open_answerer(folder), Exported)
    assert solved
    assert all(path.exists() for path in solved)
    use(folder, 2)
    exported(folder)
    assert not any(path.exists() for path in solved)


def test_a_revision_that_was_saved_without_its_solution_is_exported(model, tmp_path) -> None:
    folder = model()
    teach(folder, 8)
    ContinualClassifier.load(folder, revision=1).save(tmp_path / "copy")
    exported(tmp_path / "copy")
    assert isinstance(open_answerer(tmp_path / "copy"), Exported)


@pytest.mark.parametrize(("revision", "is_offered"), [(1, False), (2, True), (None, True)])
def test_a_new_export_is_offered_for_the_revision_in_use_only(model, revision, is_offered) -> None:
    folder, told = model(), []
    exported(folder)
    teach(folder, 8)
    for blob in ModelFolder(folder).revision(2).contents.derived.values():
        (folder / "blobs" / blob.file).unlink(missing_ok=True)  # two may be one
    assert isinstance(open_answerer(folder, revision=revision, tell=told.append), Learned)
    assert told == [
        "The export is not used, and torch takes longer: its solution is not there, as after the use of "
        f"another revision{'; `repcl export` makes it anew' * is_offered}."
    ]


def test_no_new_export_is_offered_for_a_method_that_has_none(model, make) -> None:
    folder, told = model(), []
    exported(folder)
    duet = make("duet", settings={"trained": "fea", "initial_epochs": 1, "replay_epochs": 1})
    duet.fit(*toy("fruit", "vehicle", texts=6)).save(folder)
    assert isinstance(open_answerer(folder, tell=told.append), Learned)
    assert told == ["The export is not used, and torch takes longer: it belongs to another revision."]


def test_without_onnxruntime_no_new_export_is_offered(model, monkeypatch) -> None:
    folder, told = model(), []
    exported(folder)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert isinstance(open_answerer(folder, tell=told.append), Learned)
    assert told == [
        "The export is not used, and torch takes longer: it needs onnxruntime (pip install 'repcl[onnx]')."
    ]


def test_a_trained_methods_export_belongs_to_one_revision(model) -> None:
    folder, told = model("fea"), []
    exported(folder)
    classifier = ContinualClassifier.load(folder)
    classifier.partial_fit(*toy("place", texts=8))
    classifier.save(folder)
    assert isinstance(open_answerer(folder, tell=told.append), Learned)
    assert len(told) == 1
    assert "belongs to another revision" in told[0]
    assert isinstance(open_answerer(folder, revision=1), Exported)


def test_a_renamed_class_keeps_the_export(model) -> None:
    folder = model("fea")
    exported(folder)
    classifier = ContinualClassifier.load(folder)
    classifier.rename_class("fruit", "food")
    classifier.save(folder)
    fast = open_answerer(folder)
    assert isinstance(fast, Exported)
    assert "food" in fast.classes_


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_an_export_goes_with_the_last_revision_that_it_belongs_to(model, precision) -> None:
    folder = model("fea")
    export = exported(folder, precision)
    graphs = [export.graph, *([export.second.graph] if export.second else [])]
    classifier = ContinualClassifier.load(folder)
    classifier.partial_fit(*toy("place", texts=8))
    classifier.save(folder)
    store = ModelFolder(folder)
    assert all((folder / "blobs" / graph.file).is_file() for graph in graphs)
    with store.lock("purging"):
        store.purge([1])
    assert store.export() is None
    assert not any((folder / "blobs" / graph.file).exists() for graph in graphs)


def test_int8_is_calibrated_again_by_texts_left_out(model) -> None:
    folder = model(holdout_per_class=8)
    export = exported(folder, "int8")
    assert export.calibration is not None
    assert export.calibration.texts >= 20
    fast = open_answerer(folder)
    assert isinstance(fast, Exported)
    assert fast.calibration == export.calibration


@pytest.mark.parametrize(
    ("held_out", "more", "is_asked_for"),
    [
        pytest.param(5, 4, False, id="fifteen then nineteen texts"),
        pytest.param(5, 5, True, id="fifteen then twenty texts"),
        pytest.param(8, 5, True, id="more than twenty texts"),
    ],
)
def test_int8_asks_for_a_calibration_in_a_later_revision_where_there_are_texts_for_one(
    model, held_out, more, is_asked_for
) -> None:
    folder, told = model("instant", holdout_per_class=held_out), []
    exported(folder, "int8")
    open_answerer(folder, tell=told.append)
    assert told == []
    teach(folder, more)
    open_answerer(folder, tell=told.append)
    assert told == is_asked_for * [
        "The int8 export is not calibrated for revision 2; `repcl export --int8` does that for the "
        "revision in use."
    ]


def test_int8_is_about_as_sure_as_torch(model) -> None:
    folder = model(holdout_per_class=8)
    learned = open_answerer(folder, device="cpu").calibration
    calibration = exported(folder, "int8").calibration
    assert calibration is not None
    assert 0.5 < calibration.temperature / learned.temperature < 2.0


def test_a_lead_is_that_of_the_best_class_over_the_second() -> None:
    assert leads(np.array([[3.0, 9.0, 7.0], [1.0, 1.0, 0.0]])).tolist() == [2.0, 0.0]
    assert leads(np.zeros((2, 1))).tolist() == [np.inf, np.inf]


class Told:
    """A graph that gives scores of its own for each text, and remembers how many it was asked about."""

    def __init__(self, scores: Any, rows: Any = None) -> None:
        self.scores, self.rows, self.asked = np.array(scores), rows, 0

    def run(self, names: None, inputs: dict[str, Any]) -> list[Any]:
        first, self.asked = self.asked, self.asked + len(inputs["ids"])
        taken = slice(first, self.asked)
        rows = np.ones((self.asked - first, 128), np.int16) if self.rows is None else self.rows[taken]
        return [self.scores[taken], rows]


def in_doubt(folder: Path, doubt: float, first: Told, second: Told) -> Exported:
    answerer = open_answerer(folder)
    assert isinstance(answerer, Exported)
    assert answerer.export.second is not None
    known = answerer.export.second.model_copy(update={"doubt": doubt})
    answerer.export = answerer.export.model_copy(update={"second": known})
    answerer._first, answerer._second = _OpenGraph(first, {}), _OpenGraph(second, {})
    return answerer


SAME_LENGTH = [Example(text, "") for text in ("cold pear", "warm snow", "cold snow")]


def test_int8_asks_again_where_two_classes_are_closer_than_the_doubt(model) -> None:
    folder = model()
    exported(folder, "int8")
    first = Told([[5.0, 1.0, 0.0], [3.0, 3.4, 0.0], [0.0, 2.0, 1.5]])
    second = Told([[7.0, 1.0, 0.0]])
    scores = in_doubt(folder, 0.5, first, second).scores(SAME_LENGTH)[0]
    assert scores.tolist() == [[5.0, 1.0, 0.0], [7.0, 1.0, 0.0], [0.0, 2.0, 1.5]]
    assert second.asked == 1


def test_representations_are_those_of_the_graph_that_answers(model) -> None:
    folder = model()
    exported(folder, "int8")
    first = Told([[5.0, 1.0, 0.0], [3.0, 3.4, 0.0], [0.0, 2.0, 0.5]], np.zeros((3, 4), np.int16))
    second = Told([[7.0, 1.0, 0.0]], np.full((1, 4), 9, np.int16))
    rows = in_doubt(folder, 0.5, first, second).scores(SAME_LENGTH)[1]
    assert rows[:, 0].tolist() == [0, 9, 0]


def test_graphs_of_different_sizes_are_said_in_one_sentence(model) -> None:
    folder = model()
    exported(folder, "int8")
    first = Told([[1.0, 1.0, 0.0]] * 3, np.zeros((3, 4), np.int16))
    second = Told([[7.0, 1.0, 0.0]] * 3, np.zeros((3, 5), np.int16))
    with pytest.raises(DamagedModel, match="different sizes"):
        in_doubt(folder, 0.5, first, second).scores(SAME_LENGTH)


def test_the_doubt_is_about_as_large_as_what_int8_changes(model) -> None:
    folder = model()
    export = exported(folder, "int8")
    assert export.second is not None
    fast, slow = open_answerer(folder), open_answerer(folder, device="cpu")
    assert isinstance(fast, Exported)
    exact = [fast._ask(fast._open(one), fast.tokenize(TEXTS))[0] for one in (export, export.second)]
    change = np.abs(np.diff(exact[0] - exact[1], axis=1)).max()
    assert change / 10 < export.second.doubt < 10 * change
    assert exact[1] == pytest.approx(slow.state.method.scores(TEXTS), abs=1e-3)


@pytest.mark.parametrize("method", ["instant", "fea"])
def test_an_int8_export_in_doubt_of_everything_answers_as_torch_does(model, method) -> None:
    folder = model(method, holdout_per_class=0)
    export = exported(folder, "int8")
    assert export.second is not None
    fast, slow = open_answerer(folder), open_answerer(folder, device="cpu")
    fast.export = export.model_copy(update={"second": export.second.model_copy(update={"doubt": 1e9})})
    fast.calibration = slow.calibration
    assert np.abs(fast.answer(TEXTS)[0] - slow.answer(TEXTS)[0]).max() < 1e-3


def test_a_model_of_one_class_is_never_in_doubt(make, tmp_path) -> None:
    classifier = make("instant")
    classifier.partial_fit(*toy("fruit", texts=6))
    classifier.save(tmp_path / "one")
    export = exported(tmp_path / "one", "int8")
    assert export.second is not None
    assert export.second.doubt == 0.0


def test_a_damaged_second_graph_is_said_in_one_sentence(model) -> None:
    folder = model()
    second = exported(folder, "int8").second
    assert second is not None
    path = folder / "blobs" / second.graph.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    answerer = open_answerer(folder)
    assert isinstance(answerer, Exported)
    answerer.export = answerer.export.model_copy(update={"second": second.model_copy(update={"doubt": 1e9})})
    with pytest.raises(DamagedModel, match=r"damaged.*; `repcl export --int8` makes it anew"):
        answerer.answer(TEXTS)


def test_an_int8_export_of_an_earlier_version_asks_one_graph(model) -> None:
    folder = model()
    export = exported(folder, "int8")
    body = export.model_dump(mode="json", exclude={"second"})
    record = {"format": FORMAT, "sha256": _digest(body), "record": body}
    folder.joinpath("export.json").write_text(json.dumps(record))
    answerer = open_answerer(folder)
    assert isinstance(answerer, Exported)
    assert answerer.export == export.model_copy(update={"second": None})
    assert answerer.answer(TEXTS).probabilities.shape == (3, 3)


def test_int8_multiplies_by_random_maps_in_8_bits_too_and_says_nothing(model, caplog) -> None:
    folder = model()
    graph = exported(folder, "int8").graph
    nodes = onnx.load(folder / "blobs" / graph.file).graph.node
    narrow = [node.name for node in nodes if node.op_type == "MatMulInteger"]
    assert sum("/maps" in name for name in narrow) == 2
    assert sum("/backbone/" in name for name in narrow) == 12
    assert not caplog.records


def test_large_tables_are_handed_to_the_graph_from_files_of_their_own(model, monkeypatch) -> None:
    folder = model()
    small = exported(folder)
    monkeypatch.setattr("repcl.classifier.onnx_graph.SMALLEST_TABLE", 1 << 10)
    export = exported(folder)
    assert not small.tables
    assert any("word_embeddings" in name for name in export.tables)
    assert any("maps" in name for name in export.tables)
    assert export.graph.bytes < small.graph.bytes
    assert all((folder / "blobs" / blob.file).is_file() for blob in export.files)
    fast, slow = open_answerer(folder), open_answerer(folder, device="cpu")
    assert isinstance(fast, Exported)
    assert np.abs(fast.answer(TEXTS)[0] - slow.answer(TEXTS)[0]).max() < 1e-3


def test_word_embeddings_lie_in_the_file_that_the_encoder_has_already(model, monkeypatch) -> None:
    folder = model()
    before = {path.name for path in (folder / "blobs").iterdir()}
    monkeypatch.setattr("repcl.classifier.onnx_graph.SMALLEST_TABLE", 1 << 10)
    tables = exported(folder).tables
    (name,) = [name for name in tables if "word_embeddings" in name]
    assert tables[name].file in before


def test_a_damaged_table_is_not_used_and_torch_answers(model, monkeypatch) -> None:
    folder, told = model(), []
    monkeypatch.setattr("repcl.classifier.onnx_graph.SMALLEST_TABLE", 1 << 10)
    table = next(blob for name, blob in exported(folder).tables.items() if "maps" in name)
    path = folder / "blobs" / table.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert isinstance(open_answerer(folder, tell=told.append), Learned)
    assert "damaged" in told[0]


def test_a_table_of_another_shape_is_said_in_one_sentence(model, monkeypatch) -> None:
    folder = model()
    monkeypatch.setattr("repcl.classifier.onnx_graph.SMALLEST_TABLE", 1 << 10)
    export = exported(folder)
    blobs = BlobsInMemory()
    other = blobs.put(TensorFile(torch.zeros(3, 2)), "safetensors")
    fast = open_answerer(folder)
    assert isinstance(fast, Exported)
    fast._first.handed_in[next(iter(export.tables))] = _table(blobs, other)
    with pytest.raises(DamagedModel, match="could not answer"):
        fast.answer(TEXTS)


def test_a_new_export_takes_the_place_of_the_old_one(model) -> None:
    folder = model()
    first, second = exported(folder, "int8"), exported(folder)
    assert ModelFolder(folder).export() == second
    assert not (folder / "blobs" / first.graph.file).exists()


def test_a_damaged_graph_is_not_used_and_torch_answers(model) -> None:
    folder, told = model(), []
    graph = exported(folder).graph
    path = folder / "blobs" / graph.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert isinstance(open_answerer(folder, tell=told.append), Learned)
    assert "damaged" in told[0]


def test_a_long_text_is_shortened_with_a_note(model) -> None:
    folder = model()
    exported(folder)
    with pytest.warns(UserWarning, match="1 of 1 texts have over 64 tokens and were shortened"):
        open_answerer(folder).answer([Example("pear " * 100, "")])


# ---- graphs of strangers --------------------------------------------------------------------------------


def graph(*nodes: onnx.NodeProto, initializers: Any = (), opsets: Any = (("", 17),)) -> onnx.ModelProto:
    wanted = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    given = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    body = helper.make_graph(list(nodes), "g", [wanted], [given], initializer=list(initializers))
    model = helper.make_model(body, opset_imports=[helper.make_opsetid(*one) for one in opsets])
    model.ir_version = 8
    return model


def test_plain_operations_pass() -> None:
    number = onnx.numpy_helper.from_array(np.ones(1, dtype=np.float32), "one")
    model = graph(helper.make_node("Add", ["x", "one"], ["y"]), initializers=[number])
    check_graph(model.SerializeToString(), "here")


def external() -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../../etc/passwd")
    return graph(helper.make_node("Add", ["x", "w"], ["y"]), initializers=[tensor])


def promised() -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[10**6, 10**6], raw_data=b"1234")
    return graph(helper.make_node("Add", ["x", "w"], ["y"]), initializers=[tensor])


def looping() -> onnx.ModelProto:
    inner = graph(helper.make_node("Identity", ["x"], ["y"])).graph
    return graph(helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner))


def with_function() -> onnx.ModelProto:
    model = graph(helper.make_node("Add", ["x", "x"], ["y"]))
    model.functions.add(name="Add", domain="")
    return model


@pytest.mark.parametrize(
    ("make_model", "why"),
    [
        (external, "part of number"),
        (promised, "not in the file"),
        (looping, "'If'"),
        (with_function, "part of number 25"),
        (lambda: graph(helper.make_node("Add", ["x", "x"], ["y"], domain="evil")), "'evil'"),
        (lambda: graph(opsets=(("", 17), ("evil", 1))), "'evil'"),
        (lambda: graph(helper.make_node("Evil", ["x"], ["y"])), "'Evil'"),
    ],
)
def test_a_graph_that_does_more_than_compute_is_refused(make_model, why) -> None:
    with pytest.raises(DamagedModel, match=why):
        check_graph(make_model().SerializeToString(), "here")


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"\x3a\x7f", b"\x00\x00", b"PK\x03\x04", b"\x08" * 9])
def test_bytes_that_are_no_graph_are_refused(data) -> None:
    with pytest.raises(DamagedModel):
        check_graph(data, "here")


def test_a_small_graph_that_asks_for_a_huge_tensor_gets_no_memory() -> None:
    size = onnx.numpy_helper.from_array(np.array([10**12], dtype=np.int64), "size")
    model = graph(
        helper.make_node("ConstantOfShape", ["size"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
        initializers=[size],
    )
    blobs = BlobsInMemory()
    with pytest.raises(Exception, match=r"(?i)alloc|memory"):
        open_graph(blobs, blobs.put(model.SerializeToString(), "onnx"), 1).run(
            None, {"x": np.ones(1, dtype=np.float32)}
        )


# ---- a stranger's folder ------------------------------------------------------------------------


class Session:
    """Answers as a stranger's graph may."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)

    def run(self, names: None, inputs: dict[str, Any]) -> list[Any]:
        return self.outputs


SCORES, ROWS = np.zeros((3, 3), dtype=np.float32), np.ones((3, 128), dtype=np.int16)


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        ([np.zeros((3, 2))], "other classes"),
        ([np.zeros(3)], "other classes"),
        ([np.array([["a"] * 3] * 3)], "something else than numbers"),
        ([[1.0, 2.0]], "something else than numbers"),
        ([SCORES + np.inf], "not finite"),
        ([SCORES + np.nan], "not finite"),
        ([SCORES, ROWS[:2]], "other texts"),
        ([SCORES, np.ones(3)], "other texts"),
        ([SCORES, {}], "something else than numbers"),
        ([SCORES, ROWS[:, :5]], "another size"),
        ([SCORES], "another size"),
    ],
)
def test_an_answer_that_cannot_be_right_is_said_in_one_sentence(model, outputs, sentence) -> None:
    folder = model()
    exported(folder)
    answerer = open_answerer(folder)
    assert isinstance(answerer, Exported)
    assert answerer.calibration.familiarity is not None
    answerer._first = _OpenGraph(Session(*outputs), {})
    with pytest.raises(DamagedModel, match=sentence):
        answerer.evidence(TEXTS)


@pytest.mark.parametrize(
    "rows",
    [
        torch.zeros(3, 5, dtype=torch.int16),
        torch.zeros(3, dtype=torch.int16),
        torch.zeros((), dtype=torch.int16),
        torch.zeros(0, 5, dtype=torch.int16),
        torch.zeros(3, 5, 2, dtype=torch.int16),
        torch.zeros(3, 5),
    ],
    ids=lambda rows: str(list(rows.shape)),
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside good ones"])
def test_kept_embeddings_that_do_not_fit_an_export_are_said_in_one_sentence(model, rows, beside) -> None:
    folder = model()
    exported(folder)
    answerer = open_answerer(folder)
    assert isinstance(answerer, Exported)
    blobs = BlobsInMemory()
    good = [answerer._blobs.get(blob) for blob in answerer._contents.pieces[KEPT_ROWS]] if beside else []
    pieces = [blobs.put(data, "safetensors") for data in (*good, b"".join(TensorFile(rows)))]
    answerer._blobs = blobs
    answerer._contents = answerer._contents.model_copy(update={"pieces": {KEPT_ROWS: tuple(pieces)}})
    with pytest.raises(DamagedModel):
        answerer.evidence(TEXTS)
