"""What a peer is asked to do.

A peer is one file, `peer_NAME.py`, with the packages it needs in `REQUIREMENTS` and its learners by name in
`LEARNERS`. It runs in an environment of its own, without repcl, unless it asks for no package: then it runs
in that of the caller. With `TAKES_SPANS` it gets texts with marked entities as objects, else in words.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Peer(Protocol):
    """A learner of texts that come in tasks."""

    def learn(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        """Learn a task: its classes are new."""

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most likely class of each text."""

    def save(self, folder: Path) -> int:
        """Write all that is needed to go on; the bytes of it beside the encoder."""

    def load(self, folder: Path) -> None:
        """Go on from what was saved, as another process would."""


Learners = Mapping[str, Callable[[Path], Peer]]
"""By their names, how learners are made on the encoder in a folder."""


def bytes_in(folder: Path, *, without: Sequence[str] = ()) -> int:
    """Bytes of the files in a folder, but for those of these names."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in without)
    return sum(path.stat().st_size for path in files)
