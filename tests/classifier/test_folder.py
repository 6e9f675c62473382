"""The model folder: revisions, rollback, damage, locks, full disks, and what it says about texts."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from repcl import ContinualClassifier, files
from repcl.classifier import ModelFolder
from repcl.classifier.store.collected import CollectedText, Collection
from repcl.classifier.store.files import CannotWrite, ModelIsLocked
from repcl.classifier.store.records import DamagedModel, Export, NewerFormat, origin_of, to_json
from repcl.errors import MissingData, RepclError
from repcl.methods import METHODS
from tests.classifier.conftest import save_tiny_encoder, toy

pytestmark = pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")
ASKED = toy("fruit", "vehicle", "weather", start=70)[0]


@pytest.fixture(scope="module")
def pristine(make, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("folder") / "model"
    classifier = make(holdout_per_class=2).fit(*toy("fruit", "vehicle"))
    classifier.save(path)
    classifier.holdout_per_class = 0
    classifier.fitted_state().held_out.clear()
    classifier.partial_fit(*toy("weather", start=30)).save(path)
    return path


@pytest.fixture
def model(pristine, tmp_path) -> Path:
    """A folder with two revisions."""
    return shutil.copytree(pristine, tmp_path / "model")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def answers(path: Path, revision: int | None = None) -> np.ndarray:
    return ContinualClassifier.load(path, revision=revision).predict_proba(ASKED)


@pytest.mark.parametrize("name", [name for name in METHODS if "sentence" in METHODS[name].kinds])
def test_save_load_learn_is_learn_bit_for_bit(make, tmp_path, name):
    stays = make(name, holdout_per_class=2).fit(*toy("fruit", "vehicle"))
    stays.save(tmp_path / "model")
    comes_back = ContinualClassifier.load(tmp_path / "model", device="cpu", encoder=stays.encoder)
    np.testing.assert_array_equal(comes_back.predict_proba(ASKED), stays.predict_proba(ASKED))
    for classifier in (stays, comes_back):
        classifier.partial_fit(*toy("weather", "fruit", start=30))
    np.testing.assert_array_equal(comes_back.predict_proba(ASKED), stays.predict_proba(ASKED))
    assert list(comes_back.method_.memory) == list(stays.method_.memory)
    assert comes_back.fitted_state().held_out == stays.fitted_state().held_out
    assert comes_back.get_params() | {"device": None} == stays.get_params() | {"device": None}


def test_every_save_is_a_new_revision_and_old_ones_stay(model):
    folder = ModelFolder(model)
    assert folder.numbers() == [1, 2]
    assert folder.current() == 2
    assert [revision.parent for revision in folder.history()] == [None, 1]
    assert [update.new_classes for one in folder.history() for update in one.updates] == [
        ("fruit", "vehicle"),
        ("weather",),
    ]
    assert ContinualClassifier.load(model, revision=1).classes_.tolist() == ["fruit", "vehicle"]
    assert ContinualClassifier.load(model).classes_.tolist() == ["fruit", "vehicle", "weather"]


def test_rollback_uses_an_older_revision_and_learning_continues_from_there(model):
    first, folder = answers(model, 1), ModelFolder(model)
    with folder.lock("testing"):
        folder.rollback(1)
    np.testing.assert_array_equal(answers(model), first)
    ContinualClassifier.load(model).partial_fit(*toy("place")).save(model)
    assert folder.current() == 3
    assert folder.revision(3).parent == 1
    assert ContinualClassifier.load(model).classes_.tolist() == ["fruit", "place", "vehicle"]


def test_a_number_is_never_given_twice(model):
    folder = ModelFolder(model)
    with folder.lock("testing"):
        folder.rollback(1)
        folder.purge([2])
    ContinualClassifier.load(model).rename_class("fruit", "food").save(model)
    assert folder.numbers() == [1, 3]


def test_tensors_that_did_not_change_are_stored_once(model):
    before = set((model / "blobs").iterdir())
    ContinualClassifier.load(model).rename_class("fruit", "food").save(model)
    added = set((model / "blobs").iterdir()) - before
    assert {path.suffix for path in added} == {".jsonl"}


def test_removing_a_class_stores_only_its_row_the_texts_and_their_hashes_again(model):
    before = set((model / "blobs").iterdir())
    ContinualClassifier.load(model).remove_class("fruit").save(model)
    added = set((model / "blobs").iterdir()) - before
    assert sorted(path.suffix for path in added) == [".jsonl", ".safetensors", ".safetensors"]


@pytest.mark.parametrize(
    "name", [name for name in ("fea", "emar", "instant", "ncm", "refit") if name in METHODS]
)
def test_the_revision_after_a_removal_holds_no_trace_of_the_class(make, tmp_path, name):
    texts, labels = toy("fruit", "vehicle", "weather")
    marked = [f"{text} secret{number}" for number, text in enumerate(texts)]
    classifier = make(name, holdout_per_class=2).fit(marked, labels)
    classifier.save(tmp_path / "model")
    classifier.remove_class("vehicle").save(tmp_path / "model")
    folder = ModelFolder(tmp_path / "model")
    kept, shapes = audit(folder, 2)
    full, shapes_before = audit(folder, 1)
    gone = [text.encode() for text, label in zip(marked, labels, strict=True) if label == "vehicle"]
    assert b"vehicle" in full
    assert not any(trace in kept for trace in [b"vehicle", *gone])
    for key, shape in shapes.items():
        if shape != shapes_before[key]:
            assert shape[0] < shapes_before[key][0], key
    per_class = [key for key in shapes if key.endswith(("output.weight", "prototypes", "sums", "counts"))]
    assert all(shapes[key][0] == 2 for key in per_class if not key.startswith("encoder."))


def audit(folder: ModelFolder, number: int) -> tuple[bytes, dict[str, tuple[int, ...]]]:
    """All bytes of a revision's own record and texts, and the shapes of its tensors."""
    record = folder.revision(number)
    names = [folder.path / "blobs" / blob.file for blob in record.contents.blobs()]
    data = (folder.path / "revisions" / f"{number:06}.json").read_bytes()
    data += b"".join(path.read_bytes() for path in names if path.suffix == ".jsonl")
    classifier = ContinualClassifier.load(folder.path, revision=number)
    classifier.predict(["a"])  # what is derived is computed when it is needed
    state = classifier.method_.state_dict()
    return data, {key: tuple(tensor.shape) for key, tensor in state.items()}


