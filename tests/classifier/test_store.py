"""The model folder by itself, with small made-up contents: no classifier is taught here."""

import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from repcl import __version__, files
from repcl.classifier.store.files import (
    BlobFolder,
    Blobs,
    BlobsInMemory,
    CannotWrite,
    ModelIsLocked,
    explained,
    get_examples,
    is_named_by_its_bytes,
    is_own_lock,
    put_examples,
    read_whole,
)
from repcl.classifier.store.folder import FIRST_HELD_OUT, HASHES, TEMPLATE, ModelFolder
from repcl.classifier.store.records import (
    LARGEST_GAP,
    Blob,
    Calibration,
    ClassRecord,
    Contents,
    Current,
    DamagedModel,
    EncoderRecord,
    ExamplesRecord,
    Update,
    to_json,
)
from repcl.data import Example, Span
from repcl.errors import MissingData, RepclError

REFUSED = Update(action="learn", when="now", reasons=("it harms",))


def made_up(*classes: str, origin: str = "0", weights: bytes = b"weights") -> Callable[[Blobs], Contents]:
    """What would write a classifier that knows these classes, by one text each."""

    def write(blobs: Blobs) -> Contents:
        json_file = blobs.put(b"{}", "json")
        return Contents(
            parameters={},
            method="fea",
            kind="sentence",
            settings={},
            seed=0,
            tasks_learned=1,
            updates_made=1,
            label_type="text",
            classes=tuple(ClassRecord(name=name, origins=(f"{origin}:{name}",)) for name in classes),
            declared=(),
            calibration=Calibration(),
            encoder=EncoderRecord(name="none", config=json_file, tokenizer=json_file),
            tensors={"weights": blobs.put(weights, "safetensors")},
            memory=put_examples([Example(f"text of {name}", name) for name in classes], blobs),
            held_out=put_examples([], blobs),
        )

    return write


def commit(folder: ModelFolder, *classes: str, updates=(), parent=None, make_current=True, **options):
    with folder.lock("testing"):
        return folder.commit(made_up(*classes, **options), updates, parent=parent, make_current=make_current)


@pytest.fixture
def folder(tmp_path) -> ModelFolder:
    """A folder with revisions 1 (class a) and 2 (classes a and b, in use)."""
    folder = ModelFolder(tmp_path / "model")
    commit(folder, "a", weights=b"one")
    commit(folder, "a", "b", weights=b"two", parent=1)
    return folder


def texts(contents: Contents, blobs: Blobs) -> list[str]:
    return [example.text for example in get_examples(contents.memory, blobs, contents.names)]


# ---- revisions ----------------------------------------------------------------------------------


def test_a_revision_says_what_it_was_made_from_and_by_which_version(folder):
    second = folder.revision(2)
    assert (second.number, second.parent, second.version) == (2, 1, __version__)
    assert [record.name for record in second.contents.classes] == ["a", "b"]


def test_a_new_revision_is_used_unless_that_is_not_wanted(folder):
    assert folder.current() == 2
    assert commit(folder, "c", make_current=False).number == 3
    assert folder.current() == 2
    assert commit(folder, "d").number == 4
    assert folder.current() == 4


def test_the_first_revision_is_used_though_the_guard_refuses_it(tmp_path):
    folder = ModelFolder(tmp_path / "new")
    commit(folder, "a", updates=[REFUSED], make_current=False)
    assert folder.current() == 1
    assert folder.revision(1).is_refused


def test_a_new_revision_is_used_if_nothing_else_is_said(folder):
    with folder.lock("testing"):
        assert folder.commit(made_up("c"), [], parent=2).number == 3
    assert folder.current() == 3


def test_what_can_be_computed_again_is_kept_for_the_revision_in_use_only(folder):
    def write(blobs: Blobs) -> Contents:
        number = folder.current() + 1
        derived = {"fit": blobs.put(f"derived {number}".encode(), "safetensors")}
        return made_up("a")(blobs).model_copy(update={"derived": derived})

    def is_kept(number: int) -> bool:
        return (folder.path / "blobs" / folder.revision(number).contents.derived["fit"].file).exists()

    for parent in (2, 3):
        with folder.lock("testing"):
            folder.commit(write, [], parent=parent)
    assert (is_kept(3), is_kept(4)) == (False, True)


