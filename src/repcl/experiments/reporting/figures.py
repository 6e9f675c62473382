"""The figures of a report: curves over tasks and heat maps of accuracy, readable in black and white."""

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from repcl.experiments.reporting.runs import BenchmarkRuns, MethodRuns
from repcl.experiments.reporting.table import file_name

# Okabe and Ito's colors without yellow, which is too light for lines: people who cannot tell red from green
# can tell these apart; markers and dashes serve those who print in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
DASHES = ("-", (0, (5, 2)), (0, (5, 2, 1, 2)), (0, (1.2, 1.2)), (0, (8, 2, 2, 2, 2, 2)))
LOOK: Any = {
    "svg.hashsalt": "repcl",  # the same results give the same file
    "svg.fonttype": "none",  # text stays text: small files, words can be searched for
    "text.parse_math": False,  # a dollar sign in a user's name is a dollar sign
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": "#555555",
    "legend.frameon": False,
}
CELL, LETTER = 0.31, 0.09  # inches
MOST_TASKS_WITH_NUMBERS = 20
CLOSE = 15.0  # points


@dataclass(frozen=True)
class Drawing:
    """A figure with its name and a sentence for those who cannot see it."""

    name: str
    description: str
    svg: str
    png: bytes

    def save(self, folder: Path) -> None:
        """Write both formats."""
        (folder / f"{self.name}.svg").write_text(self.svg, encoding="utf-8")
        (folder / f"{self.name}.png").write_bytes(self.png)

    def inline(self) -> str:
        """The SVG to stand within a page: without header, its ids told apart from those of other figures."""
        prefix = re.sub(r"[^A-Za-z0-9-]", lambda sign: f"_{ord(sign[0]):x}_", self.name)
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r'(?<=\bid=")|(?<=url\(#)|(?<=href="#)', f"{prefix}-", body)
        opening, rest = body.split(">", maxsplit=1)
        # as wide as there is room, but not so wide that a small figure has giant letters
        size = re.sub(r' width="([\d.]+)pt"', lambda found: _widest(float(found[1])), opening)
        return re.sub(r' height="[^"]*"', "", size) + ">" + rest


def line_styles(rows: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A look for every row; the first fifty differ in marker or dashes, so also in black and white."""
    return {
        name: {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "linestyle": DASHES[(place + place // len(MARKERS)) % len(DASHES)],
        }
        for place, name in enumerate(rows)
    }


def draw_curves(runs: BenchmarkRuns, styles: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Accuracy over all classes seen so far after each task, with bands of one standard deviation.

    Where some methods end far below the best, a second panel shows the others alone.
    """
    panels = [runs.methods, *_close_to_best(runs)]
    with look():
        figure = Figure(figsize=(6.4, 0.9 + 3.0 * len(panels)), layout="constrained")
        for axes, methods in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
            for method in methods:
                _draw_curve(axes, method, styles[method.name])
            axes.set_ylabel("accuracy, percent")
            axes.xaxis.set_major_locator(MaxNLocator(MOST_TASKS_WITH_NUMBERS, integer=True, min_n_ticks=1))
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_xlabel("tasks learned")
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, handlelength=4)
        description = f"{runs.name}: accuracy on all classes seen so far after each task, mean ± one sd"
        return render(figure, f"{runs.name}-curves", description)


def draw_matrix(benchmark: str, method: MethodRuns) -> Drawing:
    """The accuracy matrix, mean over rounds: rows are moments, columns are tasks."""
    matrix = _mean_matrix(method)
    tasks = len(matrix)
    with look():
        # inches, with room for words at the sides and for the name above
        width, height = max(CELL * tasks + 0.75, 0.7 + LETTER * len(method.name)), CELL * tasks + 0.85
        figure = Figure(figsize=(width, height))
        sides = (0.6 / width, 0.5 / height, CELL * tasks / width, CELL * tasks / height)
        axes = figure.add_axes(sides, xlabel="on task", ylabel="after task")
        axes.set_title(method.name, fontsize=10, loc="left")
        draw_cells(axes, matrix, [str(task + 1) for task in range(tasks)])
        description = f"{method.name} on {benchmark}: accuracy on each task after each task, percent"
        return render(figure, f"{benchmark}-{method.name}-matrix", description)


