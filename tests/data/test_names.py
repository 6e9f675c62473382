"""Names from data stay inside the folder that they are used in."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcl.benchmarks import own_file
from repcl.data.names import inside, plain_name
from repcl.errors import InvalidData

OUT = [
    "..",
    ".",
    "...",
    "",
    " ",
    ". .",
    "../x",
    "a/b",
    "/etc",
    "a\\b",
    "C:",
    "a\0b",
    "x" * 300,
    "é" * 150,
    "\ud800",
]


@pytest.mark.parametrize("name", OUT)
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(InvalidData, match="cannot name a folder of results"):
        inside(tmp_path, "kept", name)


@pytest.mark.parametrize("name", ["tickets", "my data", ".hidden", "a..b", "v1.2", "日本", "[x]"])
def test_ordinary_names_are_taken_as_they_are(tmp_path, name):
    assert inside(tmp_path, name) == tmp_path / name


@given(st.text(st.characters(codec=None), max_size=20))
def test_whatever_a_name_is_the_path_stays_inside(name):
    folder = Path("/somewhere/out")
    try:
        path = inside(folder, name)
    except InvalidData:
        return
    assert path.parent == folder


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run").symlink_to(tmp_path / "precious")
    with pytest.raises(InvalidData, match=r"leads out of .* by a symbolic link"):
        inside(tmp_path / "out", "run", "result.json")


def test_a_link_to_the_folder_itself_is_no_way_out(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    assert inside(tmp_path / "out", "run") == tmp_path / "out" / "run"


@pytest.mark.parametrize("name", ["...csv", "....csv", "sub/...jsonl", "a\\b.csv"])
def test_a_data_file_whose_name_would_lead_out_of_the_results_is_refused(name):
    with pytest.raises(InvalidData, match="cannot name a folder of results"):
        own_file(name)


def test_a_name_has_to_be_text():
    with pytest.raises(InvalidData):
        plain_name(3)  # type: ignore[arg-type]


def test_a_link_that_leads_to_itself_is_no_traceback(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert inside(tmp_path, "loop") == tmp_path / "loop"