def test_a_change_that_everybody_sees_is_no_failure_though_sweeping_fails(folder, monkeypatch):
    swept: list[int] = []

    def fail_later(self: ModelFolder) -> None:
        swept.append(1)
        if len(swept) == 2:
            raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(ModelFolder, "sweep", fail_later)
    assert commit(folder, "c").number == 3
    assert (len(swept), folder.current()) == (2, 3)


def test_updates_are_kept_in_their_order(tmp_path):
    folder = ModelFolder(tmp_path / "new")
    made = [Update(action="rename", when="then"), REFUSED]
    assert commit(folder, "a", updates=made).updates == tuple(made)
    assert folder.revision(1).updates == tuple(made)


def test_a_revision_is_opened_with_what_is_read_from_its_files(folder):
    revision, found = folder.open(texts)
    assert (revision.number, found) == (2, ["text of a", "text of b"])
    revision, found = folder.open(texts, 1)
    assert (revision.number, found) == (1, ["text of a"])


def test_a_revision_purged_while_it_is_read_is_read_again_from_the_one_in_use(folder):
    calls = []

    def overtaken(contents: Contents, blobs: Blobs) -> list[str]:
        calls.append(len(contents.classes))
        if len(calls) == 1:
            commit(folder, "c")
            with folder.lock("testing"):
                folder.purge([2])
        return texts(contents, blobs)

    revision, found = folder.open(overtaken)
    assert (revision.number, found, calls) == (3, ["text of c"], [2, 1])


def test_a_revision_purged_before_it_is_read_is_replaced_by_the_one_in_use(folder, monkeypatch):
    with folder.lock("testing"):
        folder.purge([1])
    said = iter([1, 2, 2])
    monkeypatch.setattr(ModelFolder, "current", lambda _: next(said))
    assert folder.open(texts)[0].number == 2


def test_a_folder_whose_revisions_vanish_again_and_again_is_damaged(folder, monkeypatch):
    with folder.lock("testing"):
        folder.purge([1])
    said = iter([1, 3, 3, 1, 1, 3])
    monkeypatch.setattr(ModelFolder, "current", lambda _: next(said))
    with pytest.raises(DamagedModel, match=r"has no revision 1; there are: 2\. The last good revision is 2"):
        folder.open(texts)


def test_a_revision_that_is_not_there_is_not_replaced_by_another(folder):
    with pytest.raises(MissingData, match="has no revision 7"):
        folder.open(texts, 7)


def test_the_way_out_of_damage_is_never_the_damaged_revision_itself(folder):
    def odd(contents: Contents, blobs: Blobs) -> None:
        raise DamagedModel("Its files are whole and make no sense.")

    sentence = (
        f"{folder.path}: Its files are whole and make no sense. The last good revision is 1: "
        f"`repcl rollback {folder.path} 1` goes back to it."
    )
    with pytest.raises(DamagedModel, match=f"^{re.escape(sentence)}$"):
        folder.open(odd)


def test_a_folder_behind_a_link_is_a_folder(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder.path)
    assert ModelFolder(tmp_path / "link").current() == 2


@pytest.mark.parametrize(
    ("name", "reason"), [("a\0b", ".*embedded null.*"), ("a" * 300, "File name too long")]
)
def test_a_path_that_cannot_be_is_said(tmp_path, name, reason):
    where = re.escape(files.shown(tmp_path / name))
    with pytest.raises(MissingData, match=rf"^{where} cannot be opened \({reason}\): check the path\.$"):
        ModelFolder(tmp_path / name).current()


def test_a_path_without_a_model_is_said(tmp_path):
    sentence = f"There is no model in {tmp_path}: check the path, or make one with `repcl learn`."
    with pytest.raises(MissingData, match=f"^{re.escape(sentence)}$"):
        ModelFolder(tmp_path).current()


def test_a_file_where_a_model_was_expected_is_said(tmp_path):
    (tmp_path / "model").touch()
    sentence = f"{tmp_path / 'model'} is a file: give the path of a model folder, or of a new one."
    with pytest.raises(MissingData, match=f"^{re.escape(sentence)}$"):
        commit(ModelFolder(tmp_path / "model"), "a")


@pytest.mark.parametrize("name", ["revisions", "blobs"])
def test_a_link_in_place_of_a_folder_is_not_followed(folder, tmp_path, name):
    (folder.path / name).rename(tmp_path / "elsewhere")
    (folder.path / name).symlink_to(tmp_path / "elsewhere")
    sentence = (
        f"Expected a folder at {folder.path / name}, found something else (links are not followed): "
        "put the folder itself there."
    )
    with pytest.raises(DamagedModel, match=f"^{re.escape(sentence)}$"):
        commit(folder, "c")