def test_purging_deletes_revisions_and_the_files_only_they_need(model):
    folder = ModelFolder(model)
    needed = {blob.file for blob in folder.revision(2).contents.blobs()}
    with folder.lock("testing"):
        folder.purge([1])
    assert folder.numbers() == [2]
    assert {path.name for path in (model / "blobs").iterdir()} == needed
    assert answers(model).shape == (30, 3)


def test_the_revision_in_use_cannot_be_purged(model):
    with pytest.raises(RepclError, match="Revision 2 is in use"):
        ModelFolder(model).purge([2])


def test_a_vanished_encoder_does_not_matter(make, tmp_path):
    encoder = save_tiny_encoder(tmp_path / "encoder")
    classifier = make(encoder=str(encoder)).fit(*toy("fruit", "vehicle"))
    classifier.save(tmp_path / "model")
    shutil.rmtree(encoder)
    loaded = ContinualClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(ASKED), classifier.predict_proba(ASKED))
    loaded.partial_fit(*toy("weather"))


def test_texts_with_line_separators_and_quotes_survive(make, tmp_path):
    texts = ['rain\u2028and "sun"', "snow\u0085wind", "a\\b\tc", "cold\nwarm", "apple", "pear"]
    classifier = make(memory_per_class=6).fit(texts, ["x", "x", "x", "x", "y", "y"])
    classifier.save(tmp_path / "model")
    kept = {example.text for example in ContinualClassifier.load(tmp_path / "model").method_.memory}
    assert kept == set(texts)


def test_the_folder_says_in_plain_words_which_texts_it_holds(model):
    words = (model / "README.md").read_text()
    assert "Which texts of users it holds" in words
    assert "| 1 |" in words
    assert "| 2 | 16 | 4 |" in words  # revision 1: two classes, 16 exemplars, 4 held-out texts
    assert "--purge" in words


def test_only_safe_kinds_of_files_are_written(model):
    assert {path.suffix for path in model.rglob("*") if path.is_file()} == {
        ".json",
        ".jsonl",
        ".safetensors",
        ".md",
        "",
    }


