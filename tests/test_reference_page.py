"""The reference of commands is what the commands say of themselves."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_reference_of_commands_is_up_to_date():
    made = runpy.run_path(str(DOCS / "make_reference.py"))["reference"]()
    assert made == (DOCS / "reference" / "cli.md").read_text(encoding="utf-8"), "run `make docs`"
