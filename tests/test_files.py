"""Files that are there whole or not at all."""

import os
from pathlib import Path

import pytest

from repcl import files
from repcl.files import PART, parse_json, part_of, settle, write_whole


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