def test_no_file_names_the_encoder_package_path(make, tmp_path):
    make().fit(*toy("fruit", "vehicle")).save(tmp_path / "model")
    configs = [path.read_text() for path in (tmp_path / "model" / "blobs").glob("*.json")]
    assert not any("name_or_path" in text for text in configs)


def test_a_folder_with_the_names_of_the_first_version_opens(model):
    path = model / "revisions" / "000002.json"
    whole = json.loads(path.read_text())
    record, before = whole["record"], answers(model)
    record["contents"]["held_back"] = record["contents"].pop("held_out")
    update = record["updates"][0]
    update["held_back"] = update.pop("held_out")
    del update["regressed"]
    change = {"name": "fruit", "texts": 3, "right_before": 2, "right_after": 1, "lost": 1}
    update["fallen"] = [change]
    body = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps(whole | {"sha256": sha256(body).hexdigest()}))
    np.testing.assert_array_equal(answers(model), before)
    (told,) = ContinualClassifier.load(model).last_update_.regressed
    assert (told.correct_before, told.correct_after) == (2, 1)


def test_looking_into_a_folder_imports_neither_torch_nor_scikit_learn(model):
    script = f"""
import sys
from repcl.classifier import ModelFolder
folder = ModelFolder({str(model)!r})
assert [one.number for one in folder.history()] == [1, 2]
folder.check(2)
assert not {{"torch", "sklearn", "scipy", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# ---- damage -------------------------------------------------------------------------------------


def own_files(model: Path, number: int) -> list[Path]:
    """Files that only this revision has."""
    folder = ModelFolder(model)
    others = {blob.file for one in folder.history() if one.number != number for blob in one.contents.blobs()}
    return [
        model / "blobs" / b.file for b in folder.revision(number).contents.blobs() if b.file not in others
    ]


def test_a_flipped_bit_is_seen_and_the_last_good_revision_offered(model):
    victim = next(path for path in own_files(model, 2) if path.suffix == ".safetensors")
    data = bytearray(victim.read_bytes())
    data[-1] ^= 1
    victim.write_bytes(data)
    with pytest.raises(DamagedModel) as caught:
        ContinualClassifier.load(model)
    assert f"blobs/{victim.name} is damaged" in str(caught.value)
    assert f"The last good revision is 1: `repcl rollback {model} 1` goes back to it." in str(caught.value)
    with ModelFolder(model).lock("testing"):
        ModelFolder(model).rollback(1)
    assert answers(model).shape == (30, 2)


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_lost_or_emptied_file_is_named(model, harm):
    victim = own_files(model, 2)[0]
    harm(victim)
    with pytest.raises(DamagedModel, match=victim.name):
        ContinualClassifier.load(model)


def test_damage_in_what_all_revisions_share_is_said_to_need_a_copy(model):
    shared = set(own_files(model, 2))
    tokenizer = next(path for path in (model / "blobs").glob("*.json") if path not in shared)
    tokenizer.write_bytes(b"{}" + tokenizer.read_bytes()[2:])
    with pytest.raises(DamagedModel, match="restore the folder from a copy"):
        ContinualClassifier.load(model)


def test_a_changed_record_is_seen(model):
    path = model / "revisions" / "000002.json"
    path.write_text(path.read_text().replace('"weather"', '"whether"'))
    with pytest.raises(DamagedModel, match=r"000002\.json is damaged.*last good revision is 1"):
        ContinualClassifier.load(model)


def test_a_lost_pointer_can_be_set_again(model):
    (model / "current.json").write_text("{")
    with pytest.raises(DamagedModel, match=r"current\.json.*repcl rollback .* 2"):
        ContinualClassifier.load(model)
    with ModelFolder(model).lock("testing"):
        ModelFolder(model).rollback(2)
    assert answers(model).shape == (30, 3)


def test_a_folder_killed_a_moment_before_its_first_switch_opens(make, tmp_path):
    classifier = make().fit(*toy("fruit", "vehicle"))
    classifier.save(tmp_path / "model")
    (tmp_path / "model" / "current.json").unlink()
    np.testing.assert_array_equal(answers(tmp_path / "model"), classifier.predict_proba(ASKED))
    assert (
        ContinualClassifier.load(tmp_path / "model").rename_class("fruit", "x").save(tmp_path / "model") == 2
    )


def test_a_damaged_file_is_repaired_by_the_next_save(model):
    classifier = ContinualClassifier.load(model)
    blob = ModelFolder(model).revision(2).contents.tensors["head.output.weight"]
    victim = model / "blobs" / blob.file
    whole = victim.read_bytes()
    victim.write_bytes(b"x" * len(whole))
    classifier.rename_class("fruit", "food").save(model)
    assert victim.read_bytes() == whole


def test_learning_continues_beside_a_damaged_old_revision(model):
    (model / "revisions" / "000001.json").write_text("nonsense")
    ContinualClassifier.load(model).partial_fit(*toy("place")).save(model)
    assert ModelFolder(model).current() == 3
    assert [one.number for one in ModelFolder(model).history()] == [2, 3]


def test_a_newer_format_is_refused_with_advice(model):
    path = model / "revisions" / "000002.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"format": 99}))
    with pytest.raises(NewerFormat, match="format 99, this version of repcl reads up to 2: update repcl"):
        ContinualClassifier.load(model)


@pytest.mark.parametrize("number", [7, -1])
def test_a_revision_that_is_not_there_is_said_with_those_that_are(model, number):
    with pytest.raises(MissingData, match=f"no revision {number}; there are: 1, 2"):
        ContinualClassifier.load(model, revision=number)


def test_a_folder_without_a_model_is_said(tmp_path):
    with pytest.raises(MissingData, match="There is no model in"):
        ContinualClassifier.load(tmp_path / "nothing")


# ---- writing that fails -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EROFS, "may not be written"),
        (errno.EIO, "could not be written"),
    ],
)
@pytest.mark.parametrize("after", [0, 1, 3, 100])
def test_a_write_that_fails_leaves_the_old_revision_and_no_leftovers(
    model, monkeypatch, number, sentence, after
):
    classifier = ContinualClassifier.load(model).partial_fit(*toy("place"))
    before, old = contents(model), answers(model)
    calls = iter(range(1000))
    real = os.replace

    def failing(source, target):
        if next(calls) >= after or Path(target).name == "000003.json":
            raise OSError(number, os.strerror(number))
        return real(source, target)

    monkeypatch.setattr(files.os, "replace", failing)
    with pytest.raises(CannotWrite, match=f"{sentence}.*revision 2 stays in use"):
        classifier.save(model)
    monkeypatch.undo()
    changed = {name for name, data in contents(model).items() if before.get(name) != data}
    assert changed <= {"lock"}
    np.testing.assert_array_equal(answers(model), old)
    assert classifier.save(model) == 3


def test_bytes_reach_the_disk_before_the_names_that_lead_to_them(model, monkeypatch):
    steps: list[tuple[str, int]] = []  # what was synced, by inode, and what was renamed, by its new name
    real_sync, real_replace = os.fsync, os.replace

    def sync(number):
        steps.append(("sync", os.fstat(number).st_ino))
        return real_sync(number)

    def replace(source, target):
        steps.append((Path(target).name, os.stat(source).st_ino))
        return real_replace(source, target)

    classifier = ContinualClassifier.load(model).rename_class("fruit", "food")
    old = set((model / "blobs").iterdir())
    monkeypatch.setattr(files.os, "fsync", sync)
    monkeypatch.setattr(files.os, "replace", replace)
    classifier.save(model)
    names = [name for name, _ in steps]
    revision, current = names.index("000003.json"), names.index("current.json")
    for index in (revision, names.index("README.md"), current):
        assert ("sync", steps[index][1]) in steps[:index]
    for path in [*(set((model / "blobs").iterdir()) - old), model / "blobs"]:
        assert ("sync", path.stat().st_ino) in steps[:revision]
    assert ("sync", (model / "revisions").stat().st_ino) in steps[revision:current]
    assert ("sync", model.stat().st_ino) in steps[current:]


def test_a_new_folder_that_cannot_be_finished_is_taken_away(make, tmp_path, monkeypatch):
    classifier = make().fit(*toy("fruit", "vehicle"))

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(CannotWrite, match="nothing was changed"):
        classifier.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_things_in_it_is_left_alone(make, tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(MissingData, match=r"found .* with 'thesis\.txt' in it"):
        make().fit(*toy("fruit", "vehicle")).save(tmp_path)
    with pytest.raises(MissingData, match="is a file"):
        make().fit(*toy("fruit", "vehicle")).save(tmp_path / "thesis.txt")


def test_leftovers_of_a_killed_process_are_swept_away_by_the_next_save(model):
    orphan = model / "blobs" / f"{sha256(b'half').hexdigest()}.jsonl"
    leftovers = [orphan, files.part_of(orphan), files.part_of(model / "current.json")]
    for path in leftovers:
        path.write_text("half")
    ContinualClassifier.load(model).rename_class("fruit", "food").save(model)
    assert not any(path.exists() for path in leftovers)


# ---- several at once ----------------------------------------------------------------------------


def test_a_classifier_that_was_overtaken_is_told_and_nothing_is_lost(model):
    first, second = ContinualClassifier.load(model), ContinualClassifier.load(model)
    first.partial_fit(*toy("place")).save(model)
    with pytest.raises(RepclError, match=r"is at revision 3, this classifier comes from revision 2"):
        second.partial_fit(*toy("person")).save(model)
    assert ContinualClassifier.load(model).classes_.tolist() == ["fruit", "place", "vehicle", "weather"]


def test_who_holds_the_lock_is_said(model):
    with (
        ModelFolder(model).lock("learning tickets.csv"),
        pytest.raises(ModelIsLocked, match=rf"process {os.getpid()} on .* \(learning tickets\.csv since"),
        ModelFolder(model).lock("other"),
    ):
        pass


def test_one_writer_waits_for_the_other(model):
    order, told = [], []

    def second() -> None:
        with ModelFolder(model).lock("second", wait=20, tell=told.append):
            order.append("second")

    with ModelFolder(model).lock("first"):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.3)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert len(told) == 1
    assert "Waiting for process" in told[0]


def test_a_lock_whose_holder_was_killed_is_free(model):
    script = f"""