def draw_cells(axes: Any, matrix: NDArray[np.float64], rows: Sequence[str]) -> None:
    """A square of percents with its numbers; columns are tasks, rows have the names given."""
    tasks = len(matrix)
    # drawn cell by cell: an image within the SVG would be blurred in print
    edges = np.arange(tasks + 1) - 0.5
    cells = np.ma.masked_invalid(matrix)
    axes.pcolormesh(edges, edges, cells, cmap="Blues_r", vmin=0, vmax=105, edgecolor="white", linewidth=0.7)
    axes.invert_yaxis()
    axes.set_xticks(range(tasks), [str(task + 1) for task in range(tasks)])
    axes.set_yticks(range(tasks), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if tasks <= MOST_TASKS_WITH_NUMBERS:
        _write_numbers(axes, matrix)


def _close_to_best(runs: BenchmarkRuns) -> list[list[MethodRuns]]:
    """The methods that end near the best one, unless these are all or one only."""
    last = {method.name: method.accuracies_after_task()[-1] for method in runs.methods}
    means = {name: summary.mean for name, summary in last.items() if summary is not None}
    close = [name for name, mean in means.items() if mean >= max(means.values()) - CLOSE]
    chosen = [method for method in runs.methods if method.name in close]
    return [chosen] if 1 < len(chosen) < len(runs.methods) else []


def _draw_curve(axes: Any, method: MethodRuns, style: Mapping[str, Any]) -> None:
    summaries = method.accuracies_after_task()
    known = [(task, one) for task, one in enumerate(summaries, start=1) if one is not None]
    tasks, means = [task for task, _ in known], [one.mean for _, one in known]
    axes.plot(tasks, means, label=method.name, linewidth=1.5, markersize=5, **style)
    spread = [(task, one.mean, one.sd) for task, one in known if one.sd is not None]
    if len(spread) > 1:
        low = [max(mean - sd, 0.0) for _, mean, sd in spread]
        high = [min(mean + sd, 100.0) for _, mean, sd in spread]
        axes.fill_between(
            [task for task, *_ in spread], low, high, color=style["color"], alpha=0.15, linewidth=0
        )


def _mean_matrix(method: MethodRuns) -> NDArray[np.float64]:
    """Percent, NaN where nothing was evaluated; only rounds with all tasks count."""
    matrices = [result.accuracy_matrix for result in method.results]
    tasks = method.tasks
    whole = [matrix for matrix in matrices if len(matrix) == tasks]
    means = np.full((tasks, tasks), np.nan)
    for after in range(tasks):
        for on in range(tasks):
            known = [value for matrix in whole if (value := matrix[after][on]) is not None]
            if known:
                means[after, on] = 100 * fmean(known)
    return means


def _write_numbers(axes: Any, matrix: NDArray[np.float64]) -> None:
    for (after, on), value in np.ndenumerate(matrix):
        if not np.isnan(value):
            color = "black" if value > 50 else "white"
            axes.text(on, after, f"{value:.0f}", ha="center", va="center", fontsize=7.5, color=color)


def _widest(points: float) -> str:
    return f' style="max-width: {1.2 * points:.0f}pt"'


def render(figure: Figure, name: str, description: str) -> Drawing:
    """The figure in both formats."""
    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Title": description})
    figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
    return Drawing(file_name(name), description, svg.getvalue(), png.getvalue())


@contextmanager
def look() -> Iterator[None]:
    """Draw as all figures of a report are drawn."""
    with mpl.rc_context(LOOK), warnings.catch_warnings():
        # the browser has a font for letters that this one lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield
