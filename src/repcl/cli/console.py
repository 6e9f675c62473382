"""What commands print with: a user's text is shown as it is, no markup and no orders to the terminal."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from repcl.errors import printable

WIDE = 400


class PlainConsole(Console):
    """A console on which no text steers the terminal: each string is one line, its line breaks escaped."""

    def render_str(self, text: str, *args: Any, **options: Any) -> Text:
        """A string as it is printed."""
        return super().render_str(printable(text), *args, **options)


def print_json(value: Any) -> None:
    """One line of JSON; what the output's encoding lacks or a terminal would obey is escaped."""
    line = json.dumps(value, ensure_ascii=False)
    is_unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    print(line if is_unicode and line.isprintable() else json.dumps(value), flush=True)


def make_console(*, is_quiet: bool = False) -> Console:
    """A console as wide as the terminal, or as wide as anything we print where there is none.

    Args:
        is_quiet: print nothing, as all but the first of several processes do.
    """
    console = PlainConsole(quiet=is_quiet, markup=False, emoji=False)
    if console.is_terminal:
        return console
    return PlainConsole(width=WIDE, highlight=False, quiet=is_quiet, markup=False, emoji=False)


def sentence_console(*, stderr: bool = False) -> Console:
    """A console for sentences: no line is broken, so that paths and commands can be copied."""
    return PlainConsole(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)
