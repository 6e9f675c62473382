"""The report of a folder of results."""

from pathlib import Path

from repcl.experiments.result import find_results, write_whole


def write_report(folder: Path) -> Path:
    """Write `report.html` for all results below the folder."""
    rows = "".join(
        f"<tr><td>{result.row}</td><td>{result.seed}</td><td>{result.final_accuracy}</td></tr>"
        for result in find_results(folder)
    )
    write_whole(folder / "report.html", f"<table>{rows}</table>")
    return folder / "report.html"
