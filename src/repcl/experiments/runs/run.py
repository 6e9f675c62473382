"""One run: a method learns a stream task by task, is tested after each, and can be stopped at any moment."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from datetime import datetime, timezone
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from repcl.data import TaskStream, round_seed
from repcl.errors import ProcessesDisagree, ResultMismatch
from repcl.evaluation import TestedExample, score_predictions
from repcl.experiments.representations.capture import Capture
from repcl.experiments.runs.companions import (
    Companion,
    answers,
    check_parts,
    companions,
    kept_bytes,
    shared_settings,
    start_over,
)
from repcl.experiments.runs.observers import (
    LossRecord,
    Note,
    Reporter,
    RunObserver,
    RunObservers,
    StageClock,
    Tell,
)
from repcl.experiments.runs.pool import torch_threads
from repcl.experiments.runs.result import (
    DataSummary,
    MemorySummary,
    Result,
    Seconds,
    installed_versions,
    processor_name,
)
from repcl.experiments.runs.spec import ResolvedRun, RunOptions, RunSpec
from repcl.experiments.runs.store import PREDICTIONS, REPRESENTATIONS, Progress, is_folder
from repcl.experiments.runs.tracking import tracked
from repcl.experiments.runs.wrong_texts import find_wrong_texts
from repcl.methods import Method, build_method
from repcl.model import ALONE, Encoder, Processes
from repcl.training import Stage

Noting = Callable[[str], None]


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
    save_representations: bool = False,
    observer: RunObserver | None = None,
    report_to: Sequence[str] = (),
    command: str | None = None,
    processes: Processes = ALONE,
    with_parts: bool = False,
) -> Result:
    """Let a method learn a stream and measure it after every task.

    Args:
        method: a name in `METHODS`, with `@variant` if wanted.
        stream: the round to learn; its seed decides every random draw.
        encoder: a name, folder, Hugging Face id or a ready encoder; the preset's if not given.
        preset: where settings come from.
        settings: what to change about them.
        out: folder for results; a run that was stopped resumes. Nothing is written without.
        fresh: start over even if there is something to resume.
        device: the best one present if not given.
        threads: of torch; one gives the same bits everywhere.
        accumulation_steps: parts in which a batch is encoded, one after another, where memory is short; the
            update is that of the whole batch. As launched if not given, else one.
        save_representations: for `repcl analyze`.
        observer: hears about progress.
        report_to: names in `TRACKERS`, which hear about progress too; they need `out`.
        command: what the user typed, for the record.
        processes: those that make the run together.
        with_parts: for a duet, also write the rows that come out of its training: the trained method's, and
            that of the duet of the other track.
    """
    options = RunOptions(
        encoder=encoder,
        preset=preset,
        settings=settings or {},
        out=None if out is None else Path(out),
        fresh=fresh,
        save_representations=save_representations,
        device=device,
        threads=threads,
        report_to=tuple(report_to),
        command=command,
        processes=replace(processes, chunks=accumulation_steps or processes.chunks),
        with_parts=with_parts,
    )
    return make_run(RunSpec(method, stream, options).resolve(), observer=observer)


def make_run(run: ResolvedRun, tell: Tell | None = None, *, observer: RunObserver | None = None) -> Result:
    """Make a run, or resume it; one that is finished already gives its result.

    Args:
        run: with all its settings settled.
        tell: is told about progress, in events that can travel to another process.
        observer: hears about progress.
    """
    reporter = None if tell is None else Reporter(tell)
    with torch_threads(run.options.threads), _locked(run, tell):
        finished = agreed_result(run)
        check_parts(run)
        if finished is not None:
            return finished
        others = companions(run)
        learner, progress = _first_or_next_task(run, others)
        with tracked(
            run.options.report_to if run.options.processes.is_first else (),
            run.folder.tracking if run.folder is not None else Path(),
            run.title,
            {"benchmark": run.benchmark, **_flat(run)},
            progress.steps,
        ) as trackers:
            observers = [one for one in (reporter, observer, *trackers) if one]
            _learn_stream(run, learner, progress, observers, others)
        note = _noting(tell)
        held = [other for other in others if not _finish_beside(other, learner, progress, note)]
        if not held:
            return _finish(run, learner, progress)
        if run.folder is not None:  # while we wait we may be stopped
            run.folder.save_checkpoint(learner, run.plan.method, progress)
    # Other processes make these rows and may wait for this run, so its lock is let go while we wait for them.
    # Its own result comes last: a finished run then has all its rows, even if another process was killed.
    for other in held:
        _finish_beside(other, learner, progress, note, is_waiting=True)
    with _locked(run, tell):
        meanwhile = run.folder.earlier(run.fingerprint) if run.folder is not None else None
        return meanwhile or _finish(run, learner, progress)


def _finish_beside(
    other: Companion, learner: Method, progress: Progress, note: Noting, *, is_waiting: bool = False
) -> bool:
    """Write a row that came out of a run, unless it is there by now; False if another process is making it.

    Args:
        other: the row.
        learner: what was trained.
        progress: of the run.
        note: is told what hinders it.
        is_waiting: whether to wait for the other process.
    """
    folder = other.run.folder
    if folder is None or not other.run.options.processes.is_first:
        return True
    with folder.lock(waiting=note if is_waiting else None) as is_ours:
        if is_ours and other.is_wanted(note):
            _finish(other.run, learner, other.progress(progress))
    return is_ours


def _finish(run: ResolvedRun, learner: Method, progress: Progress) -> Result:
    """The result of a run, written where it keeps its files."""
    tested = tested_examples(run.stream, progress)
    result = summarize_run(run, learner, progress, tested)
    if run.folder is not None and run.options.processes.is_first:
        run.folder.finish(result, tested, find_wrong_texts(run.stream, tested))
    return result


def _locked(run: ResolvedRun, tell: Tell | None) -> AbstractContextManager[bool | None]:
    """The lock of the run's folder, held by the first process; a run without a folder needs none."""
    if run.folder is None or not run.options.processes.is_first:
        return nullcontext()
    return run.folder.lock(waiting=_noting(tell))


