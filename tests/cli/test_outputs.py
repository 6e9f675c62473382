"""Files that a user names for a command to write: kept unless `--force` is given, and never half written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repcl.cli.outputs import require_writable, write_named
from repcl.errors import InvalidData

OLD = "text,label\nHello,labeled by hand\n"


@pytest.fixture
def target(tmp_path) -> Path:
    path = tmp_path / "groups.csv"
    path.write_text(OLD)
    return path


def test_a_file_that_exists_is_kept_without_force(target):
    with pytest.raises(InvalidData, match=r"groups\.csv exists: give another --output, or --force"):
        write_named(target, "new", "--output", force=False)
    assert target.read_text() == OLD


def test_force_replaces_a_file(target):
    write_named(target, "new", "--output", force=True)
    assert target.read_text() == "new"


def test_a_new_file_needs_no_force(tmp_path):
    write_named(tmp_path / "new.csv", "né\r\n", "--errors", force=False)
    assert (tmp_path / "new.csv").read_bytes() == "né\r\n".encode()
    assert os.listdir(tmp_path) == ["new.csv"]


@pytest.mark.parametrize("force", [True, False])
def test_a_link_is_neither_followed_nor_replaced(tmp_path, target, force):
    for name, to in (("link.csv", target), ("dangling.csv", tmp_path / "nowhere"), ("loop.csv", "loop.csv")):
        link = tmp_path / name
        link.symlink_to(to)
        with pytest.raises(InvalidData, match="is a symbolic link: name the file itself with --output"):
            write_named(link, "new", "--output", force=force)
        assert link.is_symlink()
    assert target.read_text() == OLD
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("force", [True, False])
def test_folders_pipes_and_devices_are_refused(tmp_path, force):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(InvalidData, match="is a folder or a device"):
            require_writable(path, "--output", force=force)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nowhere/a.csv", "There is no folder"),
        ("x" * 300, "cannot be written"),
        ("a\0b", "cannot be written"),
    ],
)
def test_what_could_not_be_written_is_said_before_the_work(tmp_path, name, sentence):
    with pytest.raises(InvalidData, match=sentence):
        require_writable(tmp_path / name, "--output", force=False)


def test_a_file_below_a_file_is_refused(target):
    with pytest.raises(InvalidData):
        require_writable(target / "a.csv", "--output", force=False)


def test_what_is_read_is_not_replaced_even_with_force(target):
    with pytest.raises(InvalidData, match="is what is read here"):
        require_writable(target, "--output", force=True, sources=(None, target.parent / "." / target.name))


DYING = """
import os, sys, signal, resource
from pathlib import Path
from repcl.cli.outputs import write_named
from repcl.errors import InvalidData
target, how = Path(sys.argv[1]), sys.argv[2]
if how == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
else:
    real = getattr(os, how)
    def die(*args, **options):
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(os, how, die)
try:
    write_named(target, "x" * 1_000_000, "--output", force=True)
except InvalidData as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.parametrize(("how", "code"), [("full", 2), ("replace", -9), ("fsync", -9)])
def test_a_kill_or_a_full_disk_leaves_the_old_file_whole(target, how, code):
    ended = subprocess.run([sys.executable, "-c", DYING, target, how], capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    assert target.read_text() == OLD
    if code == 2:
        assert "cannot be written (File too large): give another --output, or make room." in ended.stdout
        assert os.listdir(target.parent) == [target.name]
