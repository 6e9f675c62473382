"""What a service is started with: the model, who may write, where it listens, and what it refuses."""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path

from repcl.errors import InvalidSetting, shortened
from repcl.files import open_plain

SHORTEST_TOKEN = 16
LONGEST_TOKEN = 1000
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
ANY_HOST = "*"

TEXTS_PER_REQUEST = 1000
EXAMPLES_PER_REQUEST = 10_000
TEXT_LENGTH = 10_000
LABEL_LENGTH = 500
BODY_BYTES = 8 << 20
BODY_SECONDS = 30.0
READING_SECONDS = 60.0
"""Whoever takes nothing of an answer for so long is taken for gone."""
WAITING_REQUESTS = 256
LISTENERS = 256
WAITING_JOBS = 32


@dataclass(frozen=True)
class Options:
    """How a model is served.

    Attributes:
        model: the model folder.
        token: lets its bearer write; without one nobody may.
        is_read_only: whether nobody may write though there is a token.
        collects: whether texts that the model is unsure of are kept beside it.
        host: the address to listen at.
        allowed_hosts: further names under which the service is asked; "*" for any.
        waiting: requests that may wait for their answer at a time.
        device: to compute on; the best one present if not given.
    """

    model: Path
    token: str | None = None
    is_read_only: bool = False
    collects: bool = False
    host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    waiting: int = WAITING_REQUESTS
    device: str | None = None

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.token is not None:
            check_token(self.token)
        if not self.is_local and self.token is None:
            raise InvalidSetting(
                f"Expected a token for the address {shortened(self.host)}, which others can reach, found "
                "none: give --token-file, or set REPCL_TOKEN."
            )
        if is_every_address(self.host) and not self.allowed_hosts:
            raise InvalidSetting(
                f"Expected the names under which {shortened(self.host)} is reached, found none: give "
                "--allowed-host NAME for each (* for any)."
            )
        if self.collects and not self.can_write:
            raise InvalidSetting(
                "Expected a token for --collect, and no --read-only, for texts that are kept must be "
                "erasable: give --token-file, or leave out --collect."
            )

    @property
    def can_write(self) -> bool:
        """Whether anybody may change the model."""
        return self.token is not None and not self.is_read_only

    @property
    def why_not(self) -> str | None:
        """Why nobody may change the model."""
        if self.can_write:
            return None
        if self.is_read_only:
            return "The service was started with --read-only."
        return "The service was started without a token: restart it with --token-file to teach."

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """Names that a request may ask for, in lower case and without a port."""
        own = () if is_every_address(self.host) else (bracketed(self.host),)
        return frozenset(name.lower() for name in (*LOOPBACK_NAMES, *own, *self.allowed_hosts))


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_every_address(host: str) -> bool:
    """Whether an address stands for all of the machine's."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == ""


def bracketed(host: str) -> str:
    """An address as a URL has it."""
    return f"[{host}]" if ":" in host else host


def read_token(file: Path | None) -> str | None:
    """The token from a file, else from REPCL_TOKEN; None if neither is given."""
    if file is None:
        found = os.environ.get("REPCL_TOKEN")
        return found.strip() if found is not None else None
    with open_plain(file.resolve()) as opened:
        data = opened.read(LONGEST_TOKEN + 1)
    return data.decode("utf-8", "replace").strip()


def check_token(token: str) -> None:
    """Refuse a token that can be guessed or that no header can carry."""
    if len(token) < SHORTEST_TOKEN:
        raise InvalidSetting(
            f"Expected a token of at least {SHORTEST_TOKEN} characters, found {len(token)}: make one with "
            '`python -c "import secrets; print(secrets.token_urlsafe())"`.'
        )
    if len(token) > LONGEST_TOKEN or not re.fullmatch(r"[!-~]+", token):
        raise InvalidSetting(
            f"Expected a token of at most {LONGEST_TOKEN} ASCII characters without blanks, found another: "
            'make one with `python -c "import secrets; print(secrets.token_urlsafe())"`.'
        )
