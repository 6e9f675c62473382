"""Only what was written here is changed or deleted: files of users stay, and links lead nowhere."""

import json
import os
import shutil
import string
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repcl import files
from repcl.classifier.store.folder import FIRST_HELD_OUT, HELD_OUT, ModelFolder
from repcl.classifier.store.records import DamagedModel
from repcl.errors import MissingData, RepclError
from tests.classifier.test_store import commit, texts


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("own") / "model"
    commit(ModelFolder(path), "a", weights=b"one")
    commit(ModelFolder(path), "a", "b", weights=b"two", parent=1)
    return path


@pytest.fixture
def model(pristine, tmp_path) -> Path:
    """A folder with two revisions."""
    return shutil.copytree(pristine, tmp_path / "model")


def everything(folder: Path) -> dict[str, str]:
    """Every name below a folder with what is there."""
    return {
        str(path.relative_to(folder)): (
            f"-> {os.readlink(path)}"
            if path.is_symlink()
            else path.read_text()
            if path.is_file()
            else "folder"
        )
        for path in folder.rglob("*")
    }


def refusal(attempt: Callable[[], object]) -> str:
    """The sentence that an attempt ends with; nothing where it succeeds."""
    try:
        attempt()
    except RepclError as error:
        return str(error)
    return ""


def change_all(path: Path) -> None:
    """Everything that writes: commit, roll back, purge, sweep."""
    folder = ModelFolder(path)
    commit(folder, "c", weights=b"three", parent=2)
    with folder.lock("testing"):
        folder.rollback(1)
        folder.purge([2])
        folder.sweep()


# ---- folders that are no model ------------------------------------------------------------------

OWN_NAMES = ["README.md", "blobs", "revisions", "lock", "current.json", ".part-1-x", "notes.txt"]


@pytest.mark.parametrize("name", OWN_NAMES)
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_folder_of_a_user_is_refused_whatever_the_names_in_it(tmp_path, name, is_folder):
    path = tmp_path / "p"
    path.mkdir()
    if is_folder:
        (path / name).mkdir()
        (path / name / "thesis.tex").write_text("mine")
    else:
        (path / name).write_text("mine")
    before = everything(path)
    with pytest.raises(RepclError) as caught:
        commit(ModelFolder(path), "a")
    assert everything(path) == before
    assert "\n" not in str(caught.value)


FILES = st.dictionaries(
    st.sampled_from(
        [
            "README.md",
            "lock",
            "current.json",
            "blobs/thesis.tex",
            f"blobs/{'0' * 64}.jsonl",
            "blobs/.part-x",
            "revisions/000001.json",
            "revisions/notes.json",
            "notes.txt",
        ]
    ),
    st.sampled_from(["", "mine", "{}", "[]", '{"format": 1}', '{"format": 1, "record": {}}', "# A text\n"]),
    min_size=1,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=FILES)
def test_files_of_a_user_are_as_they_were_after_any_attempt(tmp_path, found):
    path = tmp_path / "p"
    shutil.rmtree(path, ignore_errors=True)
    for name, text in found.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    before = everything(path)
    for attempt in (lambda folder: commit(folder, "a"), lambda folder: folder.open(texts)):
        assert "\n" not in refusal(lambda attempt=attempt: attempt(ModelFolder(path)))
    after = everything(path)
    own = {"lock"} if found == {"lock": ""} else set()  # an empty lock may be one of ours
    assert {name: after.get(name) for name in before if name not in own} == {
        name: text for name, text in before.items() if name not in own
    }


def test_an_empty_folder_of_a_user_becomes_a_model_and_stays_where_none_is_made(tmp_path):
    (tmp_path / "p").mkdir()
    with ModelFolder(tmp_path / "p").lock("testing"):
        pass
    assert everything(tmp_path) == {"p": "folder"}
    assert commit(ModelFolder(tmp_path / "p"), "a").number == 1


# ---- files of users in a model ------------------------------------------------------------------