import os, signal
from repcl.classifier import ModelFolder
with ModelFolder({str(model)!r}).lock("being killed"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert "being killed" in (model / "lock").read_text()
    with ModelFolder(model).lock("next"):
        assert "next" in (model / "lock").read_text()


def test_one_who_waited_while_an_empty_folder_was_taken_away_gets_the_lock_of_a_new_one(tmp_path):
    path, waited = tmp_path / "model", []

    def second() -> None:
        with ModelFolder(path).lock("second", wait=20):
            waited.append((path / "lock").read_text())

    with ModelFolder(path).lock("first"):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.3)
    waiting.join()
    assert len(waited) == 1
    assert "second" in waited[0]


def test_a_lock_that_is_a_link_to_elsewhere_is_not_written_to(model, tmp_path):
    (tmp_path / "precious").write_text("text")
    (model / "lock").unlink()
    (model / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(DamagedModel, match="Expected a plain file at"), ModelFolder(model).lock("testing"):
        pass
    assert (tmp_path / "precious").read_text() == "text"


def test_reading_needs_no_lock_and_writes_nothing(model):
    before = contents(model)
    with ModelFolder(model).lock("someone learns"):
        assert answers(model).shape == (30, 3)
    after = contents(model)
    assert {name for name in after if after[name] != before.get(name)} <= {"lock"}


def test_the_revision_in_use_is_kept_though_it_is_old(make, tmp_path):
    clf = make("ncm").fit(*toy("fruit", "vehicle"))
    for _ in range(3):
        clf.save(tmp_path / "model")
    folder = ModelFolder(tmp_path / "model")
    with folder.lock("test"):
        folder.rollback(1)
        assert folder.keep_last(1) == [2]
    assert (folder.numbers(), folder.current()) == ([1, 3], 1)
    with folder.lock("test"):
        folder.rollback(3)
    assert folder.numbers() == [1, 3]  # until the next update
    ContinualClassifier.load(tmp_path / "model", device="cpu").save(tmp_path / "model")
    assert folder.numbers() == [4]


# ---- an export beside the revisions, and what a service collected --------------------------------


def graph_of(number: int, path: Path):
    """What writes an export that belongs to one revision only."""
    contents = ModelFolder(path).revision(number).contents

    def write(blobs) -> Export:
        return Export(
            origin=origin_of(contents, is_shared=False),
            is_shared=False,
            precision="fp32",
            graph=blobs.put(b"a graph", "onnx"),
            readout="Sentence",
            max_length=128,
            when="2026-11-17T00:00:00+00:00",
            version="0",
        )

    return write


def graphs(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path / "blobs") if name.endswith(".onnx"))


