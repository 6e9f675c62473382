"""From what a run has measured to its result."""

from repcl.data import TaskStream
from repcl.evaluation import TestedExample, score_predictions
from repcl.experiments.checkpoint import Progress
from repcl.experiments.plan import RunPlan
from repcl.experiments.result import (
    PREDICTIONS,
    DataSummary,
    MemorySummary,
    Result,
    Seconds,
    installed_versions,
)
from repcl.methods import Method
from repcl.model.processes import processes


def tested_examples(stream: TaskStream, progress: Progress) -> list[TestedExample]:
    """Each test example with its predictions after its own task and every later one."""
    tested, place = [], 0
    for number, task in enumerate(stream.tasks):
        for position, example in enumerate(task.test):
            predicted = tuple(after[place] for after in progress.predictions[number:])
            tested.append(TestedExample(f"{number}-{position}", number, example.label, predicted))
            place += 1
    return tested


def summarize_run(
    learner: Method,
    stream: TaskStream,
    plan: RunPlan,
    progress: Progress,
    *,
    threads: int,
    command: str | None,
) -> Result:
    """The result of a run that has learned its last task."""
    scores = score_predictions(tested_examples(stream, progress), len(stream.tasks))
    provenance = stream.provenance
    return Result(
        method=plan.method,
        variant=plan.variant,
        benchmark=stream.name,
        encoder=plan.encoder,
        round=plan.round,
        preset=plan.preset,
        settings=dict(plan.settings),
        fingerprint=progress.fingerprint,
        command=command,
        versions=installed_versions(),
        threads=threads,
        processes=processes().number,
        precision=processes().precision,
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
        seconds=Seconds(
            tasks=progress.seconds,
            all=sum(spent for task in progress.seconds for spent in task.values()),
        ),
        memory=MemorySummary(
            exemplars_per_class=learner.memory.counts(),
            text_bytes=learner.memory.text_bytes(),
            statistics_bytes=learner.statistics_bytes(),
        ),
    )