NAMES = st.one_of(
    st.text(string.ascii_letters + string.digits + "._- ", min_size=1, max_size=30),
    st.builds("{}.{}".format, st.text("0123456789abcdef", min_size=60, max_size=64), st.sampled_from(
        ["jsonl", "json", "safetensors", "pt"])),
    st.builds(".part-{}-{}".format, st.text("0123456789abcdef", max_size=12), st.just("mine")),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(["", "blobs", "revisions"]), name=NAMES, text=st.sampled_from(["", "mine"]))
def test_a_file_of_a_user_in_a_model_outlives_every_change(pristine, tmp_path, place, name, text):
    path = tmp_path / "model"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(pristine, path)
    mine = path / place / name
    if name in (".", "..") or mine.exists():
        return
    mine.write_text(text)
    change_all(path)
    assert mine.read_text() == text


@pytest.mark.parametrize("name", ["README.md", "lock"])
@pytest.mark.parametrize("text", ["mine", ""])
def test_a_readme_or_lock_that_a_user_wrote_is_left_alone(model, name, text):
    if (name, text) == ("lock", ""):
        pytest.skip("an empty lock is what repcl leaves")
    (model / name).write_text(text)
    change_all(model)
    assert (model / name).read_text() == text


def test_a_line_that_a_user_added_to_the_readme_is_not_lost(model):
    words = (model / "README.md").read_text() + "\nAsk Anna before you delete this.\n"
    (model / "README.md").write_text(words)
    change_all(model)
    assert (model / "README.md").read_text() == words


def test_a_readme_of_the_first_version_is_brought_up_to_date(model):
    words = (model / "README.md").read_text().rpartition("\n<!-- ")[0]
    (model / "README.md").write_text(words.replace(HELD_OUT, FIRST_HELD_OUT))
    commit(ModelFolder(model), "c")
    assert "| 3 |" in (model / "README.md").read_text()


def test_a_hard_link_in_place_of_the_lock_does_not_empty_the_file(model, tmp_path):
    (tmp_path / "diary.txt").write_text("mine")
    (model / "lock").unlink()
    os.link(tmp_path / "diary.txt", model / "lock")
    change_all(model)
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_files_of_a_deleted_revision_go_even_where_they_are_damaged(model):
    blob = ModelFolder(model).revision(1).contents.tensors["weights"]
    (model / "blobs" / blob.file).write_bytes(b"damaged")
    with ModelFolder(model).lock("testing"):
        ModelFolder(model).purge([1])
    assert not (model / "blobs" / blob.file).exists()


def test_the_texts_of_a_deleted_revision_whose_record_is_damaged_are_deleted(model):
    secret = ModelFolder(model).revision(1).contents.memory.file
    (model / "revisions" / "000001.json").write_text("damaged")
    with ModelFolder(model).lock("testing"):
        ModelFolder(model).purge([1])
    assert not (model / "blobs" / secret.file).exists()


def test_the_number_of_a_refused_revision_is_not_given_again_after_it_was_deleted(model):
    folder = ModelFolder(model)
    commit(folder, "c", make_current=False)
    with folder.lock("testing"):
        folder.purge([3])
    assert commit(folder, "d").number == 4


# ---- links --------------------------------------------------------------------------------------

LINKED = ["lock", "current.json", "README.md", "blobs", "revisions", "revisions/000001.json"]


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_in_a_model_leads_nowhere(model, tmp_path, name, is_dangling):
    elsewhere = tmp_path / "elsewhere"
    target = elsewhere / "precious"
    elsewhere.mkdir()
    (model / name).rename(target)
    if not is_dangling:
        (target / "thesis.tex" if target.is_dir() else target.with_suffix(".txt")).write_text("mine")
    else:
        target.rename(tmp_path / "away")
    (model / name).symlink_to(target)
    before = everything(elsewhere)
    for attempt in (change_all, lambda path: ModelFolder(path).open(texts)):
        assert "\n" not in refusal(lambda attempt=attempt: attempt(model))
    assert everything(elsewhere) == before
    assert (model / name).is_symlink()


