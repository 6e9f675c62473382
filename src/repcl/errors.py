"""Every error that a user can cause: one sentence with what was expected, what was found, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class RepclError(Exception):
    """Something the user can fix; the command line prints it without a traceback."""


class UnknownName(RepclError):
    """A method, benchmark, preset, setting or encoder of that name does not exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = list(known)
        nearest = get_close_matches(name, names, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        super().__init__(f"No {kind} {name!r}.{hint} Known: {', '.join(names)}.")


class InvalidSetting(RepclError):
    """A setting has a value outside its range or of the wrong type."""


class InvalidData(RepclError):
    """A data file or an example is not what was expected."""


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
