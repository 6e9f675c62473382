"""Every figure, of scores and of analyses, readable in black and white; matplotlib is loaded by the first."""

import io
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.spectrum import Spectrum
from repcl.analysis.transfer import ProbeMatrix
from repcl.experiments.reports.classes import Guesses
from repcl.experiments.reports.grouping import TRACKS, BenchmarkRuns, MethodRuns, Track
from repcl.experiments.reports.table import file_name
from repcl.experiments.representations.analysis import Representations, RunAnalysis
from repcl.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colors without yellow, which is too light for lines: people who cannot tell red from green
# can tell these apart; markers and dashes serve those who print in black and white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#5D3A9B")
MOST_HIGHLIGHTED = len(COLORS)
GRAY: Any = {"color": "#9a9a9a", "linestyle": "-"}  # of lines that are named when they are pointed at
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
DASHES = ("-", (0, (5, 2)), (0, (5, 2, 1, 2)), (0, (1.2, 1.2)), (0, (8, 2, 2, 2, 2, 2)))
TRACK_LOOKS: Mapping[Track, Any] = {
    "strict": {"color": COLORS[0], "marker": "o"},
    "statistics": {"color": COLORS[1], "marker": "s"},
    "all data": {"color": COLORS[2], "marker": "D"},
}
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))  # of a dot: right, up
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
LONGEST_LABEL = 28  # letters of a class beside a figure
MARKS = 8  # markers on a line
GRID: Any = {"color": "#dddddd", "linewidth": 0.6}

Estimates = Mapping[str, Sequence[MutualInformation]]
"""The estimates of the analyzed rounds of each row."""


@dataclass(frozen=True)
class Drawing:
    """A figure with its name and a sentence for those who cannot see it."""

    name: str
    description: str
    svg: str
    png: bytes

    def save(self, folder: Path) -> None:
        """Write both formats."""
        write_whole(folder / f"{self.name}.svg", self.svg)
        write_whole(folder / f"{self.name}.png", self.png)

    def inline(self) -> str:
        """The SVG to stand within a page: without header, its ids told apart from those of other figures."""
        prefix = re.sub(r"[^A-Za-z0-9-]", lambda sign: f"_{ord(sign[0]):x}_", self.name)
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r'(?<=\bid=")|(?<=url\(#)|(?<=href="#)', f"{prefix}-", body)
        opening, rest = body.split(">", maxsplit=1)
        # as wide as there is room, but neither with giant letters nor, on a phone, with tiny ones
        size = re.sub(r' width="([\d.]+)pt"', lambda found: _width(float(found[1])), opening)
        return re.sub(r' height="[^"]*"', "", size) + ">" + rest


