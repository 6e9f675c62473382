"""The figures of an analysis: fitting curves, spectra, probes of future tasks, drift of old classes."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from repcl.analysis.mutual_information import MutualInformation
from repcl.analysis.spectrum import Spectrum
from repcl.analysis.transfer import ProbeMatrix
from repcl.experiments.reporting.figures import Drawing, draw_cells, line_styles, look, render
from repcl.experiments.representations.analysis import Representations, RunAnalysis

MARKS = 8  # markers on a line
GRID: Any = {"color": "#dddddd", "linewidth": 0.6}

ByRow = Mapping[str, Sequence[Representations]]
"""The analyzed rounds of each row."""


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
    estimates: Mapping[str, Sequence[MutualInformation]],
    *,
    is_held_out: bool = True,
) -> Drawing:
    """What an estimate would be after so many steps, and in grey what the texts fitted on would say."""
    styles = line_styles(list(estimates))
    with look():
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
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
            description += "; in grey, with the same dashes, on the texts fitted on"
        return render(figure, name, description)


def draw_spectra(name: str, spectra: Mapping[str, Sequence[Spectrum]]) -> Drawing:
    """The largest eigenvalues: as they are, and with every representation scaled to length 1."""
    styles = line_styles(list(spectra))
    with look():
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        panels = figure.subplots(1, 2)
        for axes, kind, title in zip(
            panels, ("raw", "unit"), ("as they are (scale counts)", "of rows of length 1"), strict=True
        ):
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel("rank")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())  # its own writes formulas, which are off here
            axes.grid(axis="y", **GRID)
            for row, rounds in spectra.items():
                values = _mean_values([getattr(one, kind) for one in rounds])
                _draw_line(axes, range(1, len(values) + 1), values, row, styles)
        panels[0].set_ylabel("eigenvalue of the covariance")
        figure.legend(
            *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=4
        )
        description = "Largest eigenvalues of the covariance of the first task's test representations"
        return render(figure, name, description)


def draw_probes(name: str, row: str, matrices: Sequence[ProbeMatrix], *, shots: int) -> Drawing:
    """Accuracy of probes on tasks that were not learned yet, row by row from the untouched encoder on."""
    means, texts = _mean_matrix(matrices), f"{shots} text{'s' * (shots > 1)} a class"
    size = 0.36 * len(means)
    with look():
        figure = Figure(figsize=(size + 1.6, size + 1.1), layout="constrained")
        axes = figure.add_subplot(xlabel="probe on task", ylabel="tasks learned")
        axes.set_title(f"{row}, {texts}", fontsize=9, loc="left")
        draw_cells(axes, means, rows=["none", *(str(task) for task in range(1, len(means)))])
        description = (
            f"{row}: accuracy in percent of a probe with {texts} on tasks not learned yet; "
            "a column that gets darker downwards is representation bias"
        )
        return render(figure, name, description)


def draw_drift(name: str, rows: ByRow) -> Drawing:
    """How far the centroids of old classes turned while each task was learned."""
    styles = line_styles(list(rows))
    with look():
        figure = Figure(figsize=(6.4, 3.3), layout="constrained")
        axes = figure.add_subplot(xlabel="task learned", ylabel="1 − cosine of old centroids")
        for row, rounds in rows.items():
            by_task: dict[int, list[float]] = {}
            for one in rounds:
                for movement in one.movements:
                    by_task.setdefault(movement.task + 1, []).append(movement.turned)
            means = [fmean(values) for values in by_task.values()]
            axes.plot([*by_task], means, label=row, linewidth=1.5, markersize=5, **styles[row])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", **GRID)
        figure.legend(loc="outside lower center", ncols=4, handlelength=4)
        return render(figure, name, "How far the centroids of old classes turned while a task was learned")


def _mean_curves(rounds: Sequence[MutualInformation]) -> tuple[Sequence[int], list[float], list[float]]:
    """Means over rounds; a round that ended early keeps its last value."""
    longest = max(rounds, key=lambda one: len(one.steps))
    looks = range(len(longest.steps))
    return (
        longest.steps,
        [fmean(one.curve[min(look_, len(one.curve) - 1)] for one in rounds) for look_ in looks],
        [fmean(one.fitted_curve[min(look_, len(one.fitted_curve) - 1)] for one in rounds) for look_ in looks],
    )


def _mean_values(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Place by place, as far as all rounds go and values are above rounding."""
    means = [fmean(values) for values in zip(*rounds, strict=False)]
    return [value for value in means if value > 1e-9 * means[0]]


def _mean_matrix(matrices: Sequence[ProbeMatrix]) -> Any:
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
    """A line with a few markers, at other places on each line: lines on top of each other still show."""
    every = max(len(styles), len(across) // MARKS)
    start = every * list(styles).index(row) // len(styles)
    axes.plot(across, values, label=row, linewidth=1.4, markersize=5, markevery=(start, every), **styles[row])
