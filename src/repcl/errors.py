"""Every error that a user can cause: one sentence with what was expected, what was found, what to do."""

import reprlib
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from numbers import Integral

LONGEST_SENTENCE = 2000
LONGEST_VALUE = 80
NAMES_SHOWN = 40
# A name beyond this is no slip of the keyboard, and comparing it takes quadratic time.
LONGEST_TYPED_NAME = 100
# Marks that turn the direction of all that follows them, so that a sentence reads as another one.
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """A text as one line that cannot steer a terminal: breaks, escapes and half characters as backslashes."""
    if text.isprintable():
        return text
    return "".join(repr(sign)[1:-1] if _steers(sign) else sign for sign in text)


def shortened(value: object, longest: int = LONGEST_VALUE) -> str:
    """A value as a message shows it: quoted, and cut when it is long; never costly, however large it is."""
    try:
        shown = _Short(longest).repr(value)
    except Exception:  # a value that cannot be shown must not hide the error it stands in
        shown = f"<{type(value).__name__}>"
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


class _Short(reprlib.Repr):
    """Looks at the beginning of a value only, at each level of it."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = longest // 3
        self.maxdict = self.maxarray = self.maxother = longest

    def repr_str(self, text: str, _: int) -> str:
        return repr(str(text[: self.longest + 1]))

    def repr_bytes(self, data: bytes, _: int) -> str:
        return repr(data[: self.longest + 1])

    def repr_int(self, number: int, _: int) -> str:
        if number.bit_length() > 1000:  # Python refuses to write numbers of thousands of digits
            return f"a whole number of about {number.bit_length() * 3 // 10} digits"
        return repr(number)


def _steers(sign: str) -> bool:
    return sign in TURNING or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")


class RepclError(Exception):
    """Something the user can fix; the command line prints it without a traceback.

    Whatever a message quotes, it stays one line of at most `LONGEST_SENTENCE` characters.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_one_sentence(str(message)))


def _one_sentence(message: str) -> str:
    """The beginning, which says what is wrong, and the end, which says what to do."""
    if len(message) > LONGEST_SENTENCE:
        message = f"{message[: LONGEST_SENTENCE * 2 // 3]} … {message[-LONGEST_SENTENCE // 4 :]}"
    return printable(message)


def listed(names: Iterable[str], most: int = NAMES_SHOWN) -> str:
    """Names as a message lists them: the first ones, each cut when it is long."""
    every = iter(names)
    shown = [
        name if len(name) <= LONGEST_VALUE else f"{name[:LONGEST_VALUE]}…" for name in islice(every, most)
    ]
    more = sum(1 for _ in every)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def counted(number: int, word: str) -> str:
    """A number with its noun: 1 class, 2 classes."""
    return f"{number} {word}" if number == 1 else f"{number} {word}{'es' if word.endswith('s') else 's'}"


def _same_error(kind: type[RepclError], args: tuple[object, ...]) -> RepclError:
    """An error as it was in another process, whatever its class is made from."""
    error = kind.__new__(kind)
    error.args = args
    return error


class UnknownName(RepclError):
    """A method, benchmark, preset, setting or encoder of that name does not exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = list(known)
        nearest = get_close_matches(name, names, n=1) if len(name) <= LONGEST_TYPED_NAME else []
        hint = f" Did you mean {shortened(nearest[0])}?" if nearest else ""
        super().__init__(f"No {kind} {shortened(name)}.{hint} Known: {listed(names)}.")

    def __reduce__(self) -> tuple[object, ...]:
        return _same_error, (type(self), self.args)


class InvalidSetting(RepclError):
    """A setting has a value outside its range or of the wrong type."""


class InvalidData(RepclError):
    """A data file or an example is not what was expected."""


class BadRows(InvalidData):
    """Rows of a data file that cannot be used: all are counted, the first are shown.

    Args:
        name: of the file.
        problems: of the first such rows, each a sentence that begins with where the row stands.
        count: of all such rows.

    Attributes:
        summary: the file and the count, where the problems are shown below each other.
        problems: as above, each one line; none for a single row, whose problem is the message.
        count: of all such rows.
    """

    def __init__(self, name: str, problems: Sequence[str], count: int) -> None:
        super().__init__(
            f"{name}, {problems[0]}" if count == 1 else f"{_counted_rows(name, count)}: {' '.join(problems)}"
        )
        self.summary = f"{printable(_counted_rows(name, count))}:"
        self.problems = tuple(printable(problem) for problem in problems) if count > 1 else ()
        self.count = count

    @property
    def shown(self) -> list[str]:
        """The problems, and how many there are beyond them, each a line below the summary."""
        more = self.count - len(self.problems)
        return [*self.problems, *([f"and {more:,} more."] if self.problems and more else [])]

    def __reduce__(self) -> tuple[object, ...]:
        return _same_error, (type(self), self.args), self.__dict__


def _counted_rows(name: str, count: int) -> str:
    return f"{name} has {count:,} rows that cannot be used"


class MissingData(RepclError):
    """Files of a benchmark are not where they were looked for."""


class EncoderUnavailable(RepclError):
    """An encoder's weights could not be found, read or trusted."""


class ResultMismatch(RepclError):
    """A stored result or checkpoint belongs to another run, another version, or is damaged."""


class ClusterUnavailable(RepclError):
    """A Ray cluster could not be reached, or is not one that these runs can be made on."""


class MissingPackage(RepclError):
    """An optional package is needed for what was asked."""


class ProcessesDisagree(RepclError):
    """Processes that make a run together do not see or find the same."""


def require_whole(name: str, value: object, *, least: int) -> None:
    """Refuse what is no whole number, or a smaller one."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InvalidSetting(f"{name} is {shortened(value)}: it must be a whole number, {least} or more.")
