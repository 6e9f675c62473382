"""Jobs: one changes the model at a time, the others wait; a refused one waits for a decision."""

import asyncio
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from repcl.classifier.store.files import CannotWrite
from repcl.classifier.store.records import now
from repcl.errors import RepclError
from repcl.serving.bodies import Action, JobBody, JobProblem, Progress, State
from repcl.serving.collecting import Collector
from repcl.serving.journal import MOST_JOBS, JobEntry, Journal
from repcl.serving.model import CurrentModel
from repcl.serving.options import LISTENERS, WAITING_JOBS
from repcl.serving.orders import Learn, Merge, Order, Remove, Rename
from repcl.serving.problems import RETRY_AFTER, Problem
from repcl.serving.process import LearningProcess
from repcl.serving.worker import Advance, AsksToWrite, Assignment, Failed, Finished

FINAL: frozenset[State] = frozenset({"done", "failed", "canceled", "lost", "discarded"})
DECISION_WAIT = 2.0
KEEP_ALIVE_SECONDS = 15.0
STOPPED = JobProblem(title="Stopped", detail="The service was stopped before this job was done.")
OUTDATED = JobProblem(
    title="Outdated", detail="Another revision came into use before this update was accepted."
)
DIED = JobProblem(
    title="Ended",
    detail="The learning process ended before the job was done. The model is as it was: start the job again.",
)

log = logging.getLogger("repcl.serving")


class _Job:
    """A job as the service holds it.

    Attributes:
        body: what everybody may know of it.
        order: what is to be done, with its texts; None once it has run or is over.
        collected: the collected texts that it settles.
        is_unwanted: whether it was canceled.
        is_writing: whether its revision is being written.
    """

    def __init__(self, body: JobBody, order: Order | None = None, collected: tuple[str, ...] = ()) -> None:
        self.body = body
        self.order = order
        self.collected = order.collected if isinstance(order, Learn) else collected
        self.is_unwanted = False
        self.is_writing = False

    def change(self, **values: Any) -> None:
        """Be in another state; whoever has the old one keeps it whole."""
        self.body = self.body.model_copy(update=values)
        if self.body.state not in ("queued", "running"):
            self.order = None  # its texts are needed no longer


