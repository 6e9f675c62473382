"""Write docs/reference/cli.md from the commands themselves: `python docs/make_reference.py`."""

from pathlib import Path
from typing import Any

from typer.main import get_command

from repcl.cli import app
from repcl.cli.examples import EXAMPLES

PAGE = Path(__file__).parent / "reference" / "cli.md"
LEAD = """# Command line

Made by `python docs/make_reference.py` from the commands themselves. `--debug` with any command shows the
traceback of an error. Exit codes: 0 for success, 2 for an error that you can fix, 3 for an update that was
refused, 70 for a bug in repcl, 130 after Ctrl-C.
"""


def reference() -> str:
    """The whole page."""
    sections = [LEAD]
    for name, command in get_command(app).commands.items():
        inner = getattr(command, "commands", {})
        sections.append(_section(name, command, level=2))
        sections += [_section(f"{name} {part}", one, level=3) for part, one in inner.items()]
    return "\n".join(sections)


def _section(name: str, command: Any, *, level: int) -> str:
    parts = [f"{'#' * level} repcl {name}", "", _plain(command.help or ""), ""]
    parts += ["<!-- no-run -->", "```sh", *EXAMPLES[name], "```", ""]
    rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
    if rows:
        parts += ["| option | what it does | default |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if is_option else parameter.name.upper()
    is_shown = parameter.default not in (None, False) and not callable(parameter.default)
    default = "required" if parameter.required else parameter.default if is_shown else ""
    return f"| `{name}` | {_plain(getattr(parameter, 'help', None) or '')} | {default} |"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
