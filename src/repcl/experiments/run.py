"""One run: a method learns a stream task by task, is tested after each, and can be stopped at any moment."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from repcl.data import TaskStream, round_seed
from repcl.errors import ProcessesDisagree, ResultMismatch
from repcl.evaluation import write_predictions
from repcl.experiments.checkpoint import (
    Progress,
    checkpoint_progress,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from repcl.experiments.clock import StageClock
from repcl.experiments.keeping import Keeper, LossRecord, remove_kept
from repcl.experiments.observer import RunObserver
from repcl.experiments.plan import RunPlan, plan_run
from repcl.experiments.result import PREDICTIONS, RESULT, Keep, Result, read_result, write_result
from repcl.experiments.run_analysis import remove_analysis
from repcl.experiments.summary import summarize_run, tested_examples
from repcl.experiments.threads import torch_threads
from repcl.experiments.tracking import check_trackers, remove_tracking, tracked
from repcl.methods import Method, build_method
from repcl.model import Encoder
from repcl.model.processes import processes, working_as
from repcl.training import Stage


def run_experiment(  # noqa: PLR0913 (every option of a run, each with a default)
    method: str,
    stream: TaskStream,
    *,
    encoder: str | Encoder | None = None,
    preset: str = "cpu",
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    device: torch.device | str | None = None,
    threads: int = 1,
    accumulation_steps: int | None = None,
    keep: Keep = "none",
    observer: RunObserver | None = None,
    report_to: Sequence[str] = (),
    command: str | None = None,
) -> Result:
    """Let a method learn a stream and measure it after every task.

    Args:
        method: a name in `METHODS`, with `@variant` if wanted.
        stream: the round to learn; its seed decides every random draw.
        encoder: a name, folder, Hugging Face id or a ready encoder; the preset's if not given.
        preset: where settings come from.
        settings: what to change about them.
        out: folder for results; a run that was stopped goes on where it was. Nothing is written without.
        fresh: start over even if there is something to go on with.
        device: the best one present if not given.
        threads: of torch; one gives the same bits everywhere.
        accumulation_steps: parts in which a batch is encoded, one after another, for want of memory; the
            update is that of the whole batch. As launched if not given, else one.
        keep: what is kept in the folder for `repcl analyze`: representations, weights or none.
        observer: hears about progress.
        report_to: names in `TRACKERS`, which hear about progress too; they need `out`.
        command: what the user typed, for the record.
    """
    name = encoder.name if isinstance(encoder, Encoder) else encoder
    plan = plan_run(method, stream, encoder=name, preset=preset, settings=settings)
    folder = run_folder(out, stream, plan) if out is not None else None
    check_trackers(report_to, folder)
    finished = _earlier_result(folder, plan.fingerprint(stream), keep, fresh=fresh)
    if finished is not None:
        return finished
    with torch_threads(threads), _accumulating(accumulation_steps):
        loaded = load_checkpoint(folder, encoder or plan.encoder, device) if folder is not None else None
        if loaded is None:
            learner = build_method(
                plan.method,
                stream.kind,
                encoder=encoder or plan.encoder,
                settings=plan.settings,
                seed=round_seed(plan.round),
                expected_classes=len(stream.classes),
                device=device,
                processes=processes(),
            )
            loaded = learner, Progress(plan.fingerprint(stream), keep=keep)
        learner, progress = loaded
        keeper = Keeper(progress.keep, stream, folder) if folder is not None else None
        told = observer or RunObserver()
        with tracked(report_to, told, plan, folder, stream.name, progress.steps) as told:
            _learn_stream(learner, stream, plan, progress, folder, told, keeper)
        result = summarize_run(learner, stream, plan, progress, threads=threads, command=command)
    if folder is not None and keeper is not None and processes().is_first:
        result = result.model_copy(update={"kept": keeper.summary()})
        write_predictions(folder / PREDICTIONS, tested_examples(stream, progress))
        write_result(result, folder)
        remove_checkpoints(folder)
    return result


def run_folder(out: str | Path, stream: TaskStream, plan: RunPlan) -> Path:
    """Where a run keeps what it has reached."""
    return Path(out) / stream.name / plan.row / f"round-{plan.round}"


def start_over(folder: Path) -> None:
    """Forget an earlier run: its checkpoints, its result, its analysis, what it kept and reported."""
    remove_checkpoints(folder)
    (folder / RESULT).unlink(missing_ok=True)
    remove_analysis(folder)
    remove_kept(folder)
    remove_tracking(folder)


def check_earlier(folder: Path, fingerprint: str, keep: Keep = "none") -> Result | None:
    """The result of an earlier run, if there is one; other settings, data or things kept are refused."""
    result = read_result(folder / RESULT) if (folder / RESULT).exists() else None
    found = result or checkpoint_progress(folder)
    if found is not None and found.fingerprint != fingerprint:
        raise ResultMismatch(
            f"{folder} holds a run with other settings or other data; use --fresh or another --out."
        )
    if found is not None and found.keep != keep != "none":
        raise ResultMismatch(
            f"{folder} holds a run made with --keep {found.keep}, not {keep}; use --fresh or another --out."
        )
    return result


def _earlier_result(folder: Path | None, fingerprint: str, keep: Keep, *, fresh: bool) -> Result | None:
    """The result of an earlier run, if there is one; all processes must see the same of it."""
    if folder is not None and fresh and processes().is_first:
        start_over(folder)
    if not processes().is_equal_everywhere(fingerprint):
        raise ProcessesDisagree(
            "Expected the same data, settings and version of repcl for every process, found others on "
            "different machines; make them equal."
        )
    finished = check_earlier(folder, fingerprint, keep) if folder is not None else None
    reached = checkpoint_progress(folder) if folder is not None else None
    if not processes().is_equal_everywhere(
        (finished is not None, len(reached.predictions) if reached else 0)
    ):
        raise ProcessesDisagree(
            f"Expected {folder} to be one folder that all processes share, found a run that only some of "
            "them see; give --out a folder that every machine has."
        )
    return finished


@contextmanager
def _accumulating(steps: int | None) -> Iterator[None]:
    """Encode batches in so many parts here."""
    with working_as(replace(processes(), chunks=steps or processes().chunks)):
        yield


def _learn_stream(
    learner: Method,
    stream: TaskStream,
    plan: RunPlan,
    progress: Progress,
    folder: Path | None,
    observer: RunObserver,
    keeper: Keeper | None,
) -> None:
    tasks = stream.tasks
    if keeper is not None and not progress.predictions:
        keeper.before_tasks(learner)
    for number in range(len(progress.predictions), len(tasks)):
        clock = StageClock(observer)
        learner.observer = record = LossRecord(clock)
        observer.task_begins(number, len(tasks))
        learner.learn(tasks[number], more_follow=number + 1 < len(tasks))
        seen = [example for task in tasks[: number + 1] for example in task.test]
        with clock.stage(Stage.EVALUATION):
            predicted: list[str | None] = [None] * len(seen)
            if learner.can_predict:
                predicted = [*learner.predict(seen)]
        if keeper is not None and keeper.keep != "none":
            with clock.stage(Stage.KEEPING):
                keeper.after_task(learner, plan.method, record.losses)
        _check_agreement(learner, predicted)
        progress.predictions.append(predicted)
        progress.seconds.append(clock.seconds)
        progress.steps += clock.steps
        correct = [guess == example.label for guess, example in zip(predicted, seen, strict=True)]
        observer.task_ends(number, sum(correct) / len(seen) if seen and learner.can_predict else None)
        if folder is not None and number + 1 < len(tasks) and processes().is_first:
            save_checkpoint(folder, learner, plan.method, progress)


def _check_agreement(learner: Method, predicted: Sequence[str | None]) -> None:
    """Processes that chose other exemplars would go on with other batches, and mix what does not belong."""
    found = repr(([example.text for example in learner.memory], predicted)).encode()
    if not processes().is_equal_everywhere(hashlib.sha256(found).digest()):
        raise ProcessesDisagree(
            "Expected equal memories and predictions in all processes, found different ones, as when "
            "processors of different kinds round differently; use machines of one kind."
        )