def test_a_link_in_place_of_the_pointer_is_not_followed(folder, tmp_path):
    (folder.path / "current.json").rename(tmp_path / "elsewhere")
    (folder.path / "current.json").symlink_to(tmp_path / "elsewhere")
    sentence = (
        f"Expected a plain file at {folder.path / 'current.json'}, found something else (links are not "
        "followed): remove it, or put the file itself there."
    )
    with pytest.raises(DamagedModel, match=f"^{re.escape(sentence)}$"):
        commit(folder, "c")


def test_a_folder_that_may_not_be_listed_is_said(folder, monkeypatch):
    def forbidden(path: Path) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "listdir", forbidden)
    sentence = f"{folder.path / 'revisions'} cannot be read (Permission denied): check its permissions."
    with pytest.raises(MissingData, match=f"^{re.escape(sentence)}$"):
        folder.numbers()


@pytest.mark.parametrize("name", ["current.json", "revisions/000002.json"])
@pytest.mark.parametrize("harm", [lambda path: path.write_text("{"), lambda path: path.write_text("{}")])
def test_a_damaged_record_is_named_with_its_path(folder, name, harm):
    harm(folder.path / name)
    with pytest.raises(DamagedModel, match=re.escape(str(folder.path / name))):
        folder.in_use()


def test_a_record_that_is_gone_is_named_with_its_path(folder, monkeypatch):
    def gone(path: Path, **_: object) -> bytes:
        raise DamagedModel(f"{_['where']} is gone.")

    monkeypatch.setattr("repcl.classifier.store.folder.read_whole", gone)
    with pytest.raises(DamagedModel, match=f"^{re.escape(str(folder.path / 'current.json'))} is gone"):
        folder.current()


def test_a_model_that_is_damaged_all_over_says_so_and_not_that_the_folder_is_someone_elses(folder):
    for path in [folder.path / "current.json", *(folder.path / "revisions").iterdir()]:
        path.write_text("{")
    with pytest.raises(DamagedModel, match=r" No other revision is whole: restore the folder from a copy\.$"):
        commit(folder, "c")


def test_a_pointer_that_counts_much_farther_than_the_revisions_is_damaged(folder):
    path = folder.path / "current.json"
    path.write_bytes(to_json(Current(revision=2, last=2 + LARGEST_GAP)))
    assert folder.current() == 2
    path.write_bytes(to_json(Current(revision=2, last=3 + LARGEST_GAP)))
    sentence = (
        f"{path} is not what repcl writes: it counts to {3 + LARGEST_GAP}, revisions to 2. The last good "
        f"revision is 2: `repcl rollback {folder.path} 2` goes back to it."
    )
    with pytest.raises(DamagedModel, match=f"^{re.escape(sentence)}$"):
        folder.current()


def test_the_first_revision_is_a_way_out_of_a_damaged_pointer(tmp_path):
    folder = ModelFolder(tmp_path / "model")
    commit(folder, "a")
    (folder.path / "current.json").write_text("{")
    with pytest.raises(DamagedModel, match="The last good revision is 1"):
        folder.current()


def test_a_file_of_others_that_is_called_as_the_pointer_makes_no_model(tmp_path):
    (tmp_path / "current.json").write_text("{")
    with pytest.raises(MissingData, match=r"with 'current\.json' in it: choose another path"):
        commit(ModelFolder(tmp_path), "a")


def test_a_damaged_revision_asked_for_by_number_is_not_replaced_by_another(folder):
    blob = folder.revision(1).contents.memory.file
    (folder.path / "blobs" / blob.file).unlink()
    with pytest.raises(DamagedModel, match=r"it was removed\. The last good revision is 2"):
        folder.open(texts, 1)


def test_the_way_out_of_damage_prefers_what_the_guard_accepted(folder):
    commit(folder, "a", "b", "c", updates=[REFUSED], make_current=False)
    (folder.path / "revisions" / "000002.json").write_text("{}")
    with pytest.raises(DamagedModel, match=rf"`repcl rollback {folder.path} 1` goes back to it"):
        folder.open(texts)


def test_where_only_a_refused_revision_is_whole_it_is_the_way_out(folder):
    commit(folder, "a", "b", "c", updates=[REFUSED], make_current=False)
    for number in (1, 2):
        (folder.path / "revisions" / f"00000{number}.json").write_text("{}")
    with pytest.raises(DamagedModel, match="The last good revision is 3"):
        folder.open(texts)


