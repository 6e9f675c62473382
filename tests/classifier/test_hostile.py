"""Model folders from strangers: refused in one sentence, nothing executed, little memory taken."""

import json
import os
import pickle
import resource
import shutil
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from repcl import ContinualClassifier
from repcl.classifier.store.records import DamagedModel
from repcl.errors import RepclError
from tests.classifier.conftest import toy

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def pristine(make, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "model"
    make().fit(*toy("fruit", "vehicle")).save(path)
    return path


@pytest.fixture
def model(pristine, tmp_path) -> Path:
    return shutil.copytree(pristine, tmp_path / "model")


def digest(record: Any) -> str:
    return sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def forge(model: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of the revision as someone would who knows how its hash is made."""
    path = model / "revisions" / "000001.json"
    whole = json.loads(path.read_text())
    change(whole["record"])
    path.write_text(json.dumps(whole | {"sha256": digest(whole["record"])}))


def plant(model: Path, data: bytes, ending: str) -> dict[str, Any]:
    """A file with the right name for its bytes."""
    name = f"{sha256(data).hexdigest()}.{ending}"
    (model / "blobs" / name).write_bytes(data)
    return {"file": name, "bytes": len(data)}


def replace_tensor(model: Path, data: bytes, key: str = "head.output.weight") -> None:
    blob = plant(model, data, "safetensors")
    forge(model, lambda record: record["contents"]["tensors"].update({key: blob}))


def refused(model: Path, sentence: str) -> str:
    with pytest.raises(RepclError, match=sentence) as caught:
        ContinualClassifier.load(model)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["REPCL_TRAP"],)


@pytest.fixture
def trap(tmp_path, monkeypatch) -> Path:
    """Exists as soon as a pickle was opened."""
    path = tmp_path / "sprung"
    monkeypatch.setenv("REPCL_TRAP", str(path))
    return path


def test_pickle_bytes_in_place_of_a_tensor_are_not_opened(model, trap):
    replace_tensor(model, pickle.dumps(Trap()))
    refused(model, "is not a tensor in safetensors form")
    assert not trap.exists()


def test_pickle_bytes_in_place_of_a_record_are_not_opened(model, trap):
    (model / "revisions" / "000001.json").write_bytes(pickle.dumps(Trap()))
    refused(model, r"Expected JSON in .*000001\.json")
    assert not trap.exists()


def test_pickle_bytes_in_place_of_the_memory_are_not_opened(model, trap):
    blob = plant(model, pickle.dumps(Trap()), "jsonl")
    forge(model, lambda record: record["contents"]["memory"].update(file=blob, count=0))
    refused(model, "Expected 0 examples|Expected JSON")
    assert not trap.exists()


@pytest.mark.parametrize(
    "name",
    [
        "../../secret",
        "/etc/passwd",
        "..",
        f"../{'0' * 64}.safetensors",
        f"{'0' * 64}.pt",
        f"{'0' * 64}.json\n",
    ],
)
def test_a_file_name_that_leads_elsewhere_is_refused(model, name):
    forge(model, lambda record: record["contents"]["tensors"]["head.output.weight"].update(file=name))
    refused(model, "is not what repcl writes: contents.tensors")


def test_a_link_to_elsewhere_is_refused(model, tmp_path):
    record = json.loads((model / "revisions" / "000001.json").read_text())["record"]
    path = model / "blobs" / record["contents"]["memory"]["file"]["file"]
    target = tmp_path / "elsewhere"
    target.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(target)
    refused(model, "Expected a plain file")


def test_a_pipe_in_place_of_a_file_does_not_block(model):
    (model / "current.json").unlink()
    os.mkfifo(model / "current.json")
    refused(model, "Expected a plain file")


def header(length: int, text: bytes) -> bytes:
    return length.to_bytes(8, "little") + text


HUGE = json.dumps(
    {"tensor": {"dtype": "F32", "shape": [250_000, 1_000_000], "data_offsets": [0, 10**12]}}
).encode()


@pytest.mark.parametrize(
    "data",
    [
        header(10**12, b"{}"),
        header(len(HUGE), HUGE),
        header(2**63, HUGE),
        b"",
        b"\x00" * 7,
        header(2, b"{}"),
        header(9, b'{"a": [}]'),
    ],
    ids=["header of 1 TB", "tensor of 1 TB", "overflow", "nothing", "too short", "no tensor", "bad JSON"],
)
def test_a_header_that_claims_a_terabyte_is_refused_and_takes_no_memory(model, data):
    replace_tensor(model, data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(model, "is not a tensor in safetensors form")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # kilobytes


@pytest.mark.parametrize("depth", [900, 10_000, 100_000])
@pytest.mark.parametrize("target", ["revisions/000001.json", "current.json"])
def test_deeply_nested_json_is_refused(model, depth, target):
    (model / target).write_text('{"format": 1, "record": ' + "[" * depth + "]" * depth + "}")
    refused(model, "Expected JSON|is damaged|not what repcl writes|Expected a record")


def test_deeply_nested_json_with_the_right_hash_is_refused(model):
    def change(record):
        deep: Any = 1
        for _ in range(400):
            deep = [deep]
        record["contents"]["parameters"]["settings"] = {"deep": deep}

    forge(model, change)
    with pytest.raises(RepclError):
        ContinualClassifier.load(model).fit(*toy("fruit", "vehicle"))


def test_deeply_nested_json_in_the_memory_is_refused(model):
    blob = plant(model, b"[" * 10_000 + b"]" * 10_000 + b"\n", "jsonl")
    forge(model, lambda record: record["contents"]["memory"].update(file=blob, count=1))
    refused(model, "Expected JSON in blobs/")


def change_encoder(model: Path, **changes: Any) -> None:
    record = json.loads((model / "revisions" / "000001.json").read_text())["record"]
    config = json.loads((model / "blobs" / record["contents"]["encoder"]["config"]["file"]).read_text())
    config["config"].update(changes)
    config["attention"] = changes.get("attention", config["attention"])
    blob = plant(model, json.dumps(config).encode(), "json")
    forge(model, lambda changed: changed["contents"]["encoder"].update(config=blob))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hidden_size": 10**7}, "expected hidden_size between 1 and 65536, found 10000000"),
        ({"hidden_size": 65_536}, "do not fit its configuration"),
        ({"vocab_size": 10**8}, "expected vocab_size between 1 and 2000000, found 100000000"),
        ({"vocab_size": 2_000_000}, "do not fit its configuration"),
        ({"num_hidden_layers": 10**7}, "expected num_hidden_layers between 1 and 256, found 10000000"),
        ({"num_hidden_layers": 256}, "do not fit its configuration"),
        ({"model_type": "no-such-model"}, "found model type 'no-such-model'"),
        ({"model_type": ["bert"]}, "found model type"),
        ({"hidden_size": "big"}, "cannot be used|cannot be rebuilt|do not fit"),
        ({"hidden_act": "os.system"}, "cannot be rebuilt"),
    ],
)
def test_a_configuration_that_asks_for_more_is_refused_before_memory_is_taken(model, changes, sentence):
    change_encoder(model, **changes)
    tracemalloc.start()
    try:
        refused(model, sentence)
        assert tracemalloc.get_traced_memory()[1] < 50 * MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("method", "changes", "sentence"),
    [
        ("instant", {"features": 10**5}, "of memory, this machine has"),
        ("instant", {"features": 10**12}, "Setting features = 1000000000000 cannot be used"),
        ("instant", {"maps": 10**9}, "Setting maps = 1000000000 cannot be used"),
        ("instant", {"maps": 900}, "expected ledger.sums.2.sums .* found none"),
        ("crl", {"projection_size": 10**9}, r"expected projection.2.weight of shape \(1000000000, 32\)"),
        ("crecl", {"projection_size": 10**9}, "expected .* of shape"),
        ("kcn", {"feature_size": 10**9}, "expected .* of shape"),
        ("idbr", {"feature_size": 10**9}, "expected .* of shape"),
        ("rp_cre", {"key_size": 10**9}, "expected .* of shape"),
        ("rp_cre", {"attention_heads": 10**6, "key_size": 10**6}, "do not fit method 'rp_cre'"),
    ],
)
def test_settings_that_ask_for_more_than_there_is_are_refused_before_memory_is_taken(
    make, tmp_path, method, changes, sentence
):
    model = tmp_path / "model"
    make(method).fit(*toy("fruit", "vehicle")).save(model)
    forge(model, lambda record: record["contents"]["settings"].update(changes))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(model, sentence)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_a_missing_tensor_does_not_hide_how_large_the_settings_are(make, tmp_path):
    model = tmp_path / "model"
    make("instant").fit(*toy("fruit", "vehicle")).save(model)

    def change(record):
        record["contents"]["settings"]["features"] = 10**5
        record["contents"]["derived"] = {}

    forge(model, change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(model, "expected ledger.sums.0.sums of shape .* found none")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_a_queue_that_could_hold_more_than_there_is_takes_no_memory(make, tmp_path):
    model = tmp_path / "model"
    make("repcl").fit(*toy("fruit", "vehicle")).save(model)
    forge(model, lambda record: record["contents"]["settings"].update(queue_size=2**32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ContinualClassifier.load(model).partial_fit(*toy("weather"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_a_classifier_head_with_another_number_of_rows_than_classes_is_refused(model, rows):
    replace_tensor(model, save({"tensor": torch.zeros(rows, 32)}))
    refused(model, rf"expected head.output.weight of shape \(2, 32\), found \({rows}, 32\)")


@pytest.mark.parametrize("label", [-1, 2, 2**31 - 1])
def test_embeddings_of_a_class_that_is_not_there_are_refused(make, tmp_path, label):
    model = tmp_path / "model"
    make("instant").fit(*toy("fruit", "vehicle")).save(model)
    labels = torch.tensor([label] * 20, dtype=torch.int32)
    replace_tensor(model, save({"tensor": labels}), "ledger.kept.labels")
    refused(model, "20 kept embeddings do not belong to the 2 classes")


@pytest.mark.parametrize("method", ["instant", "lda"])
def test_sums_that_belong_to_no_texts_are_said_when_they_are_asked(make, tmp_path, method):
    model = tmp_path / "model"
    settings = {"features": 40} if method == "instant" else {}
    classifier = make(method, settings={**settings, "keep_embeddings": False})
    classifier.fit(*toy("fruit", "vehicle")).save(model)
    products = torch.full_like(classifier.method_.state_dict()["ledger.sums.0.products"], 10**9)
    products[0] = -(10**9)  # a sum of squares
    replace_tensor(model, save({"tensor": products}), "ledger.sums.0.products")
    forge(model, lambda record: record["contents"].update(derived={}))  # the solution is there no more
    loaded = ContinualClassifier.load(model)
    with pytest.raises(RepclError, match=r"belong to no texts.*: restore the saved learner\.$"):
        loaded.predict(["a"])


def test_a_tokenizer_with_more_words_than_the_encoder_knows_is_refused(model):
    record = json.loads((model / "revisions" / "000001.json").read_text())["record"]
    parts = json.loads((model / "blobs" / record["contents"]["encoder"]["tokenizer"]["file"]).read_text())
    backend = json.loads(parts["backend"])
    backend["model"]["vocab"]["surprise"] = 5000
    blob = plant(model, json.dumps(parts | {"backend": json.dumps(backend)}).encode(), "json")
    forge(model, lambda changed: changed["contents"]["encoder"].update(tokenizer=blob))
    refused(model, "more words than the")


def test_a_configuration_that_names_code_elsewhere_loads_without_it(model):
    change_encoder(
        model,
        auto_map={"AutoModel": "evil--model.Evil"},
        attn_implementation="evil/kernel",
        _attn_implementation="evil/kernel",
        quantization_config={"quant_method": "evil"},
        attention="evil/kernel",
    )
    assert ContinualClassifier.load(model).predict(["a"]).shape == (1,)


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b'{"backend": "{}", "special_tokens": {}, "model_max_length": 5}']
)
def test_a_tokenizer_that_is_none_is_refused(model, data):
    blob = plant(model, data, "json")
    forge(model, lambda record: record["contents"]["encoder"].update(tokenizer=blob))
    refused(model, "tokenizer cannot be rebuilt")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda record: record.pop("contents"), "not what repcl writes: contents"),
        (lambda record: record.update(extra=1), "not what repcl writes: extra"),
        (lambda record: record.update(number=5), "holds revision 5, not 1"),
        (lambda record: record["contents"].update(method="os.system"), "No method 'os.system'"),
        (lambda record: record["contents"].update(kind="image"), "contents.kind"),
        (lambda record: record["contents"]["settings"].update(batch_size=-1), "batch_size"),
        (lambda record: record["contents"]["tensors"].pop("head.output.weight"), "do not fit"),
        (
            lambda record: record["contents"].update(classes=[]),
            "class that the revision does not have|do not fit",
        ),
        (lambda record: record["contents"]["parameters"].update(method=[]), "contents.parameters"),
    ],
)
def test_a_record_that_does_not_add_up_is_refused(model, change, sentence):
    forge(model, change)
    refused(model, sentence)


def test_a_file_larger_than_its_record_says_is_not_read(model):
    with (model / "current.json").open("wb") as file:
        file.truncate(1 << 40)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(model, "Expected at most")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_strange_files_in_the_folder_are_not_taken_for_revisions(model):
    for name in ("x.json", "9999999999999.json", "-1.json", "1e3.json"):
        (model / "revisions" / name).write_text("{}")
    assert ContinualClassifier.load(model).predict(["a"]).shape == (1,)


def test_damage_is_an_error_that_the_command_line_can_print():
    assert issubclass(DamagedModel, RepclError)