@pytest.mark.parametrize("name", LINKED)
def test_a_link_in_a_new_folder_leads_nowhere(tmp_path, name):
    path, target = tmp_path / "p", tmp_path / "elsewhere"
    target.mkdir()
    (target / "thesis.tex").write_text("mine")
    (path / name).parent.mkdir(parents=True)
    (path / name).symlink_to(target / "thesis.tex" if "." in name or name == "lock" else target)
    before = everything(tmp_path)
    with pytest.raises(RepclError):
        commit(ModelFolder(path), "a")
    assert everything(tmp_path) == before


def test_a_link_in_place_of_a_blob_is_neither_read_nor_replaced(model, tmp_path):
    (tmp_path / "precious").write_bytes(b"three")
    link = model / "blobs" / f"{sha256(b'three').hexdigest()}.safetensors"
    link.symlink_to(tmp_path / "precious")
    with pytest.raises(DamagedModel, match="links are not followed"):
        commit(ModelFolder(model), "c", weights=b"three")
    assert link.is_symlink()
    assert ModelFolder(model).open(texts)[1] == ["text of a", "text of b"]


def test_a_link_with_the_name_of_a_leftover_is_not_removed(model, tmp_path):
    (tmp_path / "precious").write_text("mine")
    link = files.part_of(model / "current.json")
    link.symlink_to(tmp_path / "precious")
    change_all(model)
    assert link.is_symlink()
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_model_folder_that_is_itself_reached_by_a_link_works(model, tmp_path):
    (tmp_path / "link").symlink_to(model)
    change_all(tmp_path / "link")
    assert ModelFolder(model).current() == 1


# ---- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["x" * 300, "x/" * 3000, "a\0b", b"m\xff".decode(errors="surrogateescape"), "a\nb\x1b[31m"],
    ids=["300 characters", "6000 characters", "NUL", "byte 0xff", "control characters"],
)  # fmt: skip
def test_a_strange_path_is_a_model_or_a_sentence(tmp_path, name):
    folder = ModelFolder(f"{tmp_path}/{name}")
    with pytest.raises(MissingData) as caught:
        folder.open(texts)
    str(caught.value).encode()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    said = refusal(lambda: commit(folder, "a"))
    assert said.isprintable()
    assert said or folder.open(texts)[1] == ["text of a"]


# ---- readers beside writers ---------------------------------------------------------------------


def test_a_reader_between_pointer_and_purge_reads_the_revision_now_in_use(model, monkeypatch):
    reader, writer = ModelFolder(model), ModelFolder(model)
    real = reader.current
    told: list[int] = []

    def overtaken() -> int:
        number = real()
        if not told:
            commit(writer, "c", weights=b"three")
            with writer.lock("testing"):
                writer.purge([2])
        told.append(number)
        return number

    monkeypatch.setattr(reader, "current", overtaken)
    assert reader.open(texts)[1] == ["text of c"]
    assert told[0] == 2


def test_a_revision_in_use_that_is_gone_is_said(model):
    (model / "revisions" / "000002.json").unlink()
    with pytest.raises(MissingData, match="has no revision 2; there are: 1"):
        ModelFolder(model).in_use()


# ---- pointers that do not add up ----------------------------------------------------------------


def point(model: Path, **record: int) -> None:
    body = json.dumps(record, sort_keys=True, separators=(",", ":"))
    whole = {"format": 1, "sha256": sha256(body.encode()).hexdigest(), "record": record}
    (model / "current.json").write_text(json.dumps(whole))


@pytest.mark.parametrize(
    ("revision", "last"),
    [(2, 999_999_999), (2, 10_003), (2, 1), (0, 2), (2, 10**30), (-1, 2), (10**7, 10**7)],
)
def test_a_pointer_that_counts_wildly_is_damaged_and_can_be_set_again(model, revision, last):
    point(model, revision=revision, last=last)
    with pytest.raises(DamagedModel, match=r"repcl rollback .* 2"):
        ModelFolder(model).current()
    with ModelFolder(model).lock("testing"):
        ModelFolder(model).rollback(2)
    assert commit(ModelFolder(model), "c").number == 3


def test_numbers_of_deleted_revisions_are_skipped(model):
    point(model, revision=2, last=10_002)
    assert commit(ModelFolder(model), "c").number == 10_003
