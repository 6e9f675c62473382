"""What is drawn below the tables of mutual information: fitting curves, spectra, probes of future tasks."""

from collections.abc import Callable, Sequence

from repcl.experiments.reporting.analysis_figures import draw_fitting, draw_probes, draw_spectra
from repcl.experiments.reporting.information_cells import (
    about_inputs,
    about_same_class,
    analyzed_rounds,
    known_rounds,
)
from repcl.experiments.reporting.runs import BenchmarkRuns
from repcl.experiments.reporting.section import Folded, Grid, Part

FigureMaker = Callable[[Sequence[BenchmarkRuns], Sequence[str]], list[Part]]
PROBE_SHOTS = 5


def no_figures(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str]) -> list[Part]:  # noqa: ARG001
    """Nothing."""
    return []


def bias_figures(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str]) -> list[Part]:
    """Probes of future tasks, for every benchmark."""
    return [part for runs in benchmarks for part in _bias_parts(runs, rows)]


def representation_figures(benchmarks: Sequence[BenchmarkRuns], rows: Sequence[str]) -> list[Part]:
    """Fitting curves and spectra, for every benchmark."""
    return [part for runs in benchmarks for part in _representation_parts(runs, rows)]


def _representation_parts(runs: BenchmarkRuns, rows: Sequence[str]) -> list[Part]:
    """Fitting curves of both estimates and the spectra of the first task."""
    known = {name: found for name in rows if (found := known_rounds(runs, name))}
    is_held_out = any(one.settings.is_held_out for name in known for one in analyzed_rounds(runs, name))
    parts: list[Part] = []
    for file, title, quantity in (
        ("same-class", "I(Z1;Z1+)", about_same_class),
        ("inputs", "I(X1;Z1)", about_inputs),
    ):
        estimates = {
            name: estimated
            for name, rounds in known.items()
            if (estimated := [one for one in map(quantity, rounds) if one.value is not None])
        }
        if estimates:
            name, about = f"{runs.name}-fitting-{file}", f"{runs.name}: {title}"
            parts.append(draw_fitting(name, about, estimates, is_held_out=is_held_out))
    if known:
        spectra = {name: [one.first for one in rounds] for name, rounds in known.items()}
        untouched = [one.untouched for one in next(iter(known.values()))]
        parts.append(draw_spectra(f"{runs.name}-spectra", {"untouched": untouched, **spectra}))
    return parts


def _bias_parts(runs: BenchmarkRuns, rows: Sequence[str]) -> list[Part]:
    """Probes of future tasks: the direct test of representation bias."""
    matrices = {
        name: [one.probes[PROBE_SHOTS] for one in known if one.movements]
        for name in rows
        if (known := known_rounds(runs, name))
    }
    drawings = [
        draw_probes(f"{runs.name}-{name}-probes", name, found, shots=PROBE_SHOTS)
        for name, found in matrices.items()
        if found
    ]
    if not drawings:
        return []
    return [Folded(f"{runs.name}: probes of tasks that were not learned yet", [Grid(drawings)])]
