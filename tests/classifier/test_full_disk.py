"""A disk with no byte left, a real one where this may be mounted: going back and pruning still work."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repcl import files
from repcl.classifier.store.files import CannotWrite
from repcl.classifier.store.folder import ModelFolder
from tests.classifier.test_store import commit, texts

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os, sys
from pathlib import Path
from repcl.classifier.store.folder import ModelFolder
from repcl.classifier.store.files import CannotWrite
from tests.classifier.test_store import commit, texts

disk = Path(sys.argv[1])
folder = ModelFolder(disk / "model")
for weights, classes in ((b"1" * 9000, "a"), (b"2" * 9000, "ab"), (b"3" * 9000, "abc")):
    commit(folder, *classes, weights=weights)
with (disk / "ballast").open("wb", buffering=0) as ballast:
    for size in (4096, 1):
        try:
            while True:
                ballast.write(b"x" * size)
        except OSError:
            pass
    assert os.statvfs(disk).f_bavail == 0
    try:
        commit(folder, "d", weights=b"4" * 9000)
        raise SystemExit("there was room")
    except CannotWrite as error:
        assert "no space left" in str(error) and "revision 3 stays in use" in str(error), error
    assert folder.open(texts)[1] == ["text of a", "text of b", "text of c"]
    assert os.statvfs(disk).f_bavail == 0
    for number, found in ((1, ["text of a"]), (2, ["text of a", "text of b"])):
        with folder.lock("rolling back"):
            folder.rollback(number)
        assert folder.open(texts)[1] == found
    with folder.lock("purging"):
        folder.purge([1, 3])
    assert folder.numbers() == [2]
    folder.check(2)
    assert commit(folder, "e", weights=b"5").number == 4
    words = (disk / "model" / "README.md").read_text()
    assert "| 2 |" in words and "| 4 |" in words and "| 3 |" not in words
print("all is well")
"""


def test_a_real_disk_without_a_free_byte(tmp_path):
    mount = "mount -t tmpfs -o size=128k none"
    if not shutil.which("unshare"):
        pytest.skip("needs unshare")
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    probe = subprocess.run([*command, f"{mount} {tmp_path}"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("nothing may be mounted here")
    done = subprocess.run(
        [*command, f'{mount} {tmp_path} && exec "$0" -c "$1" {tmp_path}', sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
    )
    assert done.stdout.strip() == "all is well", done.stderr


@pytest.fixture
def folder(tmp_path) -> ModelFolder:
    folder = ModelFolder(tmp_path / "model")
    commit(folder, "a", weights=b"one")
    commit(folder, "a", "b", weights=b"two")
    return folder


def fill(monkeypatch) -> None:
    """From now on no file can be made, as on a disk without free space."""
    real = os.open

    def full(path, flags, *rest, **options):
        if flags & os.O_CREAT and not os.path.lexists(path):
            raise OSError(errno.ENOSPC, "full")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(files.os, "open", full)


def test_the_space_of_the_readme_becomes_the_pointer(folder, monkeypatch):
    inode = (folder.path / "README.md").stat().st_ino
    fill(monkeypatch)
    with folder.lock("testing"):
        folder.rollback(1)
    assert folder.open(texts)[1] == ["text of a"]
    assert (folder.path / "current.json").stat().st_ino == inode


def test_without_the_readme_the_old_revision_stays_in_use(folder, monkeypatch):
    (folder.path / "README.md").write_text("mine")
    fill(monkeypatch)
    with pytest.raises(CannotWrite, match="no space left"), folder.lock("testing"):
        folder.rollback(1)
    assert folder.current() == 2
    assert (folder.path / "README.md").read_text() == "mine"


def test_a_readme_that_cannot_be_brought_up_to_date_is_removed_rather_than_wrong(folder, monkeypatch):
    fill(monkeypatch)
    with folder.lock("testing"):
        folder.purge([1])
    assert not (folder.path / "README.md").exists()
    monkeypatch.undo()
    commit(folder, "c")
    assert "| 3 |" in (folder.path / "README.md").read_text()