def line_styles(rows: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A look for every row; the first fifty differ in marker or dashes, so also in black and white."""
    return {
        name: {
            "color": COLORS[index % len(COLORS)],
            "marker": MARKERS[index % len(MARKERS)],
            "linestyle": DASHES[(index + index // len(MARKERS)) % len(DASHES)],
        }
        for index, name in enumerate(rows)
    }


def method_styles(runs: BenchmarkRuns, rows: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A look for each method that a figure highlights: all rows, or of many those that end best."""
    if len(rows) <= MOST_HIGHLIGHTED:
        return line_styles(rows)
    last = final_means(runs)
    best = sorted(last, key=lambda name: last[name], reverse=True)[:MOST_HIGHLIGHTED]
    return line_styles([name for name in rows if name in best])


def final_means(runs: BenchmarkRuns) -> dict[str, float]:
    """The accuracy of each method after the last task, in percent, where it is known."""
    last = {method.name: method.summary("final_accuracy") for method in runs.methods}
    return {name: summary.mean for name, summary in last.items() if summary is not None}


def draw_curves(runs: BenchmarkRuns, styles: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """Accuracy over all classes seen so far after each task, with bands of one standard deviation.

    Methods without a style are gray. Where some methods end far below the best, a second panel shows the
    others alone.
    """
    close = _close_to_best(runs)
    panels = {"All methods": runs.methods} | (
        {f"Those within {CLOSE:.0f} points of the best": close} if close else {}
    )
    with _canvas(6.4, 0.9 + 3.0 * len(panels)) as figure:
        named: dict[str, str] = {}
        for axes, (title, methods) in zip(
            figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True
        ):
            for method in methods:
                part = f"curve-{len(named)}"
                named[part] = method.name
                _draw_curve(axes, method, styles.get(method.name), part)
            axes.set_title(title if close else "", fontsize=9, loc="left")
            axes.set_ylabel("accuracy, percent")
            _number_tasks(axes, most=MOST_TASKS_WITH_NUMBERS, fewest=1)
            axes.grid(axis="y", **GRID)
        axes.set_xlabel("tasks learned")
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, handlelength=4)
        description = f"{runs.name}: accuracy on all classes seen so far after each task, mean ± one sd"
        description += _left_out(runs, close) + gray_note(runs, styles)
        return _render(figure, f"{runs.name}-curves", description, named)


def gray_note(runs: BenchmarkRuns, styles: Mapping[str, Mapping[str, Any]]) -> str:
    """How to read a figure in which not every method has a color."""
    if all(method.name in styles for method in runs.methods):
        return ""
    return f". The {len(styles)} that end best have colors; point at a gray one for its name"


def draw_costs(runs: BenchmarkRuns, kind: str, seconds: Mapping[str, float]) -> Drawing:
    """Final accuracy against the time of one run, a dot for each method; high and left is good."""
    means = final_means(runs)
    dots = {name: (seconds[name], mean) for name, mean in means.items()}
    with _canvas(6.4, 4.4) as figure:
        axes = figure.add_subplot(xlabel=f"{kind} of one run, seconds", ylabel="final accuracy, percent")
        named: dict[str, str] = {}
        for method in (method for method in runs.methods if method.name in dots):
            part = f"dot-{len(named)}"
            named[part] = method.name
            across, up = dots[method.name]
            axes.plot([across], [up], markersize=6, linestyle="none", gid=part, **TRACK_LOOKS[method.track])
        _spread_seconds(axes, [across for across, _ in dots.values()])
        axes.grid(**GRID)
        _name_tracks(figure, [method.track for method in runs.methods if method.name in dots])
        nameless = _name_dots(figure, axes, dots)
        description = f"{runs.name}: final accuracy against {kind} of one run; high and left is good"
        description += ". Point at a dot without a name to see it" if nameless else ""
        return _render(figure, f"{runs.name}-costs", description, named)


def draw_confusions(benchmark: str, method: str, names: Sequence[str], guesses: Guesses) -> Drawing:
    """How often the texts of each class (row) are taken for each class (column), in percent."""
    shares = [[_share(guesses.get(row), column) for column in names] for row in names]
    size = 0.42 * len(names)
    shown = [_shortened(name) for name in names]
    longest = LETTER * max(map(len, shown))
    with _canvas(size + longest + 0.6, size + longest + 0.9) as figure:
        axes = figure.add_subplot(xlabel="answer", ylabel="class")
        edges = np.arange(len(names) + 1) - 0.5
        axes.pcolormesh(
            edges, edges, np.array(shares), cmap="Blues", vmin=0, vmax=100, edgecolor="white", linewidth=0.7
        )
        axes.invert_yaxis()
        axes.set_xticks(range(len(names)), shown, rotation=90)
        axes.set_yticks(range(len(names)), shown)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for (row, column), share in np.ndenumerate(np.array(shares)):
            if share >= 0.5:  # what reads 0 stays empty
                color = "white" if share > 50 else "black"
                axes.text(column, row, f"{share:.0f}", ha="center", va="center", fontsize=8, color=color)
        description = (
            f"{method} on {benchmark}: percent of the texts of a class (row) that get an answer (column), "
            f"for the {len(names)} classes that are confused most"
        )
        return _render(figure, f"{benchmark}-{method}-confusions", description)


def draw_matrix(benchmark: str, method: MethodRuns) -> Drawing:
    """The accuracy matrix, mean over rounds: rows are moments, columns are tasks."""
    matrix = _mean_accuracies(method)
    tasks = len(matrix)
    # inches, with room for words at the sides and for the name above
    width, height = max(CELL * tasks + 0.75, 0.7 + LETTER * len(method.name)), CELL * tasks + 0.85
    with _canvas(width, height, layout=None) as figure:
        sides = (0.6 / width, 0.5 / height, CELL * tasks / width, CELL * tasks / height)
        axes = figure.add_axes(sides, xlabel="on task", ylabel="after task")
        axes.set_title(method.name, fontsize=10, loc="left")
        _draw_cells(axes, matrix, [str(task + 1) for task in range(tasks)])
        description = f"{method.name} on {benchmark}: accuracy on each task after each task, percent"
        return _render(figure, f"{benchmark}-{method.name}-matrix", description)


def draw_bars(name: str, description: str, bars: Mapping[str, Mapping[str, float]]) -> Drawing:
    """Percentages as bars side by side: a group for each row, a bar for each kind of value in it."""
    kinds = list(dict.fromkeys(kind for row in bars.values() for kind in row))
    thick = 0.8 / len(kinds)
    with _canvas(6.4, 0.9 + 0.28 * len(kinds) * len(bars)) as figure:
        axes = figure.add_subplot(xlabel="accuracy, percent", xlim=(0, 108))
        for index, kind in enumerate(kinds):
            at = [row + (index - (len(kinds) - 1) / 2) * thick for row in range(len(bars))]
            values = [row.get(kind, float("nan")) for row in bars.values()]
            drawn = axes.barh(at, values, height=0.9 * thick, color=COLORS[index], label=kind)
            axes.bar_label(drawn, [f"{value:.1f}" for value in values], padding=3, fontsize=8)
        axes.set_yticks(range(len(bars)), list(bars))
        axes.invert_yaxis()
        axes.grid(axis="x", **GRID)
        figure.legend(loc="outside lower center", ncols=len(kinds))
        return _render(figure, name, description)


def run_drawings(row: str, analysis: RunAnalysis, prefix: str = "analysis") -> list[Drawing]:
    """All figures of one run; their names start with the prefix."""
    known, is_held_out = analysis.representations, analysis.settings.is_held_out
    if known is None:
        return []
    drawings = [
        draw_fitting(f"{prefix}-fitting-{name}", quantity, {row: [value]}, is_held_out=is_held_out)
        for name, quantity, value in (
            ("inputs", "I(X1;Z1)", known.inputs),
            ("classes", "I(Z;Y)", known.classes),
            ("same-class", "I(Z1;Z1+)", known.same_class),
        )
        if value.value is not None
    ]
    moments = {"untouched": [known.untouched], "after task 1": [known.first], "at the end": [known.last]}
    drawings.append(draw_spectra(f"{prefix}-spectrum", moments))
    if known.movements:
        drawings.append(draw_drift(f"{prefix}-drift", {row: [known]}))
    return [
        *drawings,
        *(
            draw_probes(f"{prefix}-probes-{shots}", row, [matrix], shots=shots)
            for shots, matrix in known.probes.items()
        ),
    ]


def draw_fitting(
    name: str,
    quantity: str,
    estimates: Estimates,
    *,
    is_held_out: bool = True,
) -> Drawing:
    """What an estimate would be after so many steps, and in gray what the texts fitted on would say."""
    styles = line_styles(list(estimates))
    with _canvas(6.4, 3.6) as figure:
        axes = figure.add_subplot(xlabel="steps of the critic", ylabel=f"{quantity}, nats")
        for row, rounds in estimates.items():
            steps, held_out, fitted = _mean_curves(rounds)
            _draw_line(axes, steps, held_out, row, styles)
            if is_held_out:
                axes.plot(steps, fitted, color="#888888", linewidth=0.9, linestyle=styles[row]["linestyle"])
        shown = [one for rounds in estimates.values() for one in rounds]
        for ceiling in sorted({one.class_ceiling for one in shown if one.class_ceiling is not None}):
            axes.axhline(ceiling, color="black", linewidth=0.8)
            axes.annotate(
                f"ceiling, ln of the classes: {ceiling:.2f}",
                (1, ceiling),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                xytext=(0, 3),
                ha="right",
                fontsize=8,
            )
            axes.set_ylim(top=max(axes.get_ylim()[1], 1.1 * ceiling))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        if is_held_out:
            axes.plot([], [], color="#888888", linewidth=0.9, label="on the texts fitted on")
        axes.grid(axis="y", **GRID)
        figure.legend(loc="outside lower center", ncols=4, handlelength=4)
        texts = "texts that the critic was not fitted on" if is_held_out else "the texts fitted on"
        description = f"{quantity} on {texts}, had the fit ended at that step"
        if is_held_out:
            description += "; in gray, with the same dashes, on the texts fitted on"
        return _render(figure, name, description)


def draw_spectra(name: str, spectra: Mapping[str, Sequence[Spectrum]]) -> Drawing:
    """The largest eigenvalues: as they are, and with every representation scaled to length 1."""
    styles = line_styles(list(spectra))
    with _canvas(7.2, 3.6) as figure:
        panels = figure.subplots(1, 2)
        for axes, kind, title in zip(
            panels, ("raw", "unit"), ("as they are (scale counts)", "of rows of length 1"), strict=True
        ):
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel("rank")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.yaxis.set_minor_formatter("")  # its own writes formulas, which are off here
            axes.grid(axis="y", **GRID)
            for row, rounds in spectra.items():
                values = _mean_values([getattr(one, kind) for one in rounds])
                _draw_line(axes, range(1, len(values) + 1), values, row, styles)
        panels[0].set_ylabel("eigenvalue of the covariance")
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=4
        )
        description = "Largest eigenvalues of the covariance of the first task's test representations"
        return _render(figure, name, description)


