"""Many jobs on one machine, runs or analyses: one process per core; a failure stops no other job."""

import multiprocessing
import os
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch

from repcl.errors import RepclError
from repcl.experiments.runs.observers import Ended, Event, Listener, Note, Tell
from repcl.files import about


class Job(Protocol):
    """A run or an analysis that was asked for; it can be sent to another process."""

    @property
    def title(self) -> str:
        """How it is called in overviews."""

    @property
    def error_log(self) -> Path:
        """Where its traceback is kept if it fails."""

    @property
    def is_shared(self) -> bool:
        """Whether several processes make it together, so that an error in one has to end them all."""


@dataclass(frozen=True)
class Failure:
    """A job that ended with an error, in words and with its traceback."""

    job: Job
    reason: str
    details: str
    is_user_error: bool = False


SomeJob = TypeVar("SomeJob", bound=Job)
Outcome = TypeVar("Outcome")
Perform = Callable[[SomeJob, Tell], Outcome]


def perform_all(
    jobs: Sequence[SomeJob], perform: Perform[SomeJob, Outcome], *, workers: int, listener: Listener
) -> list[Outcome | Failure]:
    """Do all jobs; outcomes and failures come back in the order of the jobs.

    Args:
        jobs: runs of one round of one benchmark should stand together, a worker then reads their data once.
        perform: does one job; a function of a module, so that it can be sent to other processes.
        workers: how many processes; one means here, in this process.
        listener: is told about every event, with the index of its job.
    """
    if workers <= 1 or len(jobs) <= 1:
        return [attempt(job, perform, partial(listener, index)) for index, job in enumerate(jobs)]
    outcomes: dict[int, Outcome | Failure] = {}
    waiting = deque(enumerate(jobs))
    with one_thread_each():
        active = [Worker(perform).start(*waiting.popleft()) for _ in range(min(workers, len(jobs)))]
        while active:
            ready = wait([worker.connection for worker in active])
            for worker in [worker for worker in active if worker.connection in ready]:
                event = worker.next_event()
                listener(worker.index, event)
                if not isinstance(event, Ended):
                    continue
                outcomes[worker.index] = event.outcome
                active.remove(worker)
                if waiting:
                    next_worker = worker if worker.is_alive else Worker(perform)
                    active.append(next_worker.start(*waiting.popleft()))
                else:
                    worker.connection.close()  # which ends its loop
    return [outcomes[index] for index in range(len(jobs))]


def attempt(job: SomeJob, perform: Perform[SomeJob, Outcome], tell: Tell) -> Outcome | Failure:
    """Do one job in this process and tell what happens; an error becomes a failure."""
    outcome: Outcome | Failure
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            outcome = perform(job, tell)
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            tell(Note(text))
    except Exception as error:
        if job.is_shared:
            raise  # the others wait for this process in the middle of the run: the launcher must end them all
        # Whatever went wrong belongs to this job alone; the others continue, and the end shows it.
        outcome = failure_of(job, error)
    tell(Ended(outcome))
    return outcome


def failure_of(job: Job, error: Exception) -> Failure:
    """The failure that an error caught just now means for a job."""
    if isinstance(error, OSError):  # a full or broken disk, or permissions
        return Failure(job, about(error), traceback.format_exc(), is_user_error=True)
    is_user_error = isinstance(error, RepclError)
    reason = str(error) if is_user_error else f"{type(error).__name__}: {error}"
    return Failure(job, reason, traceback.format_exc(), is_user_error)


class Worker(Generic[SomeJob, Outcome]):
    """A process that does one job after another."""

    def __init__(self, perform: Perform[SomeJob, Outcome]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, perform), daemon=True)
        self.process.start()
        theirs.close()
        self.is_alive = True

    def start(self, index: int, job: SomeJob) -> "Worker[SomeJob, Outcome]":
        """Begin a job."""
        self.index, self.job = index, job
        self.connection.send(job)
        return self

    def next_event(self) -> Event:
        """What its job reports next; the death of the process counts as the failure of the job."""
        try:
            event: Event = self.connection.recv()
        except (EOFError, ConnectionError):
            self.is_alive = False
            return Ended(Failure(self.job, "its process died, perhaps for lack of memory", ""))
        return event


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Torch uses so many threads here, then as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes started here use one thread each: libraries read the number from the environment."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def _serve(connection: Connection, perform: Perform[Any, Any]) -> None:
    """The life of a worker: jobs until nobody is there to ask for one or to hear of it."""

    def tell(event: Event) -> None:
        try:
            connection.send(event)
        except OSError:
            os._exit(1)  # the parent was killed: stop at once, the same command resumes from here later

    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            return
        attempt(job, perform, tell)