def test_a_folder_without_an_export_says_so(model):
    assert ModelFolder(model).export() is None


def test_an_export_is_read_as_it_was_written(model):
    folder = ModelFolder(model)
    with folder.lock("test"):
        written = folder.write_export(graph_of(2, model))
    assert ModelFolder(model).export() == written
    assert graphs(model) == [written.graph.file]


def test_a_damaged_record_of_an_export_is_named(model):
    (model / "export.json").write_text("{")
    with pytest.raises(DamagedModel, match=r"export\.json"):
        ModelFolder(model).export()


def test_an_export_stays_as_long_as_its_revision_does(model):
    folder = ModelFolder(model)
    with folder.lock("test"):
        folder.write_export(graph_of(1, model))
        folder.sweep()
    assert len(graphs(model)) == 1
    with folder.lock("test"):
        folder.purge([1])
    assert folder.export() is None
    assert graphs(model) == []


def test_graphs_stay_where_nobody_knows_which_is_in_use(model):
    folder = ModelFolder(model)
    with folder.lock("test"):
        folder.write_export(graph_of(2, model))
        (model / "export.json").write_text("{")
        folder.sweep()
    assert len(graphs(model)) == 1


def test_an_export_that_fails_leaves_no_file_behind(model):
    folder = ModelFolder(model)

    def breaks(blobs) -> Export:
        blobs.put(b"a graph", "onnx")
        raise ValueError("the graph cannot be made")

    with folder.lock("test"), pytest.raises(ValueError, match="cannot be made"):
        folder.write_export(breaks)
    assert graphs(model) == []
    assert folder.export() is None