def test_without_a_pointer_the_newest_revision_that_was_accepted_is_in_use(folder):
    commit(folder, "c", updates=[REFUSED], make_current=False)
    (folder.path / "current.json").unlink()
    assert folder.exists
    assert folder.current() == 2
    assert commit(folder, "d").number == 4


def test_numbers_are_counted_on_after_the_newest_was_deleted(folder):
    with folder.lock("testing"):
        folder.rollback(1)
        folder.purge([2])
    assert commit(folder, "c").number == 3


def test_a_revision_that_is_not_there_is_said_with_the_newest_that_are(folder, monkeypatch):
    sentence = f"{folder.path} has no revision 7; there are: 1, 2."
    with pytest.raises(MissingData, match=f"^{re.escape(sentence)}$"):
        folder.revision(7)
    monkeypatch.setattr("repcl.classifier.store.folder.SHOWN", 1)
    with pytest.raises(MissingData, match=r"there are: 2\.$"):
        folder.revision(7)


def test_a_folder_that_lost_all_revisions_says_that_there_are_none(folder):
    shutil.rmtree(folder.path / "revisions")
    with pytest.raises(MissingData, match=r"there are: none\.$"):
        folder.revision(7)


def test_numbers_may_be_used_up(folder, monkeypatch):
    monkeypatch.setattr("repcl.classifier.store.folder.LARGEST_NUMBER", 3)
    assert commit(folder, "c").number == 3
    sentence = f"Expected revisions up to 3, found that {folder.path} has used them up: save to a new folder."
    with pytest.raises(RepclError, match=f"^{re.escape(sentence)}$"):
        commit(folder, "d")


def test_the_readme_has_a_row_for_each_revision_and_says_what_hashes_tell(folder):
    text = (folder.path / "README.md").read_text()
    made = [revision.when for revision in folder.history()]
    assert f"\n| 1 | {made[0]} | 1 | 1 | 0 |\n| 2 | {made[1]} | 2 | 2 | 0 |\n\n" in text
    assert "- Of every text that was learned there is a hash" in text


def test_the_readme_says_which_methods_learn_from_held_out_texts(folder):
    text = " ".join((folder.path / "README.md").read_text().split())
    assert "as long as they keep embeddings) learn from these texts too; other methods never" in text


def test_the_readme_of_the_first_folders_is_known_to_the_letter():
    text = TEMPLATE.format(rows="", held_out=FIRST_HELD_OUT, hashes="", collected="")
    assert (
        sha256(text.encode()).hexdigest()
        == "78d015d986a253d388c9d55349418dd74c435f7262ed4db4c3b3521bbfe6752e"
    )


@pytest.mark.parametrize("hashes", [HASHES, ""])
def test_a_readme_of_the_first_folders_is_known_and_written_anew(folder, hashes):
    words = TEMPLATE.format(rows="| 1 | then |", held_out=FIRST_HELD_OUT, hashes=hashes, collected="")
    (folder.path / "README.md").write_text(words)
    commit(folder, "c")
    assert "| 3 |" in (folder.path / "README.md").read_text()


@pytest.mark.parametrize("change", [lambda text: f"Mine. {text}", lambda text: f"{text} Mine."])
def test_a_readme_in_which_a_user_wrote_is_left_alone(folder, change):
    first = TEMPLATE.format(rows="", held_out=FIRST_HELD_OUT, hashes="", collected="")
    for text in ((folder.path / "README.md").read_text(), first):
        (folder.path / "README.md").write_text(change(text))
        commit(folder, "c")
        assert (folder.path / "README.md").read_text() == change(text)


def test_revisions_are_listed_by_number_and_other_files_are_not(folder):
    for name in ("000010.json", "9.json", "x.json", "0000000011.json"):
        (folder.path / "revisions" / name).write_text("{}")
    assert folder.numbers() == [1, 2, 10]
    assert [revision.number for revision in folder.history()] == [1, 2]
    assert folder.unreadable() == [10]


def test_a_class_is_found_under_its_name_its_origin_and_in_what_no_one_can_read(folder):
    commit(folder, "c", origin="x")
    assert folder.holding("b", ()) == [2]
    assert folder.holding("renamed", ("0:a",)) == [1, 2]
    assert folder.holding("c", ("0:b",)) == [2, 3]
    (folder.path / "revisions" / "000001.json").write_text("{}")
    assert folder.holding("c", ()) == [1, 3]