def _noting(tell: Tell | None) -> Noting:
    """What passes a sentence on as a note."""
    return lambda text: tell(Note(text)) if tell is not None else None


def agreed_result(run: ResolvedRun) -> Result | None:
    """The result of an earlier run, if there is one; all processes must see the same of it."""
    processes, folder = run.options.processes, run.folder
    if folder is not None and run.options.fresh and processes.is_first:
        start_over(run)
    if not processes.is_equal_everywhere(run.fingerprint):
        raise ProcessesDisagree(
            "Expected the same data, settings and version of repcl for every process, found others on "
            "different machines; make them equal."
        )
    finished, reached = run.finished, None
    if folder is not None and finished is None:
        finished, reached = folder.earlier(run.fingerprint), folder.progress()
    if not processes.is_equal_everywhere((finished is not None, len(reached.predictions) if reached else 0)):
        raise ProcessesDisagree(
            f"Expected {folder and folder.path} to be one folder that all processes share, found a run that "
            "only some of them see; give --out a folder that every machine has."
        )
    return finished


def check_agreement(learner: Method, predicted: Sequence[str | None]) -> None:
    """Refuse processes that chose other exemplars: their batches would not belong together."""
    found = repr(([example.text for example in learner.memory], predicted)).encode()
    if not learner.processes.is_equal_everywhere(hashlib.sha256(found).digest()):
        raise ProcessesDisagree(
            "Expected equal memories and predictions in all processes, found different ones, as when "
            "processors of different kinds round differently; use machines of one kind."
        )


def check_progress(run: ResolvedRun, progress: Progress, path: Path) -> None:
    """Refuse measurements that cannot be of this run, before they become part of its result."""
    tasks, known = run.stream.tasks, {None, *run.stream.classes}
    wanted = list(accumulate(len(task.test) for task in tasks))[: len(progress.predictions)]
    if (
        [len(after) for after in progress.predictions] != wanted
        or len(progress.seconds) != len(wanted)
        or not all(known.issuperset(after) for after in progress.predictions)
    ):
        raise ResultMismatch(
            f"Expected a prediction for each test text of the tasks learned in the checkpoint of {path}, "
            "found others: it is damaged; use --fresh to run it again."
        )
    if progress.saves_representations and not is_folder(path / REPRESENTATIONS):
        raise ResultMismatch(
            f"Expected the representations that the run has saved in {path / REPRESENTATIONS}, found none: "
            "use --fresh to run it again."
        )


def tested_examples(stream: TaskStream, progress: Progress) -> list[TestedExample]:
    """Each test example with its predictions after its own task and every later one."""
    tested, index = [], 0
    for number, task in enumerate(stream.tasks):
        for position, example in enumerate(task.test):
            predicted = tuple(after[index] for after in progress.predictions[number:])
            tested.append(TestedExample(f"{number}-{position}", number, example.label, predicted))
            index += 1
    return tested