class Jobs:
    """All jobs of a service, in the order in which they were given.

    Args:
        current: the revision in use, refreshed when a job has made another one.
        journal: keeps them for the next service; None where nothing may be written.
        collector: lets go of texts that have been learned; None where nothing may be written.
    """

    def __init__(
        self, current: CurrentModel, journal: Journal | None = None, collector: Collector | None = None
    ) -> None:
        self.current = current
        self.journal = journal
        self.collector = collector
        self.process = LearningProcess()
        left = journal.read() if journal else ()
        self._jobs = {entry.job.id: _Job(entry.job, collected=entry.collected) for entry in left}
        self._changing = threading.Condition(threading.RLock())
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Carry out jobs from now on."""
        self._settle_refused()
        with self._changed():
            pass
        self.current.heard.append(self._settle_refused)
        self._thread.start()

    def stop(self) -> None:
        """End the running job, unless it is being written, and all that wait."""
        with self._changed():
            self._is_ending = True
            for job in self._jobs.values():
                if job.body.state == "queued":
                    job.change(state="canceled", problem=STOPPED, finished=now())
                job.is_unwanted = job.is_unwanted or not job.is_writing
            if not any(job.is_writing for job in self._jobs.values()):
                self.process.kill()
            self._changing.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self.process.kill()

    # ---- what requests ask ----------------------------------------------------------------------

    def all(self) -> list[JobBody]:
        """All jobs, the newest first."""
        with self._changing:
            return [job.body for job in reversed(self._jobs.values())]

    def get(self, number: str) -> JobBody:
        """A job."""
        return self._job(number).body

    def counts(self) -> Counter[str]:
        """How many jobs there are of each state."""
        return Counter(job.state for job in self.all())

    def submit(self, order: Order) -> JobBody:
        """Let an order wait for its turn."""
        with self._changed():
            if self._is_ending:
                raise Problem(503, "The service is stopping.", headers=RETRY_AFTER)
            if self.counts()["queued"] >= WAITING_JOBS:
                raise Problem(
                    503,
                    f"{WAITING_JOBS} jobs wait already: try again when one is done.",
                    headers={"Retry-After": "30"},
                )
            body = JobBody(id=uuid.uuid4().hex[:12], action=_action(order), state="queued", created=now())
            self._jobs[body.id] = _Job(body, order)
            self._forget_old()
            self._changing.notify_all()
            return body

    def cancel(self, number: str) -> JobBody:
        """End a job that waits or runs."""
        with self._changed():
            job = self._job(number)
            if job.body.state == "queued":
                job.change(state="canceled", finished=now())
            elif job.body.state == "running" and not job.is_writing:
                job.is_unwanted = True
                self.process.kill()
                job.change(state="canceled", finished=now(), progress=None)
            else:
                what = "being written" if job.is_writing else job.body.state
                raise Problem(409, f"The job is {what}: only one that waits or runs can be canceled.")
            return job.body

    def decide(self, number: str, *, accept: bool) -> JobBody:
        """Use a refused update although the guard advised against it, or delete it."""
        job, folder = self._job(number), self.current.folder
        if job.body.state != "refused" or job.body.revision is None:
            raise Problem(409, f"The job is {job.body.state}: only a refused one waits for a decision.")
        with folder.lock("deciding about an update", wait=DECISION_WAIT):
            self._settle_refused()
            if job.body.state != "refused":
                raise Problem(409, f"The job is {job.body.state} by now.")
            folder.rollback(job.body.revision) if accept else folder.purge([job.body.revision])
        if accept:
            self.current.refresh()
        with self._changed():
            job.change(state="done" if accept else "discarded", finished=now())
        if accept:
            self._let_go(job)
        return job.body

    def events(self, number: str) -> AsyncIterator[str]:
        """A job as server-sent events: as it is, then whenever it changes, until it is over."""
        if len(self._listeners) >= LISTENERS:
            raise Problem(
                503, f"{LISTENERS} listen to jobs already: ask for the job instead.", headers=RETRY_AFTER
            )
        self._job(number)
        return self._tell_changes(number)

    async def _tell_changes(self, number: str) -> AsyncIterator[str]:
        listener = (asyncio.get_running_loop(), asyncio.Event())
        with self._changing:
            self._listeners.add(listener)
        try:
            said = None
            while not self._is_ending:
                listener[1].clear()
                body = self.get(number)
                yield (
                    ": still here\n\n" if body is said else f"event: job\ndata: {body.model_dump_json()}\n\n"
                )
                said = body
                if body.state in FINAL:
                    return
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(listener[1].wait(), KEEP_ALIVE_SECONDS)
        finally:
            with self._changing:
                self._listeners.discard(listener)

    def end_streams(self) -> None:
        """Let nobody wait for events any longer."""
        self._is_ending = True
        self._tell()

    # ---- the thread that carries them out -------------------------------------------------------

    def _run(self) -> None:
        while (following := self._next()) is not None:
            job, order = following
            try:
                self._carry_out(job, order)
            except Exception as error:  # the next job must have its turn
                log.error("job %s: %s", job.body.id, type(error).__name__)
                with self._changed():
                    problem = JobProblem(title="Unforeseen", detail=type(error).__name__)
                    job.change(state="failed", problem=problem, finished=now(), progress=None)

    def _next(self) -> tuple[_Job, Order] | None:
        """The job whose turn it is, and its order, which a canceled job has no longer; None at the end."""
        with self._changing:
            while True:
                if self._is_ending:
                    return None
                for job in self._jobs.values():
                    if job.body.state == "queued" and job.order is not None:
                        with self._changed():
                            job.change(state="running", started=now())
                        return job, job.order
                self._changing.wait()

    def _carry_out(self, job: _Job, order: Order) -> None:
        log.info("job %s (%s) begins", job.body.id, job.body.action)
        clock = _Clock()
        outcome: Finished | Failed | None = None
        assignment = Assignment(self.current.folder.path, order, self.current.device)
        for message in self.process.messages(assignment):
            if job.is_unwanted and not isinstance(message, AsksToWrite):
                self.process.kill()  # it was canceled before its process was there to be killed
            match message:
                case Advance():
                    with self._changed(is_worth_writing=False):
                        job.change(progress=clock.progress(message))
                case AsksToWrite():
                    self.process.allow(self._may_be_written(job))
                case Finished() | Failed():
                    outcome = message
        self._end(job, outcome)
        if job.body.state == "done" and isinstance(order, Remove) and order.purge:
            self._forget_summaries(job)
        log.info("job %s is %s", job.body.id, job.body.state)

    def _may_be_written(self, job: _Job) -> bool:
        with self._changed():
            job.is_writing = not job.is_unwanted
            return job.is_writing

    def _end(self, job: _Job, outcome: Finished | Failed | None) -> None:
        """Say what came of a job, once its revision answers."""
        values: dict[str, Any] = {"progress": None, "finished": now()}
        if isinstance(outcome, Finished):
            with suppress(RepclError):  # the follower says what is wrong, and tries again
                self.current.refresh()
            values |= {"revision": outcome.revision, "summary": outcome.summary}
            values["state"] = "done" if outcome.is_used else "refused"
            if not outcome.is_used:
                del values["finished"]
        elif job.is_unwanted:
            values |= {"state": "canceled", "problem": STOPPED if self._is_ending else None}
        elif isinstance(outcome, Failed):
            problem = JobProblem(title=outcome.title, detail=outcome.detail)
            values |= {"state": "failed", "problem": problem}
        else:
            values |= {"state": "failed", "problem": DIED}
        with self._changed():
            job.is_writing = False
            job.change(**values)
        if values["state"] == "done":
            self._let_go(job)

    def _let_go(self, job: _Job) -> None:
        """Collected texts that have been learned need no review."""
        if self.collector is not None and job.collected:
            with suppress(CannotWrite):  # the collector tries again, and says so in the log
                self.collector.erase(job.collected)

    def _forget_summaries(self, purge: _Job) -> None:
        """Nothing may name a class any longer that was deleted for good, except the job that did it."""
        with self._changed():
            for job in self._jobs.values():
                if job.body.state in FINAL:
                    summary = job.body.summary and job.body.summary.model_copy(update={"classes": []})
                    job.change(summary=summary if job is purge else None)

    def _settle_refused(self) -> None:
        """Notice decisions about refused updates that were made elsewhere."""
        with self._changing:
            refused = [job for job in self._jobs.values() if job.body.state == "refused"]
        if not refused:
            return
        folder = self.current.folder
        in_use, numbers = folder.current(), folder.numbers()
        for job in refused:
            number = job.body.revision
            values: dict[str, Any] = {}
            if number == in_use:
                values = {"state": "done"}
            elif number is None or number not in numbers:
                values = {"state": "discarded"}
            elif folder.revision(number).parent != in_use:
                values = {"state": "discarded", "problem": OUTDATED}
            if values:
                with self._changed():
                    job.change(finished=now(), **values)
            if values.get("state") == "done":
                self._let_go(job)

    # ---- inside ---------------------------------------------------------------------------------

    def _job(self, number: str) -> _Job:
        with self._changing:
            if number not in self._jobs:
                raise Problem(404, "There is no such job: /v1/jobs lists those that there are.")
            return self._jobs[number]

    @contextmanager
    def _changed(self, *, is_worth_writing: bool = True) -> Iterator[None]:
        """Change jobs; then they are written down, and whoever listens hears of it."""
        with self._changing:
            yield
            if is_worth_writing and self.journal is not None:
                entries = [
                    JobEntry(
                        job=job.body,
                        is_writing=job.is_writing,
                        collected=() if job.body.state in FINAL else job.collected,
                    )
                    for job in self._jobs.values()
                ]
                try:
                    self.journal.write(entries)
                except OSError as error:  # a full disk must not stop a job that frees some
                    log.error("jobs could not be written down: %s", error.strerror)
        self._tell()

    def _tell(self) -> None:
        with self._changing:
            for loop, event in self._listeners:
                with suppress(RuntimeError):  # its loop is closed
                    loop.call_soon_threadsafe(event.set)

    def _forget_old(self) -> None:
        over = [number for number, job in self._jobs.items() if job.body.state in FINAL]
        for number in over[: max(0, len(self._jobs) - MOST_JOBS)]:
            del self._jobs[number]


class _Clock:
    """Guesses how long a stage will take from how long its steps took."""

    def __init__(self) -> None:
        self._stage = ""
        self._since = 0.0

    def progress(self, message: Advance) -> Progress:
        """How far a stage is."""
        if message.stage != self._stage:
            self._stage, self._since = message.stage, time.monotonic()
        left = None
        if message.done:
            spent = time.monotonic() - self._since
            left = round(spent / message.done * (message.total - message.done), 1)
        return Progress(stage=message.stage, done=message.done, total=message.total, seconds_left=left)


def _action(order: Order) -> Action:
    match order:
        case Learn():
            return "learn"
        case Rename():
            return "rename"
        case Merge():
            return "merge"
        case Remove():
            return "remove"
    return "rollback"