def draw_probes(name: str, row: str, matrices: Sequence[ProbeMatrix], *, shots: int) -> Drawing:
    """Accuracy of probes on tasks that were not learned yet, row by row from the untouched encoder on."""
    means, texts = _mean_probes(matrices), f"{shots} text{'s' * (shots > 1)} per class"
    size = 0.36 * len(means)
    with _canvas(size + 1.6, size + 1.1) as figure:
        axes = figure.add_subplot(xlabel="probe on task", ylabel="tasks learned")
        axes.set_title(f"{row}, {texts}", fontsize=9, loc="left")
        _draw_cells(axes, means, rows=["none", *(str(task) for task in range(1, len(means)))])
        description = (
            f"{row}: accuracy in percent of a probe with {texts} on tasks not learned yet; "
            "a column that gets darker downwards is representation bias"
        )
        return _render(figure, name, description)


def draw_drift(name: str, rows: Mapping[str, Sequence[Representations]]) -> Drawing:
    """How far the centroids of old classes turned while each task was learned."""
    styles = line_styles(list(rows))
    with _canvas(6.4, 3.3) as figure:
        axes = figure.add_subplot(xlabel="task learned", ylabel="1 − cosine of old centroids")
        for row, rounds in rows.items():
            by_task: dict[int, list[float]] = {}
            for one in rounds:
                for movement in one.movements:
                    by_task.setdefault(movement.task + 1, []).append(movement.turned)
            means = [fmean(values) for values in by_task.values()]
            axes.plot([*by_task], means, label=row, linewidth=1.5, markersize=5, **styles[row])
        _number_tasks(axes)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", **GRID)
        figure.legend(loc="outside lower center", ncols=4, handlelength=4)
        return _render(figure, name, "How far the centroids of old classes turned while a task was learned")