def test_a_revision_with_the_number_of_another_is_damaged(folder):
    (folder.path / "revisions" / "000001.json").rename(folder.path / "revisions" / "000007.json")
    with pytest.raises(DamagedModel, match=r"000007\.json holds revision 1, not 7"):
        folder.revision(7)


# ---- what is deleted ----------------------------------------------------------------------------


def test_purging_keeps_files_that_other_revisions_share(folder):
    shared = {blob.file for blob in folder.revision(1).contents.blobs()} & {
        blob.file for blob in folder.revision(2).contents.blobs()
    }
    assert shared
    with folder.lock("testing"):
        folder.purge([1])
    kept = {path.name for path in (folder.path / "blobs").iterdir()}
    assert kept == {blob.file for blob in folder.revision(2).contents.blobs()}
    assert "| 1 |" not in (folder.path / "README.md").read_text()


def test_purging_nothing_changes_nothing(folder):
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    folder.purge([])
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before


def test_purging_deletes_damaged_files_of_every_revision_it_deletes(folder):
    commit(folder, "c", weights=b"three", parent=2)
    weights = [
        folder.path / "blobs" / folder.revision(number).contents.tensors["weights"].file for number in (1, 2)
    ]
    for path in weights:
        path.write_bytes(b"no longer what its name says")
    with folder.lock("testing"):
        folder.purge([1, 2])
    assert [path.exists() for path in weights] == [False, False]


def test_nothing_is_deleted_while_a_record_is_damaged_for_it_may_name_any_file(folder):
    before = set((folder.path / "blobs").iterdir())
    (folder.path / "revisions" / "000001.json").write_text("{}")
    folder.sweep()
    assert set((folder.path / "blobs").iterdir()) == before


def test_files_that_were_never_finished_are_swept_in_all_three_folders(folder):
    leftovers = [
        files.part_of(folder.path / name)
        for name in ("current.json", "README.md", "revisions/000003.json", f"blobs/{'0' * 64}.jsonl")
    ]
    for path in leftovers:
        path.write_text("half")
    folder.sweep()
    assert not any(path.exists() for path in leftovers)


def test_sweeping_hashes_no_more_bytes_than_it_has_patience_for(folder, monkeypatch):
    strays = [folder.path / "blobs" / f"{sha256(data).hexdigest()}.json" for data in (b"123456", b"654321")]
    for path, data in zip(strays, (b"123456", b"654321"), strict=True):
        path.write_bytes(data)
    monkeypatch.setattr("repcl.classifier.store.folder.LARGEST_FILE", 10)
    folder.sweep()
    assert sum(path.exists() for path in strays) == 1
    folder.sweep()
    assert sum(path.exists() for path in strays) == 0


def test_a_commit_that_fails_takes_back_its_files_and_its_record(folder, monkeypatch):
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}

    def broken(blobs: Blobs) -> Contents:
        made_up("c", weights=b"three")(blobs)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), folder.lock("testing"):
        folder.commit(broken, [], parent=2)
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before


def test_a_folder_in_which_no_model_was_made_is_removed(tmp_path):
    with ModelFolder(tmp_path / "a" / "model").lock("testing"):
        assert (tmp_path / "a" / "model").is_dir()
    assert not (tmp_path / "a" / "model").exists()


