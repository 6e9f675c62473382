"""The texts that a command is asked about: typed, from a file or the standard input, each in its place."""

import io
import json
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, NamedTuple, cast

import typer

from repcl.cli.console import sentence_console
from repcl.cli.tables import counted
from repcl.errors import InvalidData, InvalidSetting, listed, shortened

if TYPE_CHECKING:
    from repcl.data import Example
    from repcl.data.files import Read
    from repcl.data.rows import Wanted

STDIN = "the standard input"
LINES, CSV, TSV, JSONL = "lines", "csv", "tsv", "jsonl"
FORMATS = (LINES, CSV, TSV, JSONL)
LONGEST_NAME = 100
LONGEST_HEADER = 1 << 16
BLANK_LINES = 100

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="lines|csv|tsv|jsonl",
        help="How to read the input; default: judged by the file extension or the first line.",
    ),
]


class Asked(NamedTuple):
    """Texts in order, each with all columns that its row has.

    Attributes:
        rows: the texts; empty ones are among them.
        are_lines: whether they are lines of text, of which a blank one is no text at all.
    """

    rows: "Iterator[Read]"
    are_lines: bool = False


def asked_texts(
    typed: Sequence[str] | None,
    file: Path | None,
    *,
    text_column: str,
    form: str | None = None,
    keeps_columns: bool = False,
) -> Asked:
    """Texts that are to be answered in their places, the empty ones too.

    Args:
        typed: on the command line.
        file: a data file or .txt; "-" or None for the standard input.
        text_column: the column with the texts.
        form: one of `FORMATS`, where the file's ending or the first line shall not decide.
        keeps_columns: whether the values of other columns are needed, too.
    """
    from repcl.data import Example
    from repcl.data.files import Read, wanted_columns

    if form is not None and form not in FORMATS:
        raise InvalidSetting(f"Expected --format {', '.join(FORMATS)}, found {shortened(form)}.")
    if typed and file is not None:
        raise InvalidData("Expected texts or --file, found both: leave one out.")
    if typed:
        return Asked(Read(Example(text, ""), {"text": text}) for text in typed)
    wanted = wanted_columns(text_column, note=print_note, every_column=keeps_columns, blank_rows=True)
    if file is None or str(file) == "-":
        return _from_stream(_standard_input(), wanted, form)
    return _from_file(file, wanted, form)


def text_examples(texts: Sequence[str] | None, file: Path | None, column: str) -> "Iterator[Example]":
    """Texts as typed, from a file, or from the standard input, without the empty ones."""
    asked = asked_texts(texts, file, text_column=column)
    empty = 0
    for row in asked.rows:
        if row.example.text.strip():
            yield row.example
        else:
            empty += 1
    if empty and not asked.are_lines:
        print_note(f"{counted(empty, 'row')} without a text passed over.")


def print_note(sentence: str) -> None:
    """Say what was found where it is not the usual, beside the answers."""
    sentence_console(stderr=True).print(f"Note: {sentence}")


def _from_file(file: Path, wanted: "Wanted", form: str | None) -> Asked:
    from repcl.data.files import examples_of
    from repcl.data.rows import read_rows, require_file

    if form is None and file.suffix.lower() != ".txt":
        rows = read_rows(file, wanted)
        return Asked(iter(list(examples_of(str(file), rows, wanted, has_labels=False))))
    require_file(file)
    return _from_bytes(file.open("rb"), str(file), wanted, form or LINES)


def _from_stream(stream: BinaryIO, wanted: "Wanted", form: str | None) -> Asked:
    """The standard input; lines of text are read as they come, all else is read to its end first."""
    from repcl.data.encodings import UTF16_MARKS, decoded_lines
    from repcl.data.rows import LONGEST_ROW

    beginning = _beginning(stream, 4 * LONGEST_ROW)
    is_utf16 = b"".join(beginning[:1]).startswith(UTF16_MARKS)
    if not is_utf16:
        form = form or _guessed(b"".join(beginning[-1:]).decode("utf-8-sig", "replace"), wanted)
        if form == LINES:
            lines = decoded_lines(_Resumed(beginning, stream), STDIN, wanted.note, longest=LONGEST_ROW)
            return Asked(_as_read(lines), are_lines=True)
    kept = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (closed by who reads it)
    kept.writelines(beginning)
    shutil.copyfileobj(stream, kept)
    if form is None:
        kept.seek(0)
        start = kept.read(LONGEST_HEADER).decode("utf-16", "replace")
        form = _guessed(next(filter(str.strip, start.splitlines()), ""), wanted)
    return _from_bytes(kept, STDIN, wanted, form)


def _from_bytes(data: BinaryIO, name: str, wanted: "Wanted", form: str) -> Asked:
    """Texts in a form that is known; all rows are read before the first is answered, to name bad ones."""
    from repcl.data.files import examples_of
    from repcl.data.rows import csv_rows, jsonl_rows, text_lines

    with data:
        if form == LINES:
            return Asked(_as_read(list(text_lines(data, name, wanted.note))), are_lines=True)
        if form == JSONL:
            rows = jsonl_rows(data, name, wanted)
        else:
            rows = csv_rows(data, name, wanted, usual="\t" if form == TSV else ",")
        return Asked(iter(list(examples_of(name, rows, wanted, has_labels=False))))


def _as_read(lines: Iterable[str]) -> "Iterator[Read]":
    from repcl.data import Example
    from repcl.data.files import Read

    return (Read(Example(line, ""), {"text": line}) for line in lines)


def _standard_input() -> BinaryIO:
    """The standard input in bytes, for its encoding is found out here."""
    if sys.stdin.isatty():
        print("Texts, one per line; end with Ctrl-D.", file=sys.stderr)
    binary = getattr(sys.stdin, "buffer", None)
    if binary is not None:
        return cast(BinaryIO, binary)
    return io.BytesIO(sys.stdin.read().encode("utf-8", "surrogateescape"))  # a stream put in its place


def _beginning(stream: BinaryIO, longest: int) -> list[bytes]:
    """The lines up to the first that is not blank."""
    lines: list[bytes] = []
    while len(lines) < BLANK_LINES and (line := stream.readline(longest + 1)):
        lines.append(line)
        if line.strip():
            break
    return lines


class _Resumed:
    """A stream from its start again, of which some lines were read already."""

    def __init__(self, lines: Sequence[bytes], stream: BinaryIO) -> None:
        self.lines = deque(lines)
        self.stream = stream

    def readline(self, size: int, /) -> bytes:
        return self.lines.popleft() if self.lines else self.stream.readline(size)


def _guessed(line: str, wanted: "Wanted") -> str:
    """What the first line looks like: a JSON object, a header with the column of texts, or a text."""
    from repcl.data.rows import SEPARATORS, csv_columns

    line = line.strip("\ufeff\r\n")
    if line.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            if isinstance(json.loads(line), dict):
                wanted.note(f"{STDIN} is read as JSONL; --format lines reads it line by line.")
                return JSONL
    for separator in SEPARATORS:
        names = csv_columns(line, separator)
        if wanted.columns[0] in names and all(map(_is_name, names)):
            shown = listed(map(shortened, names), 5)
            wanted.note(
                f"{STDIN} is read as CSV with the columns {shown}; --format lines reads it line by line."
            )
            return CSV
    return LINES


def _is_name(cell: str) -> bool:
    return 0 < len(cell) <= LONGEST_NAME and cell == cell.strip()
