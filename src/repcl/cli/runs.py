"""The runs of `repcl bench` and `repcl reproduce`: checked before the first starts, made, and summed up."""

import os
from pathlib import Path

from rich.console import Console

from repcl.cli.failures import end_with, forget_failures, list_failures
from repcl.cli.progress import GridProgress
from repcl.cli.tables import print_results
from repcl.errors import InvalidSetting
from repcl.experiments import Result, write_report
from repcl.experiments.cluster.grid import run_on_ray
from repcl.experiments.failure import Failure
from repcl.experiments.grid import run_grid
from repcl.experiments.plan import split_variant
from repcl.experiments.run import check_earlier, run_folder
from repcl.experiments.run_request import RunRequest
from repcl.methods.build import method_class
from repcl.model import check_encoder
from repcl.model.processes import processes


def checked_requests(requests: list[RunRequest], console: Console) -> list[RunRequest]:
    """The requests that can be run; what is wrong with any of them is found before the first starts."""
    _refuse_shared_names(requests)
    possible, told = [], set()
    for request in requests:
        stream = request.load_stream()
        kinds = method_class(split_variant(request.method)[0]).kinds
        if stream.kind not in kinds:
            line = f"Skipped: {request.method} takes {' and '.join(kinds)} input, not {stream.kind}."
        else:
            plan = request.plan(stream)
            check_encoder(plan.encoder)
            if not request.options["fresh"]:
                folder = run_folder(request.options["out"], stream, plan)
                check_earlier(folder, plan.fingerprint(stream), request.options.get("keep", "none"))
            possible.append(request)
            line = ""
        for text in filter(None, (line, *stream.provenance.notes)):
            if text not in told:
                told.add(text)
                console.print(text, style="yellow", highlight=False)
    if not possible:
        raise InvalidSetting("None of the chosen methods takes the input of the chosen benchmarks.")
    return possible


def _refuse_shared_names(requests: list[RunRequest]) -> None:
    """Refuse two files of one name: their runs would have one folder."""
    named: dict[str, str] = {}
    for data in dict.fromkeys(str(request.stream["name"]) for request in requests):
        other = named.setdefault(Path(data).stem, data)
        if other != data:
            raise InvalidSetting(
                f"{other} and {data} have one name, so that their runs would share a folder: rename one file."
            )


def run_requests(
    requests: list[RunRequest], console: Console, *, workers: int | None, ray: str | None
) -> list[Result | Failure]:
    """Make the runs with a live overview, on this machine or on the Ray cluster named."""
    with GridProgress([request.title for request in requests], console) as progress:
        if ray is not None:
            outcomes = run_on_ray(requests, address=ray, workers=workers, listener=progress.hear)
        else:
            outcomes = run_grid(requests, workers=workers or os.cpu_count() or 1, listener=progress.hear)
    forget_failures(zip(requests, outcomes, strict=True))
    return outcomes


def finish(outcomes: list[Result | Failure], out: Path, console: Console) -> None:
    """The table of what was reached, the report, and what failed; one process is enough for it."""
    if not processes().is_first:
        return
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    print_results(results, console)
    try:
        if results:
            console.print(f"Report: {write_report(out)}", highlight=False, soft_wrap=True)
    finally:  # what hindered an analysis may hinder the report too
        list_failures(failures, console)
    end_with(failures)
