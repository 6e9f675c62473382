"""Many analyses on one machine: a process per core, one thread each; a failed one stops no other."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from repcl.analysis.estimator_settings import EstimatorSettings
from repcl.errors import MissingData
from repcl.experiments.failure import Failure, failure_of
from repcl.experiments.result import RESULT, Result
from repcl.experiments.run_analysis import ANALYSIS, RunAnalysis, analyze_run
from repcl.experiments.threads import one_thread_each
from repcl.presets import PRESETS, load_preset


@dataclass(frozen=True)
class AnalysisRequest:
    """One run to be analyzed, and the file in its folder that the answers go to."""

    folder: Path
    settings: EstimatorSettings
    fresh: bool = False
    file: str = ANALYSIS

    def perform(self) -> RunAnalysis:
        """Analyze the run here."""
        return analyze_run(self.folder, self.settings, fresh=self.fresh, file=self.file)

    @property
    def title(self) -> str:
        """How the analysis is called in overviews."""
        return f"analysis of {self.folder}"

    @property
    def error_log(self) -> Path:
        """Where its traceback is kept if it fails."""
        return self.folder / "analysis.error.txt"


def run_folders(path: Path) -> list[Path]:
    """The finished runs of a folder: of all benchmarks, of a benchmark, of a method, or just itself."""
    levels = ("*/*/round-*/", "*/round-*/", "round-*/", "")
    found = {file.parent for level in levels for file in path.glob(f"{level}{RESULT}")}
    if not found:
        raise MissingData(f"No finished run in {path}; `repcl bench --keep representations ...` makes some.")
    return sorted(found)


def estimator_of(result: Result) -> EstimatorSettings:
    """The estimator of the preset that a run was made with; a user's own file may be gone."""
    is_there = result.preset in PRESETS or Path(result.preset).is_file()
    return load_preset(result.preset).estimator if is_there else EstimatorSettings()


def analyze_all(
    requests: Sequence[AnalysisRequest], *, workers: int
) -> Iterator[tuple[AnalysisRequest, RunAnalysis | Failure]]:
    """Each run with its analysis or why there is none, as they are ready; here if one worker is enough."""
    if workers <= 1 or len(requests) <= 1:
        for request in requests:
            yield request, _attempt(request, request.perform)
        return
    with (
        one_thread_each(),
        ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        waiting: dict[Future[RunAnalysis], AnalysisRequest] = {
            pool.submit(AnalysisRequest.perform, request): request for request in requests
        }
        for future in as_completed(waiting):
            yield waiting[future], _attempt(waiting[future], future.result)


def _attempt(request: AnalysisRequest, perform: Callable[[], RunAnalysis]) -> RunAnalysis | Failure:
    try:
        return perform()
    except Exception as error:  # it belongs to this analysis alone; the end of the command shows it
        return failure_of(request, error)
