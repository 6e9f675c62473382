"""One run: a method learns a stream task by task, is tested after each, and can be stopped at any moment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from repcl.data import TaskStream, round_seed
from repcl.errors import ResultMismatch
from repcl.evaluation import TestedExample, score_predictions, write_predictions
from repcl.experiments.checkpoint import (
    Progress,
    checkpoint_progress,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from repcl.experiments.clock import StageClock
from repcl.experiments.keeping import Keeper, LossRecord, remove_kept
from repcl.experiments.plan import RunPlan, plan_run
from repcl.experiments.result import (
    PREDICTIONS,
    RESULT,
    DataSummary,
    Keep,
    MemorySummary,
    Result,
    installed_versions,
    read_result,
    write_result,
)
from repcl.experiments.threads import torch_threads
from repcl.methods import Method, build_method
from repcl.model import Encoder
from repcl.training import Observer


class RunObserver(Observer):
    """An observer that also hears about tasks; this one does nothing."""

    def task_begins(self, number: int, tasks: int) -> None:
        """Task `number` (from 0) of `tasks` begins."""

    def task_ends(self, number: int, accuracy: float | None) -> None:
        """The task was learned; `accuracy` is over all classes seen so far."""


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
    keep: Keep = "none",
    observer: RunObserver | None = None,
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
        keep: what is kept in the folder for `repcl analyze`: representations, weights or none.
        observer: hears about progress.
        command: what the user typed, for the record.
    """
    name = encoder.name if isinstance(encoder, Encoder) else encoder
    plan = plan_run(method, stream, encoder=name, preset=preset, settings=settings)
    folder = run_folder(out, stream, plan) if out is not None else None
    if folder is not None:
        if fresh:
            start_over(folder)
        finished = check_earlier(folder, plan.fingerprint(stream), keep)
        if finished is not None:
            return finished
    with torch_threads(threads):
        loaded = load_checkpoint(folder, encoder or plan.encoder, device) if folder is not None else None
        if loaded is None:
            learner = build_method(
                plan.method,
                stream.kind,
                encoder=encoder or plan.encoder,
                settings=plan.settings,
                seed=round_seed(plan.seed),
                expected_classes=len(stream.classes),
                device=device,
            )
            loaded = learner, Progress(plan.fingerprint(stream), keep=keep)
        learner, progress = loaded
        keeper = Keeper(progress.keep, stream, folder) if folder is not None else None
        _learn_stream(learner, stream, plan, progress, folder, observer or RunObserver(), keeper)
    result = _summarise(learner, stream, plan, progress, threads=threads, command=command)
    if folder is not None and keeper is not None:
        result = result.model_copy(update={"kept": keeper.summary()})
        write_predictions(folder / PREDICTIONS, _tested(stream, progress))
        write_result(result, folder)
        remove_checkpoints(folder)
    return result


def run_folder(out: str | Path, stream: TaskStream, plan: RunPlan) -> Path:
    """Where a run keeps what it has reached."""
    return Path(out) / stream.name / plan.row / f"seed-{plan.seed}"


def start_over(folder: Path) -> None:
    """Forget an earlier run: its checkpoints, its result, what it kept."""
    remove_checkpoints(folder)
    (folder / RESULT).unlink(missing_ok=True)
    remove_kept(folder)


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
        with clock.stage("evaluation"):
            predicted: list[str | None] = [None] * len(seen)
            if learner.can_predict:
                predicted = [*learner.predict(seen)]
        if keeper is not None and keeper.keep != "none":
            with clock.stage("keeping"):
                keeper.after_task(learner, plan.method, record.losses)
        progress.predictions.append(predicted)
        progress.seconds.append(clock.seconds)
        correct = [guess == example.label for guess, example in zip(predicted, seen, strict=True)]
        observer.task_ends(number, sum(correct) / len(seen) if seen and learner.can_predict else None)
        if folder is not None and number + 1 < len(tasks):
            save_checkpoint(folder, learner, plan.method, progress)


def _tested(stream: TaskStream, progress: Progress) -> list[TestedExample]:
    """Each test example with its predictions after its own task and every later one."""
    tested, place = [], 0
    for number, task in enumerate(stream.tasks):
        for position, example in enumerate(task.test):
            predicted = tuple(after[place] for after in progress.predictions[number:])
            tested.append(TestedExample(f"{number}-{position}", number, example.label, predicted))
            place += 1
    return tested


def _summarise(
    learner: Method,
    stream: TaskStream,
    plan: RunPlan,
    progress: Progress,
    *,
    threads: int,
    command: str | None,
) -> Result:
    scores = score_predictions(_tested(stream, progress), len(stream.tasks))
    provenance = stream.provenance
    return Result(
        method=plan.method,
        variant=plan.variant,
        benchmark=stream.name,
        encoder=plan.encoder,
        seed=plan.seed,
        preset=plan.preset,
        settings=dict(plan.settings),
        fingerprint=progress.fingerprint,
        command=command,
        versions=installed_versions(),
        threads=threads,
        data=DataSummary(
            files=dict(provenance.files),
            train=sum(len(task.train) for task in stream.tasks),
            test=sum(len(task.test) for task in stream.tasks),
            classes=len(stream.classes),
            complete=provenance.complete,
            capped=provenance.capped,
            notes=list(provenance.notes),
        ),
        class_order=[list(task.classes) for task in stream.tasks],
        accuracy_matrix=scores.accuracy_matrix.as_lists(),
        accuracy_after_task=list(scores.accuracy_after_task),
        final_accuracy=scores.final_accuracy,
        forgetting_rate=scores.forgetting_rate,
        average_incremental_accuracy=scores.average_incremental_accuracy,
        backward_transfer=scores.backward_transfer,
        forgetting_rate_f1=scores.forgetting_rate_f1,
        predictions=PREDICTIONS,
        seconds={
            "tasks": progress.seconds,
            "all": sum(spent for task in progress.seconds for spent in task.values()),
        },
        memory=MemorySummary(
            exemplars_per_class=learner.memory.counts(),
            text_bytes=learner.memory.text_bytes(),
            statistics_bytes=learner.statistics_bytes(),
        ),
    )