def test_a_readme_that_was_left_where_no_model_was_made_goes_with_the_rest(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(folder.path / "README.md", other)
    with ModelFolder(other).lock("testing"):
        assert (other / "README.md").exists()
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("name", ["blobs", "blobs/mine"])
def test_what_a_user_puts_where_a_model_was_to_be_stays_and_is_no_error(tmp_path, name):
    mine = tmp_path / "model" / name
    with ModelFolder(tmp_path / "model").lock("testing"):
        mine.parent.mkdir(exist_ok=True)
        mine.write_text("mine")
    assert mine.read_text() == "mine"


# ---- refused updates ----------------------------------------------------------------------------


@pytest.fixture
def waiting(folder) -> ModelFolder:
    """Revisions 3, 4 and 5 are refused updates of revision 2, which is in use; 6 and 7 are not."""
    for name in ("c", "d", "e"):
        commit(folder, name, updates=[REFUSED], parent=2, make_current=False)
    commit(folder, "f", updates=[REFUSED], parent=1, make_current=False)
    commit(folder, "g", parent=2, make_current=False)
    return folder


def test_the_newest_refused_update_of_the_revision_in_use_waits_for_a_decision(waiting):
    assert waiting.refused().number == 5


def test_a_refused_update_that_is_accepted_is_in_use(waiting):
    with waiting.lock("testing"):
        assert waiting.accept().number == 5
    assert (waiting.in_use().number, waiting.numbers()) == (5, [1, 2, 3, 4, 5, 6, 7])


def test_a_refused_update_that_is_discarded_is_gone(waiting):
    with waiting.lock("testing"):
        assert waiting.discard().number == 5
    assert (waiting.in_use().number, waiting.numbers()) == (2, [1, 2, 3, 4, 6, 7])


def test_where_no_refused_update_waits_it_is_said_what_to_do(folder):
    sentence = (
        f"No refused update of revision 2 waits in {folder.path}: `repcl history` shows its revisions, "
        "`repcl rollback` uses another one."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(sentence)}$"):
        folder.refused()


# ---- files --------------------------------------------------------------------------------------


def test_a_file_may_be_as_large_as_its_record_says_and_no_larger(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    assert read_whole(tmp_path / "x", largest=5, where="x") == b"12345"
    with pytest.raises(DamagedModel, match="Expected at most 4 bytes in x, found 5"):
        read_whole(tmp_path / "x", largest=4, where="x")


def test_a_file_that_may_not_be_read_is_said(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"")

    def forbidden(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.os, "open", forbidden)
    with pytest.raises(DamagedModel, match=r"x cannot be read \(Permission denied\): check its permissions"):
        read_whole(tmp_path / "x", largest=4, where="x")


@pytest.mark.parametrize("make", [BlobsInMemory, None])
def test_bytes_come_back_and_are_named_by_their_hash(tmp_path, make):
    blobs = make() if make else BlobFolder(tmp_path / "blobs")
    blob = blobs.put(b"bytes", "json")
    assert blob == Blob(file=f"{sha256(b'bytes').hexdigest()}.json", bytes=5)
    assert blobs.get(blob) == b"bytes"


def test_bytes_that_are_there_are_not_written_again_and_not_taken_back(tmp_path):
    first, second = BlobFolder(tmp_path), BlobFolder(tmp_path)
    blob = first.put(b"bytes", "json")
    first.publish()
    written = (tmp_path / blob.file).stat().st_ino
    second.put(b"bytes", "json")
    second.publish()
    assert (tmp_path / blob.file).stat().st_ino == written
    second.take_back()
    assert first.get(blob) == b"bytes"
    first.take_back()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [1, 3])
def test_a_file_with_another_number_of_examples_than_its_record_says_is_refused(count):
    blobs = BlobsInMemory()
    record = put_examples([Example("x", "a"), Example("y", "a")], blobs)
    with pytest.raises(DamagedModel, match=f"Expected {count} examples in blobs/.* found 2"):
        get_examples(ExamplesRecord(file=record.file, count=count), blobs, ["a"])


def test_a_line_may_be_as_long_as_is_read_at_once_and_no_longer(tmp_path, monkeypatch):
    monkeypatch.setattr("repcl.classifier.store.files.LARGEST_LINE", 5)
    blobs = BlobFolder(tmp_path / "blobs")
    assert list(blobs.lines(blobs.put(b"1234\n123\n", "jsonl"))) == [b"1234\n", b"123\n"]
    longer = blobs.put(b"12345\n", "jsonl")
    sentence = f"blobs/{longer.file} has a line of more than 5 bytes."
    with pytest.raises(DamagedModel, match=f"^{re.escape(sentence)}$"):
        list(blobs.lines(longer))


def test_a_folder_is_settled_when_files_in_it_got_their_names(tmp_path, monkeypatch):
    settled: list[Path] = []
    monkeypatch.setattr("repcl.classifier.store.files.settle", settled.append)
    blobs = BlobFolder(tmp_path)
    blobs.publish()
    assert settled == []
    blobs.put(b"bytes", "json")
    blobs.publish()
    assert (len(settled), settled[-1]) == (2, tmp_path)


def test_texts_are_kept_word_for_word():
    blobs = BlobsInMemory()
    record = put_examples([Example("na\u00efve \u2028 caf\u00e9", "a")], blobs)
    assert "na\u00efve \u2028 caf\u00e9".encode() in blobs.get(record.file)


def test_a_marked_span_without_characters_is_refused():
    blobs = BlobsInMemory()
    record = put_examples([Example("won", "a", trigger=Span(1, 1))], blobs)
    sentence = (
        f"blobs/{record.file.file} has a row that is not an example (characters 1 to 1 are not in the text)."
    )
    with pytest.raises(DamagedModel, match=f"^{re.escape(sentence)}$"):
        get_examples(record, blobs, ["a"])


@pytest.mark.parametrize(("largest", "is_read"), [(5, True), (4, False)])
def test_a_file_named_by_its_bytes_is_known_unless_it_is_too_large_to_be_read(tmp_path, largest, is_read):
    path = tmp_path / f"{sha256(b'12345').hexdigest()}.json"
    path.write_bytes(b"12345")
    assert is_named_by_its_bytes(path, largest=largest) is is_read


def test_what_only_has_the_name_of_a_file_is_not_known(tmp_path):
    path = tmp_path / f"{sha256(b'12345').hexdigest()}.json"
    assert not is_named_by_its_bytes(path, largest=5)
    (tmp_path / "elsewhere").write_bytes(b"12345")
    path.symlink_to(tmp_path / "elsewhere")
    assert not is_named_by_its_bytes(path, largest=5)


def test_examples_without_an_end_of_line_or_of_another_class_are_refused():
    blobs = BlobsInMemory()
    cut = ExamplesRecord(file=blobs.put(b'{"text": "x", "label": "a"}', "jsonl"), count=0)
    with pytest.raises(DamagedModel, match="Expected 0 examples"):
        get_examples(cut, blobs, ["a"])
    with pytest.raises(DamagedModel, match=r"Expected 1 examples in .*, found one without an end of line\."):
        get_examples(cut.model_copy(update={"count": 1}), blobs, ["a"])
    with pytest.raises(DamagedModel, match="a class that the revision does not have"):
        get_examples(put_examples([Example("x", "a")], blobs), blobs, ["b"])


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "There is no space left to write F; revision 3 stays in use. Free some space and try"),
        (errno.EDQUOT, "There is no space left"),
        (errno.EFBIG, "There is no space left"),
        (errno.EROFS, r"F may not be written \(.*\); revision 3 stays in use. Change its permissions"),
        (errno.EACCES, "may not be written"),
        (errno.EPERM, "may not be written"),
        (errno.EIO, r"F could not be written \(.*\); revision 3 stays in use\."),
    ],
)
def test_what_the_operating_system_refuses_is_said_in_one_sentence(number, sentence):
    with pytest.raises(CannotWrite, match=sentence), explained(Path("F"), 3):
        raise OSError(number, os.strerror(number))


