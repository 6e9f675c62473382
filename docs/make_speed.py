"""Makes the page on speed from what `benchmarks/speed.py` measured, so that no number in it is typed by hand.

    python docs/make_speed.py

The words come from `docs/speed.template.md`, where `{{ steps }}` stands for the table of that part.
"""

import json
import re
from pathlib import Path
from typing import Any

from repcl.files import write_whole

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results" / "speed"
NOTHING_YET = "*Not measured yet.*"
_PLACEHOLDER = re.compile(r"\{\{ (\w+) \}\}")


def render_page(template: str, results: Path) -> str:
    """Fill every placeholder from the file of its part."""
    return _PLACEHOLDER.sub(lambda found: _part(results / f"{found[1]}.json"), template)


def _part(path: Path) -> str:
    """The table of a part, with the command that made it."""
    if not path.is_file():
        return NOTHING_YET
    part = json.loads(path.read_text(encoding="utf-8"))
    lines = [
        f"    {part['command']}",
        "",
        f"| {part['unit']} | value | 95 % interval | aim at most | |",
        "|---|--:|--:|--:|---|",
        *map(_line, part["rows"]),
        "",
        f"{part['processor']}, {part['date']}.",
    ]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    has_spread = row["low"] != row["high"]
    interval = f"{row['low']:.2f} to {row['high']:.2f}" if has_spread else ""
    aim = "" if row["aim"] is None else f"{row['aim']:.2f}"
    verdict = "" if row["aim"] is None else "reached" if row["value"] <= row["aim"] else "missed"
    value = f"{row['value']:,.0f}" if row["value"] >= 100 else f"{row['value']:.2f}"
    return f"| {row['what']} | {value} | {interval} | {aim} | {verdict} |"


def main() -> None:
    """Write the page."""
    template = (DOCS / "speed.template.md").read_text(encoding="utf-8")
    write_whole(DOCS / "speed.md", render_page(template, RESULTS))


if __name__ == "__main__":
    main()
