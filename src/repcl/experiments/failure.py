"""A run that ended with an error, in words and with its traceback."""

import traceback
from dataclasses import dataclass

from repcl.errors import RepclError
from repcl.experiments.run_request import RunRequest


@dataclass(frozen=True)
class Failure:
    """A run that ended with an error."""

    request: RunRequest
    reason: str
    details: str
    is_users_to_mend: bool = False


def failure_of(request: RunRequest, error: Exception) -> Failure:
    """The failure that an error caught just now means for its run."""
    is_users = isinstance(error, RepclError)
    reason = str(error) if is_users else f"{type(error).__name__}: {error}"
    return Failure(request, reason, traceback.format_exc(), is_users)