def summarize_run(
    run: ResolvedRun, learner: Method, progress: Progress, tested: Sequence[TestedExample]
) -> Result:
    """The result of a run that has learned its last task."""
    stream, plan, options = run.stream, run.plan, run.options
    scores = score_predictions(tested, len(stream.tasks))
    provenance = stream.provenance
    capture = _capture(run, progress)
    return Result(
        method=plan.method,
        variant=plan.variant,
        benchmark=stream.name,
        encoder=plan.encoder,
        round=plan.round,
        preset=plan.preset,
        settings=dict(plan.settings),
        fingerprint=run.fingerprint,
        command=options.command,
        versions=installed_versions(),
        threads=options.threads,
        processor=processor_name(),
        processes=options.processes.number,
        precision=options.processes.precision,
        finished=datetime.now(timezone.utc).replace(microsecond=0),
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
        seconds=_seconds(progress),
        memory=MemorySummary(
            exemplars_per_class=learner.memory.counts(),
            text_bytes=learner.memory.text_bytes(),
            statistics_bytes=kept_bytes(run, learner),
        ),
        representations=capture.summary() if capture is not None and options.processes.is_first else None,
    )


def _first_or_next_task(run: ResolvedRun, others: Sequence[Companion]) -> tuple[Method, Progress]:
    """The learner as its last checkpoint left it, or a new one."""
    options, plan = run.options, run.plan
    encoder = options.encoder or plan.encoder
    loaded = (
        run.folder.load_checkpoint(encoder, options.device, options.processes)
        if run.folder is not None
        else None
    )
    if loaded is not None and run.folder is not None:
        check_progress(run, loaded[1], run.folder.path)
        return loaded
    learner = build_method(
        plan.method,
        run.stream.kind,
        encoder=encoder,
        settings=shared_settings(run, others),
        seed=round_seed(plan.round),
        expected_classes=len(run.stream.classes),
        device=options.device,
        processes=options.processes,
    )
    return learner, Progress(run.fingerprint, saves_representations=options.save_representations)


def _learn_stream(
    run: ResolvedRun,
    learner: Method,
    progress: Progress,
    observers: Sequence[RunObserver],
    others: Sequence[Companion],
) -> None:
    tasks, capture = run.stream.tasks, _capture(run, progress)
    clock, record = StageClock(), LossRecord()
    learner.observer = told = RunObservers([clock, record, *observers])
    if capture is not None and not progress.predictions:
        capture.before_tasks(learner)
    for number in range(len(progress.predictions), len(tasks)):
        told.task_begins(number, len(tasks))
        read = learner.embeddings_read
        learner.learn(tasks[number], more_follow=number + 1 < len(tasks))
        seen = [example for task in tasks[: number + 1] for example in task.test]
        with told.stage(Stage.EVALUATION):
            predicted: list[str | None] = [None] * len(seen)
            if learner.can_predict:
                found = answers(run, learner, others, seen)
                predicted = [*found.pop(run.plan.row)]
                for row, after in found.items():
                    progress.others.setdefault(row, []).append([*after])
        if capture is not None:
            with told.stage(Stage.KEEPING):
                capture.after_task(learner, record.losses)
        check_agreement(learner, predicted)
        progress.predictions.append(predicted)
        progress.seconds.append(clock.seconds)
        progress.processor_seconds.append(clock.processor_seconds)
        progress.embeddings_read += learner.embeddings_read - read
        progress.steps += clock.steps
        correct = [guess == example.label for guess, example in zip(predicted, seen, strict=True)]
        told.task_ends(number, sum(correct) / len(seen) if seen and learner.can_predict else None)
        if run.folder is not None and number + 1 < len(tasks) and run.options.processes.is_first:
            run.folder.save_checkpoint(learner, run.plan.method, progress)


def _seconds(progress: Progress) -> Seconds:
    """The time of all tasks; that of the processor only where it was measured from the first task on."""
    is_whole = len(progress.processor_seconds) == len(progress.seconds)
    processor = progress.processor_seconds if is_whole else []
    return Seconds(
        tasks=progress.seconds,
        all=sum(spent for task in progress.seconds for spent in task.values()),
        processor_tasks=processor,
        processor_all=sum(spent for task in processor for spent in task.values()) if is_whole else None,
        embeddings_read=progress.embeddings_read,
    )


def _capture(run: ResolvedRun, progress: Progress) -> Capture | None:
    """What saves representations, if the run has saved them from its first task on."""
    if run.folder is None or not progress.saves_representations:
        return None
    return Capture(run.stream, run.folder.representations, run.options.processes)


def _flat(run: ResolvedRun) -> dict[str, Any]:
    """The plan with its settings as entries of their own."""
    values = asdict(run.plan)
    settings: dict[str, Any] = values.pop("settings")
    return values | settings