def _draw_cells(axes: Any, matrix: NDArray[np.float64], rows: Sequence[str]) -> None:
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


def _spread_seconds(axes: Any, seconds: Sequence[float]) -> None:
    """Give every power of ten the same room, where methods differ by so much."""
    from matplotlib.ticker import LogLocator

    if seconds and max(seconds) > 10 * min(seconds) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter("")  # its own writes formulas, which are off here
    else:
        axes.set_xlim(left=0)


def _name_tracks(figure: "Figure", tracks: Collection[Track]) -> None:
    """A legend of the tracks that occur: what their methods keep of old texts."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", label=TRACKS[track], **TRACK_LOOKS[track])
        for track in TRACKS
        if track in tracks
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), title="kept of old texts")


def _name_dots(figure: "Figure", axes: Any, dots: Mapping[str, tuple[float, float]]) -> list[str]:
    """Write the name of each dot beside it, where it covers neither a dot nor another name.

    The highest dots choose first. Returns the names for which there is no room.
    """
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # until then nothing has its place
    centers = axes.transData.transform(list(dots.values()))
    taken = [Bbox.from_bounds(across - 4, up - 4, 8, 8) for across, up in centers]
    nameless = []
    for name, dot in sorted(dots.items(), key=lambda item: item[1][1], reverse=True):
        for right, up in SIDES:
            label = axes.annotate(
                name,
                dot,
                xytext=(5 * right, 5 * up),
                textcoords="offset points",
                ha={-1: "right", 0: "center", 1: "left"}[right],
                va={-1: "top", 0: "center", 1: "bottom"}[up],
                fontsize=8,
                in_layout=False,
            )
            box = label.get_window_extent()
            if box.count_overlaps(taken) == 0 and figure.bbox.containsx(box.x1) and axes.bbox.x0 < box.x0:
                taken.append(box)
                break
            label.remove()
        else:
            nameless.append(name)
    return nameless


def _share(found: Counter[str] | None, name: str) -> float:
    return 100 * found[name] / found.total() if found else 0.0


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"


def _close_to_best(runs: BenchmarkRuns) -> list[MethodRuns]:
    """The methods that end near the best one, unless these are all or one only."""
    means = final_means(runs)
    close = [name for name, mean in means.items() if mean >= max(means.values()) - CLOSE]
    chosen = [method for method in runs.methods if method.name in close]
    return chosen if 1 < len(chosen) < len(runs.methods) else []


def _left_out(runs: BenchmarkRuns, close: Sequence[MethodRuns]) -> str:
    """Which methods the second panel does not show."""
    lower = ", ".join(method.name for method in runs.methods if method not in close)
    return f". The lower panel leaves out {lower}" if close else ""


def _draw_curve(axes: Any, method: MethodRuns, style: Mapping[str, Any] | None, part: str) -> None:
    """The curve of a method as a part of the figure with this id; without a style a thin gray one."""
    summaries = method.accuracies_after_task()
    known = [(task, one) for task, one in enumerate(summaries, start=1) if one is not None]
    tasks, means = [task for task, _ in known], [one.mean for _, one in known]
    if style is None:
        marker = "o" if len(tasks) == 1 else None  # a single point is no line
        axes.plot(tasks, means, linewidth=1.2, markersize=4, marker=marker, gid=part, zorder=1, **GRAY)
        return
    axes.plot(tasks, means, label=method.name, linewidth=1.5, markersize=5, gid=part, **style)
    spread = [(task, one.mean, one.sd) for task, one in known if one.sd is not None]
    if len(spread) > 1:
        low = [max(mean - sd, 0.0) for _, mean, sd in spread]
        high = [min(mean + sd, 100.0) for _, mean, sd in spread]
        axes.fill_between(
            [task for task, *_ in spread], low, high, color=style["color"], alpha=0.15, linewidth=0
        )


def _mean_accuracies(method: MethodRuns) -> NDArray[np.float64]:
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
            axes.text(on, after, f"{value:.0f}", ha="center", va="center", fontsize=8, color=color)


def _width(points: float) -> str:
    """The letters of 8 points, which are the smallest, are at least 11 pixels high, which is 8.25 points."""
    return f' style="min-width: {1.05 * points:.0f}pt; max-width: {1.2 * points:.0f}pt"'


def _mean_curves(rounds: Sequence[MutualInformation]) -> tuple[Sequence[int], list[float], list[float]]:
    """Means over rounds; a round that ended early keeps its last value."""
    longest = max(rounds, key=lambda one: len(one.steps))
    moments = range(len(longest.steps))
    return (
        longest.steps,
        [fmean(one.curve[min(moment, len(one.curve) - 1)] for one in rounds) for moment in moments],
        [
            fmean(one.fitted_curve[min(moment, len(one.fitted_curve) - 1)] for one in rounds)
            for moment in moments
        ],
    )


def _mean_values(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Index by index, as far as all rounds go and values are above rounding."""
    means = [fmean(values) for values in zip(*rounds, strict=False)]
    return [value for value in means if value > 1e-9 * means[0]]