def test_how_many_revisions_are_kept_outlasts_a_rollback(make, tmp_path):
    clf = make("ncm").fit(*toy("fruit", "vehicle"))
    for _ in range(4):
        clf.save(tmp_path / "model")
    folder = ModelFolder(tmp_path / "model")
    with folder.lock("test"):
        assert folder.keep_last(2) == [1, 2]
        folder.rollback(3)
    assert folder.numbers() == [3, 4]
    ContinualClassifier.load(tmp_path / "model", device="cpu").save(tmp_path / "model")
    assert folder.numbers() == [4, 5]


def test_old_revisions_that_cannot_be_deleted_do_not_undo_an_update(make, tmp_path, monkeypatch):
    clf = make("ncm").fit(*toy("fruit", "vehicle"))
    clf.save(tmp_path / "model")
    folder = ModelFolder(tmp_path / "model")
    with folder.lock("test"):
        folder.keep_last(1)
    for problem in (OSError("busy"), RepclError("in use")):

        def refuse(_, numbers, problem=problem):
            raise problem

        monkeypatch.setattr(ModelFolder, "purge", refuse)
        clf.save(tmp_path / "model")
    assert folder.numbers() == [1, 2, 3]
    assert folder.current() == 3


def readme_with(model: Path, collected: bytes) -> str:
    (model / "service").mkdir(exist_ok=True)
    (model / "service" / "collected.json").write_bytes(collected)
    with ModelFolder(model).lock("test"):
        ModelFolder(model).refresh_readme()
    return (model / "README.md").read_text()


ONE_TEXT = Collection(texts=(CollectedText(id="a", when="today", text="hm"),))


@pytest.mark.parametrize(
    ("collected", "count"),
    [(to_json(ONE_TEXT), "1"), (b"{", "an unknown number")],
    ids=["one", "damaged"],
)
def test_the_readme_counts_what_a_service_collected(model, collected, count):
    assert f"\n- *Collected texts*: {count} that a service" in readme_with(model, collected)


def test_the_readme_says_nothing_of_a_service_that_collected_nothing(model):
    before = (model / "README.md").read_text()
    assert readme_with(model, to_json(Collection())) == before
