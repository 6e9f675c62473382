"""How a text is encoded: UTF-8, UTF-16 with its mark, or, where nothing in it is UTF-8, Windows' cp1252."""

import codecs
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol

from repcl.errors import InvalidData, shortened

Note = Callable[[str], None]
"""Hears a sentence about what was found in a file, where that is not the usual."""

UTF8, UTF16, CP1252 = "utf-8-sig", "utf-16", "cp1252"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Bytes that cp1252 does not have, and those that no text has: with them it is some other thing.
IMPOSSIBLE = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D, *range(9), *range(14, 27), *range(28, 32), 127])
PIECE = 1 << 16


class _Line(NamedTuple):
    """A line that is not UTF-8."""

    number: int
    error: UnicodeDecodeError

    def refusal(self, name: str, *, others_are: bool) -> InvalidData:
        found = self.error.object[self.error.start]
        beginning = shortened(self.error.object.decode("latin-1").strip())
        others = ", though other lines are" if others_are else ""
        return InvalidData(
            f"{name}, line {self.number} is not UTF-8 (byte 0x{found:02x} in {beginning}){others}: "
            "save the file as UTF-8."
        )


def find_encoding(file: BinaryIO, name: str, note: Note) -> str:
    """The encoding of a file that can be read from its start again; a note where it is not UTF-8.

    A file is cp1252 if it is not UTF-8 anywhere outside ASCII, and has no byte that cp1252 lacks. A file that
    is UTF-8 in one line and not in another is damaged, and is refused by its line.

    Args:
        file: in bytes; where it stands afterwards is not defined.
        name: of the file, for messages.
        note: hears of another encoding than UTF-8.
    """
    file.seek(0)
    if file.read(2) in UTF16_MARKS:
        note(f"{name} is not UTF-8 and is read as UTF-16.")
        return UTF16
    if _is_utf8(file):
        return UTF8
    judge = _Judge(name, note)
    file.seek(0)
    number = 1
    while piece := file.readline(PIECE):
        judge.hear(piece, number, is_end=piece.endswith(b"\n"))
        number += piece.endswith(b"\n")
    judge.hear(b"", number, is_end=True)
    return judge.encoding


class GivesLines(Protocol):
    """A stream that is read line by line."""

    def readline(self, size: int, /) -> bytes:
        """The next line, of so many bytes at most."""


def decoded_lines(file: GivesLines, name: str, note: Note, *, longest: int) -> Iterator[str]:
    """Lines of a stream that is read once, without their ends; cp1252 once a line is not UTF-8.

    Args:
        file: in bytes, without the mark of UTF-16.
        name: of the stream, for messages.
        note: hears of another encoding than UTF-8.
        longest: characters that a line may have.
    """
    judge = _Judge(name, note)
    number = 0
    while line := file.readline(4 * longest + 1):
        number += 1
        if len(line) <= 4 * longest:  # a longer one may be cut inside a character, and is refused anyway
            judge.hear(line, number, is_end=True)
        encoding = judge.encoding if number == 1 else judge.encoding.removesuffix("-sig")
        text = line.decode(encoding, "replace")
        if len(text) > longest:
            raise InvalidData(
                f"{name}, line {number} has over {longest:,} characters, with {shortened(text)} in it: "
                "look for missing line breaks."
            )
        yield text.rstrip("\r\n")


class _Judge:
    """Hears a text's pieces one after another, and knows which encoding they have so far."""

    def __init__(self, name: str, note: Note) -> None:
        self.name = name
        self.note = note
        self.encoding = UTF8
        self._has_utf8 = False
        self._bad: _Line | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def hear(self, piece: bytes, number: int, *, is_end: bool) -> None:
        """Take note of a piece of the line of that number; `InvalidData` if it fits to no encoding."""
        try:
            self._has_utf8 |= not self._decoder.decode(piece, final=is_end).isascii()
        except UnicodeDecodeError as error:
            self._decoder.reset()
            self._bad = self._bad or _Line(number, error)
        if self._bad is None:
            return
        if self._has_utf8:
            raise self._bad.refusal(self.name, others_are=True)
        if len(piece.translate(None, IMPOSSIBLE)) < len(piece):
            raise self._bad.refusal(self.name, others_are=False)
        if self.encoding != CP1252:
            self.encoding = CP1252
            self.note(f"{self.name} is not UTF-8 and is read as Windows-1252 (cp1252).")


def _is_utf8(file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    file.seek(0)
    try:
        while piece := file.read(1 << 20):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
