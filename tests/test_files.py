"""Files that are there whole or not at all."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from repcl import files
from repcl.files import (
    PART,
    NotPlainFile,
    about,
    is_plain,
    open_plain,
    parse_json,
    part_of,
    remove_quietly,
    reuse_space,
    settle,
    shown,
    write_part,
    write_whole,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_is_written_as_utf_8(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", "naïve\n")
    assert (tmp_path / "a.txt").read_bytes() == b"na\xc3\xafve\n"


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"\x00\xff")
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "old, and longer")
    write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"


def test_nothing_else_is_left_beside_the_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "new", durable=True)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("failing", ["replace", "fsync"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch, failing: str
) -> None:
    write_whole(tmp_path / "a", "old")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="no space left"):
        write_whole(tmp_path / "a", "new", durable=True)
    assert ((tmp_path / "a").read_text(), names(tmp_path)) == ("old", ["a"])


def test_durable_bytes_reach_the_disk_before_their_name(tmp_path: Path, monkeypatch) -> None:
    told: list[str] = []
    replace = os.replace
    monkeypatch.setattr(files, "settle", lambda path: told.append(f"settle {path.read_text()}"))
    monkeypatch.setattr(os, "replace", lambda *paths: (told.append("replace"), replace(*paths)))
    write_whole(tmp_path / "a", "new", durable=True)
    assert told == ["settle new", "replace"]


def test_a_file_is_durable_if_nothing_else_is_said(tmp_path: Path, monkeypatch) -> None:
    told: list[Path] = []
    monkeypatch.setattr(files, "settle", told.append)
    write_whole(tmp_path / "a", "new")
    assert len(told) == 1


def test_a_file_that_need_not_be_durable_is_not_settled(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "settle", lambda path: pytest.fail("settled"))
    write_whole(tmp_path / "a", "new", durable=False)


def test_two_writers_of_one_file_use_two_names() -> None:
    assert part_of(Path("out/a.json")) != part_of(Path("out/a.json"))


def test_the_name_of_a_part_says_so_and_stands_beside_its_file() -> None:
    part = part_of(Path("out/a.json"))
    assert part.parent == Path("out")
    assert part.name.startswith(PART)
    assert part.name.endswith("-a.json")


def test_a_folder_is_settled_too(tmp_path: Path, monkeypatch) -> None:
    settled: list[bool] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: settled.append(os.path.samestat(os.fstat(number), os.stat(tmp_path)))
    )
    settle(tmp_path)
    assert settled == [True]


def open_numbers() -> int:
    """How many files this process has open."""
    return len(os.listdir("/dev/fd"))


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, "no space left")


# ---- parts -----------------------------------------------------------------------------------------


def test_a_part_may_be_read_by_whom_the_mask_of_the_process_allows(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        part = write_part(tmp_path / "a", [b"new"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(part.stat().st_mode) == 0o666


def test_bytes_that_the_system_takes_a_few_at_a_time_are_all_written(tmp_path: Path, monkeypatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda number, data: write(number, data[:3]))
    assert write_part(tmp_path / "a", [b"0123456789"]).read_bytes() == b"0123456789"


def test_a_part_that_cannot_be_written_is_removed_and_closed(tmp_path: Path, monkeypatch) -> None:
    before = open_numbers()
    monkeypatch.setattr(os, "write", no_space)
    with pytest.raises(OSError, match="no space left"):
        write_part(tmp_path / "a", [b"new"])
    assert names(tmp_path) == []
    assert open_numbers() == before


def test_a_part_replaces_nothing_that_has_its_name(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "taken").write_text("old")
    monkeypatch.setattr(files, "part_of", lambda path: tmp_path / "taken")
    with pytest.raises(FileExistsError):
        write_part(tmp_path / "a", [b"new"])
    assert (tmp_path / "taken").read_text() == "old"


def test_a_part_is_not_written_through_a_link(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(files, "part_of", lambda path: tmp_path / "link")
    with pytest.raises(FileExistsError):
        write_part(tmp_path / "a", [b"new"])
    assert not (tmp_path / "elsewhere").exists()


def test_writing_leaves_no_file_open(tmp_path: Path) -> None:
    before = open_numbers()
    write_whole(tmp_path / "a", "new", durable=True)
    assert open_numbers() == before


# ---- the space of another file ---------------------------------------------------------------------


def test_the_space_of_a_spare_file_becomes_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "spare").write_bytes(b"0" * 100)
    space, before = (tmp_path / "spare").stat().st_ino, open_numbers()
    reuse_space(tmp_path / "spare", tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a").stat().st_ino == space
    assert names(tmp_path) == ["a"]
    assert open_numbers() == before


def test_the_space_reaches_the_disk_before_its_new_name(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "spare").write_bytes(b"0" * 100)
    told: list[tuple[str, bool]] = []
    monkeypatch.setattr(
        files, "settle", lambda path: told.append((path.read_text(), (tmp_path / "a").exists()))
    )
    reuse_space(tmp_path / "spare", tmp_path / "a", b"new")
    assert told == [("new", False)]


def test_space_that_cannot_be_written_to_is_given_back(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "spare").write_bytes(b"0" * 100)
    (tmp_path / "a").write_text("old")
    before = open_numbers()
    monkeypatch.setattr(os, "write", no_space)
    with pytest.raises(OSError, match="no space left"):
        reuse_space(tmp_path / "spare", tmp_path / "a", b"new")
    assert ((tmp_path / "a").read_text(), names(tmp_path)) == ("old", ["a"])
    assert open_numbers() == before


def test_a_link_to_a_file_is_no_space_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("theirs")
    (tmp_path / "spare").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):  # noqa: PT011 - its words are the system's
        reuse_space(tmp_path / "spare", tmp_path / "a", b"new")
    assert (tmp_path / "elsewhere").read_text() == "theirs"


# ---- reading ---------------------------------------------------------------------------------------


def test_a_plain_file_is_read_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\r\ntwo")
    before = open_numbers()
    with open_plain(tmp_path / "a") as file:
        assert file.read() == b"one\r\ntwo"
    assert open_numbers() == before


def test_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("theirs")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(NotPlainFile) as caught, open_plain(tmp_path / "link"):
        pass
    assert str(caught.value) == f"{tmp_path / 'link'} is a link"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_is_not_opened_and_does_not_block(tmp_path: Path, make) -> None:
    make(tmp_path / "a")
    before = open_numbers()
    with pytest.raises(NotPlainFile) as caught, open_plain(tmp_path / "a"):
        pass
    assert str(caught.value) == f"{tmp_path / 'a'} is no plain file"
    assert open_numbers() == before


def test_only_a_file_itself_is_plain(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = [is_plain(tmp_path / name) for name in ("a", "link", ".", "missing", "no\0name")]
    assert found == [True, False, False, False, False]


def test_removing_quietly_does_not_mind_a_file_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    for _ in range(2):
        remove_quietly(tmp_path / "a")
    assert names(tmp_path) == []


def test_brackets_without_end_are_a_value_error() -> None:
    assert parse_json(b'{"a": [1]}') == {"a": [1]}
    with pytest.raises(ValueError, match=r"^brackets are nested too deeply$"):
        parse_json("[" * 100_000)


@pytest.mark.parametrize("digits", ["1.1e100", "-1.1e100", "1e999", "9" * 101, "-" + "9" * 400])
def test_numbers_too_large_to_be_added_up_are_a_value_error(digits: str) -> None:
    with pytest.raises(ValueError, match="a number is beyond 1e"):
        parse_json(f'{{"a": [{digits}]}}')


@pytest.mark.parametrize("value", [0, -3, 2**64, 1e100, -1e100, 1e-300])
def test_other_numbers_are_what_they_were(value: float) -> None:
    found = parse_json(json.dumps([value]))
    assert found == [value]
    assert type(found[0]) is type(value)


def test_a_path_is_shown_up_to_300_characters() -> None:
    assert shown("a" * 300) == "a" * 300
    assert shown(Path("a" * 301)) == "a" * 300 + "…"


def test_what_cannot_be_printed_is_shown_as_python_writes_it() -> None:
    assert shown("naïve\x1b[2J\udcff\n") == "naïve\\x1b[2J\\udcff\\n"


# ---- the disk --------------------------------------------------------------------------------------


def test_settling_leaves_no_file_open(tmp_path: Path, monkeypatch) -> None:
    before = open_numbers()
    settle(tmp_path)
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="no space left"):
        settle(tmp_path)
    assert open_numbers() == before


def test_windows_needs_no_settling(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: pytest.fail("settled"))
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "name", "nt")
        settle(tmp_path)


@pytest.mark.parametrize("sign", ["a", "ß", "👟"])
def test_a_file_with_the_longest_name_there_is_can_be_written(tmp_path: Path, sign: str) -> None:
    size = len(sign.encode())
    name = sign * ((255 - 4) // size) + ".csv"
    write_whole(tmp_path / name, "text")
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "text"


def test_a_part_of_a_long_name_keeps_its_end_and_is_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    part = part_of(tmp_path / ("x" * 250 + ".json"))
    assert len(part.name) == 255
    assert part.name.startswith(PART)
    assert part.name.endswith("x.json")


@pytest.mark.parametrize(
    "data",
    [b'"\\ud800"', b'{"\\uDFFF": 1}', b'"\xed\xa0\x80"', b"[" * 100_000, b"{", b"", b"9" * 5000],
    ids=range(7),
)
def test_json_that_cannot_be_used_is_an_error_of_value(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
        parse_json(data)


@pytest.mark.parametrize(
    ("data", "value"), [(b'"\\ud83d\\udc5f"', "👟"), (b'\xef\xbb\xbf{"a": 1}', {"a": 1}), ("[2]", [2])]
)
def test_json_that_can_be_used_is_read(data: bytes | str, value: object) -> None:
    assert parse_json(data) == value


@pytest.mark.parametrize("full", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("name", ["a.csv", b"a.csv"])
def test_a_full_disk_is_named_with_the_file(full: int, name: str | bytes) -> None:
    assert about(OSError(full, "No space", name)) == (
        "a.csv could not be written, for the disk is full: make room, then run the command again."
    )


@pytest.mark.parametrize(
    ("error", "where", "reason"),
    [
        (OSError(errno.EACCES, "Permission denied", "a.csv"), "a.csv", "Permission denied"),
        (OSError(errno.EACCES, "Permission denied", 3), "A file", "Permission denied"),
        (OSError("the line\x00 is dead"), "A file", r"the line\x00 is dead"),
        (TimeoutError(), "A file", "TimeoutError"),
    ],
)
def test_what_the_operating_system_refuses_is_a_sentence(error: OSError, where: str, reason: str) -> None:
    assert about(error) == (
        f"{where} could not be read or written ({reason}): check the path, permissions and the disk."
    )
