"""What a benchmark is: its name, source and license, its original files, and how they are split per class."""

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_dir

from repcl.data.examples import Example, InputKind
from repcl.errors import InvalidData, MissingData

PROTOCOLS = ("code", "paper")


@dataclass(frozen=True)
class Split:
    """One class's training and test examples."""

    train: list[Example]
    test: list[Example]


@dataclass(frozen=True)
class Corpus:
    """All classes of a data set, in the order from which class orders are drawn.

    Attributes:
        splits: training and test examples by class name.
        complete: whether the files held everything that the protocol asks for.
        notes: sentences worth telling the user once.
    """

    splits: Mapping[str, Split]
    complete: bool = True
    notes: tuple[str, ...] = ()


Reader = Callable[[Path, random.Random], Corpus]


@dataclass(frozen=True)
class SourceFile:
    """An original file: its name, its public home, and what is known of its contents.

    Attributes:
        digest: `md5:...` or `sha256:...` of the public file.
    """

    name: str
    url: str | None = None
    size: int | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """A published data set under its class-incremental protocol.

    Attributes:
        read: reads the files in a folder and splits each class; draws from the round's generator.
        read_as_paper: the same where the paper's text differs from its released code.
        obtain: what to do where the files have no public address.
        bundled: the folder of files that come with this package.
    """

    name: str
    kind: InputKind
    classes: int
    tasks: int
    citation: str
    source: str
    license: str
    files: tuple[SourceFile, ...]
    read: Reader
    read_as_paper: Reader | None = None
    obtain: str = ""
    bundled: Path | None = None

    def folder(self, data_dir: str | Path | None = None) -> Path:
        """Where this benchmark's original files are looked for."""
        return self.bundled or data_folder(data_dir) / self.name

    def missing_files(self, folder: Path) -> list[str]:
        """Names of the original files that a folder lacks."""
        return [file.name for file in self.files if not (folder / file.name).is_file()]

    def corpus(self, folder: Path, generator: random.Random, protocol: str = "code") -> Corpus:
        """Read the original files and split every class."""
        if missing := self.missing_files(folder):
            raise MissingData(f"{self.name} needs {', '.join(missing)} in {folder}: {self.remedy()}.")
        read = self.read_as_paper if protocol == "paper" and self.read_as_paper else self.read
        try:
            return read(folder, generator)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidData(
                f"The files in {folder} are not laid out as the original {self.name} files "
                f"({type(error).__name__}: {error}): {self.remedy()}."
            ) from error

    def remedy(self) -> str:
        """How to get the original files."""
        return self.obtain or f"run `repcl data get {self.name}`, or put the original files there"


def data_folder(data_dir: str | Path | None = None) -> Path:
    """The folder with one folder per benchmark: as given, else `REPCL_DATA`, else in the user's cache."""
    chosen = data_dir or os.environ.get("REPCL_DATA") or Path(user_cache_dir("repcl"), "data")
    return Path(chosen).expanduser()
