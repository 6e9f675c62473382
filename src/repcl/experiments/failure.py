"""Something asked for that ended with an error, in words and with its traceback."""

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from repcl.errors import RepclError


class Request(Protocol):
    """A run or an analysis that was asked for."""

    @property
    def title(self) -> str:
        """How it is called in overviews."""

    @property
    def error_log(self) -> Path:
        """Where its traceback is kept if it fails."""


@dataclass(frozen=True)
class Failure:
    """A run or an analysis that ended with an error."""

    request: Request
    reason: str
    details: str
    is_users_to_mend: bool = False


def failure_of(request: Request, error: Exception) -> Failure:
    """The failure that an error caught just now means for what was asked."""
    is_users = isinstance(error, RepclError)
    reason = str(error) if is_users else f"{type(error).__name__}: {error}"
    return Failure(request, reason, traceback.format_exc(), is_users)
