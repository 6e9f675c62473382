"""Consoles that print what they are given: brackets and colons in a user's text are no markup."""

from rich.console import Console

WIDE = 400


def make_console(*, is_quiet: bool = False) -> Console:
    """A console as wide as the terminal, or as wide as anything we print where there is none.

    Args:
        is_quiet: print nothing, as all but the first of several processes do.
    """
    console = Console(quiet=is_quiet, markup=False, emoji=False)
    if console.is_terminal:
        return console
    return Console(width=WIDE, highlight=False, quiet=is_quiet, markup=False, emoji=False)


def sentence_console(*, stderr: bool = False) -> Console:
    """A console for sentences: no line is broken, so that paths and commands can be copied."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)