def test_a_refusal_in_a_new_folder_says_that_nothing_was_changed():
    with pytest.raises(CannotWrite, match="nothing was changed"), explained(Path("F"), None):
        raise OSError(errno.EIO, "broken")


def test_a_pointer_that_cannot_be_written_leaves_the_old_revision_in_use(folder, monkeypatch):
    real = os.replace

    def full(source, target):
        if Path(target).name == "current.json":
            raise OSError(errno.ENOSPC, "full")
        return real(source, target)

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(CannotWrite, match="revision 2 stays in use"):
        commit(folder, "c")


def test_a_commit_that_fails_and_cannot_be_taken_back_says_why_it_failed(folder, monkeypatch):
    def broken(path: Path) -> None:
        if path.name == "revisions":
            raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("repcl.classifier.store.folder.settle", broken)
    sentence = f"{folder.path} could not be written (broken); revision 2 stays in use."
    with pytest.raises(CannotWrite, match=f"^{re.escape(sentence)}$"):
        commit(folder, "c")
    assert folder.numbers() == [1, 2]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("readme", ["mine", None])
def test_the_pointer_takes_the_room_of_our_readme_on_a_full_disk_and_nothing_elses(
    folder, monkeypatch, number, readme
):
    real, path = files.write_whole, folder.path / "README.md"

    def full(target: Path, data: bytes | str, **options: bool) -> None:
        if target.name == "current.json":
            raise OSError(number, os.strerror(number))
        real(target, data, **options)

    if readme:
        path.write_text(readme)
    before = path.read_bytes()
    monkeypatch.setattr("repcl.classifier.store.folder.write_whole", full)
    if number == errno.ENOSPC and not readme:
        folder.rollback(1)
        assert folder.current() == 1
    else:
        with pytest.raises(CannotWrite):
            folder.rollback(1)
        assert (folder.current(), path.read_bytes()) == (2, before)


