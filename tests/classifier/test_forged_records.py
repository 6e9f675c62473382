"""Records that a stranger made up, with the right hashes: refused in one sentence, or harmless."""

import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repcl import ContinualClassifier
from repcl.analysis.estimator_settings import make_estimator
from repcl.classifier.inputs import InvalidInput
from repcl.classifier.store.files import BlobFolder, BlobsInMemory, get_examples
from repcl.classifier.store.records import (
    LARGEST_FILE,
    Blob,
    Calibration,
    DamagedModel,
    ExamplesRecord,
    parse_json,
)
from repcl.errors import InvalidSetting, RepclError
from repcl.methods import METHODS
from repcl.methods.settings import make_settings
from tests.classifier.conftest import toy
from tests.classifier.test_hostile import forge, plant, refused

GIGABYTE = 1 << 30


@pytest.fixture(scope="module")
def pristine(make, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("forged") / "model"
    make("ncm", holdout_per_class=1).fit(*toy("fruit", "vehicle", texts=6)).save(path)
    return path


@pytest.fixture
def model(pristine, tmp_path) -> Path:
    return shutil.copytree(pristine, tmp_path / "model")


@pytest.fixture(scope="module")
def of_several_labels(make, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("forged") / "model"
    texts, labels = toy("fruit", "vehicle", texts=12)
    several = [[label, "cold"] if number % 3 else [label] for number, label in enumerate(labels)]
    make("instant", multilabel=True, holdout_per_class=1).fit(texts, several).save(path)
    return path


def contents(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda record: change(record["contents"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda held: held["calibration"].update(temperature=0), "calibration.temperature"),
        (lambda held: held["calibration"].update(temperature=-1.0), "calibration.temperature"),
        (lambda held: held["calibration"].update(temperature=10**400), "calibration.temperature"),
        (lambda held: held["calibration"].update(threshold=1.5), "calibration.threshold"),
        (lambda held: held["classes"].append(held["classes"][0]), "two classes have one name"),
        (lambda held: held.update(declared=["x", "x"]), "two classes have one name"),
        (lambda held: held["classes"][0].update(name=" "), "a class needs a name"),
        (lambda held: held["classes"][0].update(name="a\0b"), "a class needs a name"),
        (lambda held: held["classes"][0].update(name="\ud800"), "Expected JSON"),
        (lambda held: held.update(label_type="number"), "labels are numbers"),
        (lambda held: held.update(parameters="abc"), "contents.parameters"),
        (lambda held: held.update(parameters=[[[]]]), "contents.parameters"),
        (lambda held: held["parameters"].update(seed="abc"), "contents.parameters"),
        (lambda held: held["parameters"].update(holdout_per_class="5"), "contents.parameters"),
        (lambda held: held["parameters"].update(tolerance=None), "contents.parameters"),
        (lambda held: held["parameters"].update(settings=[1]), "contents.parameters"),
        (lambda held: held.update(seed=10**100), "contents.seed"),
        (lambda held: held.update(method="x" * 10**6), "contents.method"),
        (lambda held: held.update({"x" * 10**6: 1}), "extra inputs"),
        (lambda held: held["encoder"]["config"].update(bytes=10**9), "configuration and tokenizer"),
        (lambda held: held["memory"].update(count=10**30), "contents.memory.count"),
    ],
)  # fmt: skip
def test_a_value_that_would_give_wrong_answers_or_a_traceback_is_refused(model, change, sentence):
    forge(model, contents(change))
    assert len(refused(model, sentence)) < 2000


@pytest.mark.parametrize(
    "name", ["--5", "-", "x", "1.0", "05", "+5", " 5", "٥", "9" * 19, "9" * 5000, "-0"], ids=range(11)
)
def test_names_that_are_no_numbers_are_refused_where_labels_are_numbers(model, name):
    def change(held: dict[str, Any]) -> None:
        held["label_type"] = "number"
        for index, record in enumerate(held["classes"]):
            record["name"] = str(index)
        held["declared"] = [name]

    forge(model, contents(change))
    refused(model, "labels are numbers, but not all classes have one")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(record: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a record."""
    inner = (
        record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    )
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def put_in(record: Any, place: tuple[Any, ...], value: Any) -> None:
    for key in place[:-1]:
        record = record[key]
    record[place[-1]] = value


def try_forged(model: Path, data: Any) -> None:
    """Any value anywhere in the record: the classifier loads and answers, or says one sentence."""
    path = model / "revisions" / "000001.json"
    original = path.read_text()
    record = json.loads(original)["record"]
    # tensors are alike, and the files of the encoder are another test's business
    choice = [p for p in places(record) if p and p[:2] != ("contents", "tensors")]
    place, value = data.draw(st.sampled_from(choice)), data.draw(VALUES)
    try:
        forge(model, lambda found: put_in(found, place, value))
        classifier = ContinualClassifier.load(model, device="cpu")
        assert math.isfinite(classifier.predict_proba(["a red apple"]).sum())
        classifier.predict(["a red apple"], threshold="auto")
        classifier.get_params()
    except RepclError as error:
        sentence = str(error)
        assert sentence.isprintable(), sentence
        assert len(sentence) < 2000
    finally:
        path.write_text(original)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_in_any_place_of_a_record_is_harmless(model, data):
    try_forged(model, data)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_in_any_place_of_a_record_is_harmless_thousands_of_times(model, data):
    try_forged(model, data)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_in_any_place_of_a_record_with_several_labels_a_text_is_harmless(of_several_labels, data):
    try_forged(of_several_labels, data)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_records_with_several_labels_a_text_are_harmless_thousands_of_times(of_several_labels, data):
    try_forged(of_several_labels, data)


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "[NaN]",
        "[" * 10**5,
        "9" * 5000,
        "1e999",
        "\xff",
        r'"\ud800"',
        r'"\uDFFF"',
    ],
    ids=range(10),
)
def test_what_is_not_json_is_said(text):
    with pytest.raises(DamagedModel, match="Expected JSON in x"):
        parse_json(text.encode("latin-1"), "x")


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b"1", b'"x"', b"[[[]]]", b'{"format": true}', b'{"format": 1}']
)
@pytest.mark.parametrize("name", ["current.json", "revisions/000001.json"])
def test_json_of_another_form_is_said(model, data, name):
    (model / name).write_bytes(data)
    refused(model, "Expected a record with a format number|is damaged")


# ---- examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "span",
    ['{"start": Infinity, "end": 2}', '{"start": 1e400, "end": 2}', '{"start": -1, "end": 2}',
     '{"start": 2, "end": 1}', '{"start": 0, "end": 99}', '{"start": "x", "end": 1}', "[]", "5", '"x"', "{}"],
)  # fmt: skip
def test_a_span_that_is_not_in_its_text_is_refused(span):
    blobs = BlobsInMemory()
    line = f'{{"text": "war", "label": "a", "trigger": {span}}}\n'.encode()
    record = ExamplesRecord(file=blobs.put(line, "jsonl"), count=1)
    with pytest.raises(DamagedModel, match=r"not an example|Expected JSON"):
        get_examples(record, blobs, ["a"])


def test_an_example_of_another_kind_of_input_is_refused(model):
    blob = plant(model, b'{"text": "war", "label": "fruit", "trigger": {"start": 0, "end": 3}}\n', "jsonl")
    forge(model, contents(lambda held: held["held_out"].update(file=blob, count=1)))
    refused(model, "an example that is no sentence input")


# ---- files that are larger than anything can need -----------------------------------------------


def sparse(model: Path, size: int, ending: str, beginning: bytes = b"") -> dict[str, Any]:
    """A file of a size that takes no space; its name is not that of its bytes."""
    name = f"{'0' * 64}.{ending}"
    with (model / "blobs" / name).open("wb") as file:
        file.write(beginning)
        file.truncate(size)
    return {"file": name, "bytes": size}


def tensor_header(count: int) -> bytes:
    size = 4 * count
    text = json.dumps({"tensor": {"dtype": "F32", "shape": [count], "data_offsets": [0, size]}}).encode()
    return len(text).to_bytes(8, "little") + text


FIELDS = ["memory", "held_out", "config", "tokenizer", "tensor", "tensor with a header", "unused tensor"]


@pytest.mark.parametrize("size", [60 * 10**9, LARGEST_FILE, GIGABYTE])
@pytest.mark.parametrize("field", FIELDS)
def test_a_huge_file_is_refused_within_seconds_and_takes_no_memory(model, field, size):
    def change(held: dict[str, Any]) -> None:
        if field in ("memory", "held_out"):
            held[field] = {"file": sparse(model, size, "jsonl"), "count": 10**9}
        elif field in ("config", "tokenizer"):
            held["encoder"][field] = sparse(model, size, "json")
        else:
            start = tensor_header((size - 100) // 4) if "with a header" in field else b""
            count = 8 + int.from_bytes(start[:8], "little") + (size - 100) // 4 * 4 if start else size
            name = "surplus" if field.startswith("unused") else next(iter(held["tensors"]))
            held["tensors"][name] = sparse(model, count, "safetensors", start)

    forge(model, contents(change))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(RepclError) as caught:
        ContinualClassifier.load(model, device="cpu")
    assert "\n" not in str(caught.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024  # kilobytes
    assert time.monotonic() - start < 60


def test_a_file_that_is_named_until_it_is_many_times_its_size_is_refused(model):
    def change(held: dict[str, Any]) -> None:
        largest = max(held["tensors"].values(), key=lambda blob: blob["bytes"])
        held["pieces"] = {"rows": [largest] * (300 * 2**20 // largest["bytes"])}

    forge(model, contents(change))
    refused(model, "named so often")


def test_what_nothing_can_use_is_not_read_though_a_record_calls_it_derived(make, tmp_path):
    path = tmp_path / "m"
    make("instant").fit(*toy("fruit", "vehicle")).save(path)

    def change(held: dict[str, Any]) -> None:
        start = tensor_header(GIGABYTE // 4)
        size = len(start) + GIGABYTE // 4 * 4
        held["derived"]["solution.9"] = sparse(path, size, "safetensors", start)

    forge(path, contents(change))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert ContinualClassifier.load(path, device="cpu").predict(["a red apple"]).size == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


def test_a_large_file_is_hashed_in_pieces_before_it_is_read(tmp_path):
    script = f"""
import resource
from repcl.classifier.store.files import BlobFolder
from repcl.classifier.store.records import Blob
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
for ask in ("get", "check"):
    try:
        getattr(BlobFolder(Path({str(tmp_path)!r})), ask)(Blob(file="{"0" * 64}.json", bytes=1 << 30))
    except Exception as error:
        print(type(error).__name__)
"""
    with (tmp_path / f"{'0' * 64}.json").open("wb") as file:
        file.truncate(GIGABYTE)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["DamagedModel", "DamagedModel"]


def test_an_orphan_too_large_to_be_ours_is_not_hashed_by_a_sweep(model):
    blob = sparse(model, 60 * 10**9, "json")
    start = time.monotonic()
    ContinualClassifier.load(model, device="cpu").rename_class("fruit", "food").save(model)
    assert time.monotonic() - start < 60
    assert (model / "blobs" / blob["file"]).exists()


def test_a_large_file_that_is_what_its_name_says_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("repcl.classifier.store.files.LARGEST_UNCHECKED", 3)
    data = b"12345"
    (tmp_path / f"{sha256(data).hexdigest()}.json").write_bytes(data)
    assert BlobFolder(tmp_path).get(Blob(file=f"{sha256(data).hexdigest()}.json", bytes=5)) == data


# ---- labels and settings ------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["--5", "-", "5" * 5000, "-" * 5000, "٥", "1e3", "\x1b[31m"], ids=range(7))
def test_a_label_that_is_no_number_is_said_where_labels_are_numbers(make, typed):
    classifier = make("ncm").fit(["a", "b"], [1, 2])
    with pytest.raises(InvalidInput) as caught:
        classifier.rename_class(1, classifier.label_of(typed))
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("typed", "label"), [("5", 5), ("-5", -5), ("05", 5), ("9" * 18, int("9" * 18))])
def test_a_label_that_is_a_number_is_one(make, typed, label):
    assert make("ncm").fit(["a", "b"], [1, 2]).label_of(typed) == label


@pytest.mark.parametrize("label", [10**5000, -(10**20), 2**63], ids=["5,001 digits", "21 digits", "2^63"])
def test_a_label_of_too_many_digits_is_refused(make, label):
    with pytest.raises(InvalidInput, match="int of 64 bits"):
        make("ncm").fit(["a", "b"], [1, label])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_setting_of_any_method_takes_a_number_that_json_cannot_hold(value):
    for name in METHODS:
        kind = METHODS[name].Settings
        for field, info in kind.model_fields.items():
            if info.annotation in (float, float | None):
                with pytest.raises(InvalidSetting, match=f"Setting {field}"):
                    make_settings(kind, {field: value})


@pytest.mark.parametrize(
    "value", [2**32 + 1, -(2**32) - 1, 10**900], ids=["2^32 + 1", "negative", "900 digits"]
)
def test_no_setting_of_any_method_takes_a_number_that_nothing_can_count_to(value):
    for name in METHODS:
        kind = METHODS[name].Settings
        for field, info in kind.model_fields.items():
            if info.annotation in (int, int | None):
                with pytest.raises(InvalidSetting, match=f"Setting {field}.{{1,70}} cannot be used"):
                    make_settings(kind, {field: value})


@pytest.mark.parametrize("field", ["critics", "steps", "patience", "batch_size", "look_every"])
def test_no_setting_of_the_analysis_takes_such_a_number_either(field):
    with pytest.raises(InvalidSetting, match=f"Setting {field} = a whole number of about 897 digits"):
        make_estimator({field: 10**900})


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("seed", 10**100),
        ("seed", -(10**100)),
        ("seed", 10**900),
        ("seed", "one"),
        ("seed", 1.5),
        ("holdout_per_class", -1),
        ("holdout_per_class", 10**900),
        ("holdout_per_class", "some"),
        ("memory_per_class", -1),
        ("memory_total", 10**900),
        ("tolerance", math.inf),
        ("tolerance", math.nan),
        ("tolerance", "none"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_could_not_be_saved_is_refused_before_it_is_learned(make, parameter, value):
    classifier = make("ncm", **{parameter: value})
    for learn in (classifier.fit, classifier.partial_fit):
        with pytest.raises(InvalidSetting, match=f"cannot learn: {parameter}, input should"):
            learn(["a", "b"], ["x", "y"])


@pytest.mark.parametrize("seed", [10**100 - 1, -(10**100) + 1, np.int64(5)])
def test_a_seed_that_can_be_saved_is_taken(make, seed, tmp_path):
    make("ncm", seed=seed).fit(["a", "b"], ["x", "y"]).save(tmp_path / "model")
    assert ContinualClassifier.load(tmp_path / "model").seed == seed


def test_a_calibration_needs_a_temperature_above_zero():
    for value in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="temperature"):
            Calibration(temperature=value)


def test_a_classifier_is_saved_and_loaded_under_a_path_that_is_no_text(make, tmp_path):
    strange = tmp_path / os.fsdecode(b"m\xff")
    make("ncm").fit(*toy("fruit", "vehicle")).save(strange)
    assert ContinualClassifier.load(strange).rename_class("fruit", "food").save(strange) == 2
