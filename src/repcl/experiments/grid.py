"""Many runs on one machine: a process per core, one thread each; a failed run stops no other."""

import multiprocessing
import os
import warnings
from collections import deque
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection, wait

from repcl.data import TaskStream
from repcl.experiments.events import Event, Listener, Reporter, Tell
from repcl.experiments.failure import Failure, failure_of
from repcl.experiments.result import Result
from repcl.experiments.run import run_experiment
from repcl.experiments.run_request import RunRequest
from repcl.experiments.threads import one_thread_each
from repcl.model.processes import processes


def run_grid(requests: Sequence[RunRequest], *, workers: int, listener: Listener) -> list[Result | Failure]:
    """Make all runs; results and failures come back in the order of the requests.

    Args:
        requests: the runs; those of one round of one benchmark should stand together, a worker then reads
            their data once.
        workers: how many processes; one means here, in this process.
        listener: is told about every event, with the number of its run.
    """
    if workers <= 1 or len(requests) <= 1:
        return [perform(request, partial(listener, number)) for number, request in enumerate(requests)]
    outcomes: dict[int, Result | Failure] = {}
    waiting = deque(enumerate(requests))
    with one_thread_each():
        active = [Worker().start(*waiting.popleft()) for _ in range(min(workers, len(requests)))]
        while active:
            ready = wait([worker.connection for worker in active])
            for worker in [worker for worker in active if worker.connection in ready]:
                event = worker.next_event()
                listener(worker.number, event)
                if event.kind not in ("done", "failed"):
                    continue
                outcomes[worker.number] = event.values["outcome"]
                active.remove(worker)
                if waiting:
                    next_worker = worker if worker.is_alive else Worker()
                    active.append(next_worker.start(*waiting.popleft()))
                else:
                    worker.connection.close()  # which ends its loop
    return [outcomes[number] for number in range(len(requests))]


class Worker:
    """A process that makes one run after another."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.is_alive = True

    def start(self, number: int, request: RunRequest) -> "Worker":
        """Begin a run."""
        self.number, self.request = number, request
        self.connection.send(request)
        return self

    def next_event(self) -> Event:
        """What its run reports next; the death of the process counts as the failure of the run."""
        try:
            event: Event = self.connection.recv()
        except (EOFError, ConnectionError):
            self.is_alive = False
            reason = "its process died, perhaps for lack of memory"
            return Event("failed", {"outcome": Failure(self.request, reason, "")})
        return event


def perform(request: RunRequest, tell: Tell, stream: TaskStream | None = None) -> Result | Failure:
    """Make one run in this process and tell what happens; an error becomes a failure.

    Args:
        request: the run.
        tell: is told about every event.
        stream: its data, if they have been loaded already.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            data = stream or request.load_stream()
            result = run_experiment(request.method, data, observer=Reporter(tell), **request.options)
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            tell(Event("note", {"text": text}))
    except Exception as error:
        if processes().number > 1:
            raise  # the others wait for this process in the middle of the run: the launcher must end them all
        # Whatever went wrong belongs to this run alone; the others go on, and the end of the grid shows it.
        event = Event("failed", {"outcome": failure_of(request, error)})
    else:
        event = Event("done", {"outcome": result})
    tell(event)
    outcome: Result | Failure = event.values["outcome"]
    return outcome


def _serve(connection: Connection) -> None:
    """The life of a worker: runs until nobody is there to ask for one or to hear of it."""

    def tell(event: Event) -> None:
        try:
            connection.send(event)
        except OSError:
            os._exit(1)  # the parent was killed: stop at once, the same command goes on from here later

    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        perform(request, tell)