def _mean_probes(matrices: Sequence[ProbeMatrix]) -> NDArray[np.float64]:
    """In percent, NaN where nothing was probed; only rounds with all tasks count."""
    tasks = max(map(len, matrices))
    values = np.array([matrix for matrix in matrices if len(matrix) == tasks], dtype=np.float64)
    known = ~np.isnan(values).all(axis=0)
    means = np.full(values.shape[1:], np.nan)
    means[known] = 100 * np.nanmean(values[:, known], axis=0)
    return means


def _draw_line(
    axes: Any,
    across: Sequence[int],
    values: Sequence[float],
    row: str,
    styles: Mapping[str, Mapping[str, Any]],
) -> None:
    """A line with a few markers, at other points of each line: lines on top of each other still show."""
    every = max(len(styles), len(across) // MARKS)
    start = every * list(styles).index(row) // len(styles)
    axes.plot(across, values, label=row, linewidth=1.4, markersize=5, markevery=(start, every), **styles[row])


def _number_tasks(axes: Any, *, most: int = 10, fewest: int = 2) -> None:
    """Set so many ticks on the horizontal axis, at whole numbers only, for it counts tasks."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(most, integer=True, min_n_ticks=fewest))


@contextmanager
def _canvas(
    width: float, height: float, *, layout: Literal["constrained"] | None = "constrained"
) -> Iterator["Figure"]:
    """An empty figure of so many inches, drawn on as all figures of a report are."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(LOOK), warnings.catch_warnings():
        # the browser has a font for letters that this one lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield Figure(figsize=(width, height), layout=layout)


def _render(
    figure: "Figure", name: str, description: str, named: Mapping[str, str] = MappingProxyType({})
) -> Drawing:
    """The figure in both formats; parts with these ids get names, shown when they are pointed at."""
    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Title": description})
    figure.savefig(png, format="png", dpi=200, metadata={"Software": None})
    text = svg.getvalue()
    for part, shown in named.items():
        opening = f'<g id="{part}">'
        text = text.replace(opening, f"{opening}<title>{escape(shown)}</title>", 1)
    return Drawing(file_name(name), description, text, png.getvalue())