def test_a_pointer_that_everybody_sees_is_no_failure_though_the_folder_cannot_be_settled(folder, monkeypatch):
    def broken(path: Path) -> None:
        if path == folder.path:
            raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("repcl.classifier.store.folder.settle", broken)
    assert folder.rollback(1).number == 1
    assert folder.current() == 1


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (lambda folder: folder.rollback(1), "nothing was changed"),
        (lambda folder: folder.purge([1]), "revision 2 stays in use"),
    ],
    ids=["rollback", "purge"],
)
def test_a_change_that_cannot_be_written_names_the_folder(folder, monkeypatch, change, kept):
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", broken)
    sentence = f"{folder.path} could not be written (broken); {kept}."
    with folder.lock("testing"), pytest.raises(CannotWrite, match=f"^{re.escape(sentence)}$"):
        change(folder)
    assert folder.current() == 2


# ---- lock ---------------------------------------------------------------------------------------


def test_a_file_of_a_user_that_is_called_lock_is_locked_but_never_written(folder):
    (folder.path / "lock").write_text("mine")
    with folder.lock("testing"):
        assert (folder.path / "lock").read_text() == "mine"
    assert (folder.path / "lock").read_text() == "mine"


def test_the_lock_names_its_holder_while_it_is_held(folder):
    with folder.lock("teaching"):
        holder = json.loads((folder.path / "lock").read_text())
        assert (holder["pid"], holder["doing"]) == (os.getpid(), "teaching")
        assert set(holder) == {"pid", "host", "since", "doing"}
    assert (folder.path / "lock").read_text() == ""


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"pid": 3}'])
def test_a_holder_that_does_not_say_who_it_is_is_another_process(folder, text):
    with folder.lock("first"):
        (folder.path / "lock").write_text(text)
        with pytest.raises(ModelIsLocked, match="is being changed by another process"), folder.lock("second"):
            pass


def test_waiting_ends_after_the_time_given_and_tells_once(folder):
    told: list[str] = []
    with folder.lock("first"):
        start = time.monotonic()
        with (
            pytest.raises(ModelIsLocked, match=rf"^{folder.path} is being .* with --wait SECONDS\.$"),
            folder.lock("x", wait=0.4, tell=told.append),
        ):
            pass
        assert 0.4 <= time.monotonic() - start < 5
    assert len(told) == 1
    assert told[0].startswith("Waiting for process")


def test_the_lock_is_free_after_an_error(folder):
    with pytest.raises(RepclError), folder.lock("fails"):
        raise RepclError("no")
    with folder.lock("next"):
        pass


def test_a_folder_of_others_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    sentence = (
        f"Expected a model folder or an empty one, found {tmp_path} with 'thesis.txt' in it: "
        "choose another path."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(sentence)}$"):
        commit(ModelFolder(tmp_path), "a")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", ["blobs", "revisions"])
def test_a_folder_of_others_that_looks_like_one_of_a_killed_process_is_left_alone(tmp_path, name):
    (tmp_path / "lock").touch()
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("precious")
    with pytest.raises(MissingData, match=f"with '{name}' in it: choose another path"):
        commit(ModelFolder(tmp_path), "a")
    assert (tmp_path / name / "thesis.txt").read_text() == "precious"


def test_a_leftover_that_vanishes_while_it_is_looked_at_is_nobody_elses(tmp_path, monkeypatch):
    (tmp_path / "lock").touch()
    (tmp_path / "blobs").mkdir()
    listdir, gone = os.listdir, ["renamed by a process that lives"]
    monkeypatch.setattr(
        os, "listdir", lambda path: [*listdir(path), *(gone if Path(path).name == "blobs" else [])]
    )
    assert commit(ModelFolder(tmp_path), "a").number == 1


@pytest.mark.parametrize(
    ("content", "is_own"), [(b"", True), (b'{"pid": 1, "host": "here"}', True), (b'{"other": 1}', False)]
)
def test_a_lock_is_known_by_what_is_in_it(tmp_path, content, is_own):
    (tmp_path / "lock").write_bytes(content)
    assert is_own_lock(tmp_path / "lock") is is_own


def test_what_is_no_file_is_no_lock_of_ours(tmp_path):
    assert not is_own_lock(tmp_path)
    assert not is_own_lock(tmp_path / "lock")


def test_other_files_beside_a_model_do_no_harm(folder):
    (folder.path / "notes.txt").write_text("mine")
    assert commit(folder, "c").number == 3
    assert (folder.path / "notes.txt").exists()
