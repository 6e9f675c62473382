"""Files named by the sha256 of their bytes, so that nothing is stored twice and damage is seen."""

from hashlib import sha256
from pathlib import Path
from typing import Protocol

from repcl.classifier.durable import read_whole, settle, write_whole
from repcl.classifier.records import Blob, DamagedModel


class Blobs(Protocol):
    """Somewhere to put bytes and to get them back."""

    def put(self, data: bytes, ending: str) -> Blob:
        """Keep bytes."""

    def get(self, blob: Blob) -> bytes:
        """The bytes again."""


class BlobsInMemory:
    """Bytes kept in this process, for pickling."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes, ending: str) -> Blob:
        """Keep bytes."""
        blob = name_of(data, ending)
        self.kept[blob.file] = data
        return blob

    def get(self, blob: Blob) -> bytes:
        """The bytes again."""
        return self.kept[blob.file]


class BlobFolder:
    """Bytes kept as files of one folder.

    Attributes:
        added: the files written by this object, to be taken back if the rest goes wrong.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.added: list[Path] = []

    def put(self, data: bytes, ending: str) -> Blob:
        """Write bytes unless they are there."""
        blob = name_of(data, ending)
        path = self.folder / blob.file
        if not path.is_file() or path.read_bytes() != data:  # a damaged one is mended
            self.folder.mkdir(parents=True, exist_ok=True)
            self.added.append(path)
            write_whole(path, data)
        return blob

    def get(self, blob: Blob) -> bytes:
        """The bytes again, checked against their name."""
        where = f"{self.folder.name}/{blob.file}"
        data = read_whole(self.folder / blob.file, largest=blob.bytes, where=where)
        if sha256(data).hexdigest() != blob.digest:
            raise DamagedModel(f"{where} is damaged: its bytes do not have the sha256 in its name.")
        return data

    def settle(self) -> None:
        """Bring the new files to the disk, all together, which is much faster than one by one."""
        for path in self.added:
            settle(path)
        if self.added:
            settle(self.folder)

    def take_back(self) -> None:
        """Remove what this object added."""
        for path in self.added:
            path.unlink(missing_ok=True)


def name_of(data: bytes, ending: str) -> Blob:
    """The name under which bytes are kept."""
    return Blob(file=f"{sha256(data).hexdigest()}.{ending}", bytes=len(data))
