"""Many runs on many machines: each is one Ray task; the run of a lost worker is made again, or goes on."""

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from repcl.experiments.cluster.connection import Resources, ray_cluster, resources_of_run
from repcl.experiments.cluster.mail import open_mailbox
from repcl.experiments.cluster.worker import MARK, Driver, FinishedRun, perform_on_worker, write_back
from repcl.experiments.events import Event, Listener
from repcl.experiments.failure import Failure, failure_of
from repcl.experiments.result import Result
from repcl.experiments.run import check_earlier, run_folder, start_over
from repcl.experiments.run_request import RunRequest, StreamKey

LOSSES = 5  # a run whose worker was lost that often has probably killed it


def run_on_ray(
    requests: Sequence[RunRequest], *, address: str, workers: int | None, listener: Listener
) -> list[Result | Failure]:
    """Make all runs on a Ray cluster; results and failures come back in the order of the requests.

    Args:
        requests: the runs; each has an `out`.
        address: of the cluster, as `ray_cluster` takes it.
        workers: how many runs at a time at most; without, as many as the cluster has room for.
        listener: is told about every event, with the number of its run.
    """
    with ray_cluster(address):
        resources = _resources(requests)
        with _marked({Path(request.options["out"]) for request in requests}) as driver:
            grid = RayGrid(requests, resources, driver, listener)
            return grid.run(at_a_time=workers or len(requests))


class RayGrid:
    """The driver's view of the runs: which wait, which are with a worker, what they came to."""

    def __init__(
        self,
        requests: Sequence[RunRequest],
        resources: Sequence[Resources],
        driver: Driver,
        listener: Listener,
    ) -> None:
        import ray

        self.requests, self.resources, self.driver, self.listener = requests, resources, driver, listener
        self.perform = ray.remote(max_retries=0)(perform_on_worker)  # lost runs are sent again by `_end`
        self.mailbox = open_mailbox()
        self.streams: dict[StreamKey, Any] = {}
        self.folders: dict[int, Path] = {}
        self.running: dict[Any, int] = {}
        self.losses: Counter[int] = Counter()
        self.outcomes: dict[int, Result | Failure] = {}

    def run(self, *, at_a_time: int) -> list[Result | Failure]:
        """Make the runs."""
        import ray

        waiting = deque(range(len(self.requests)))
        news = self.mailbox.collect.remote()
        while waiting or self.running:
            while waiting and len(self.running) < at_a_time:
                self._begin(waiting.popleft())
            if not self.running:
                continue
            ready, _ = ray.wait([*self.running, news])
            ended = [task for task in ready if task in self.running]
            if ended:
                ray.get(self.mailbox.post.remote([]))  # what they told before their end is news by now
            for number, kind, values in ray.get(news):
                self.listener(number, Event(kind, values))
            news = self.mailbox.collect.remote()
            for task in ended:
                self._end(self.running.pop(task), task)
        return [self.outcomes[number] for number in range(len(self.requests))]

    def _begin(self, number: int) -> None:
        """Put the data of a run where every worker finds them, and send it, unless it is finished already."""
        import ray

        request = self.requests[number]
        options = request.options
        try:
            stream = request.load_stream()
            plan = request.plan(stream)
            folder = run_folder(options["out"], stream, plan)
            if options.get("fresh"):
                start_over(folder)
            finished = check_earlier(folder, plan.fingerprint(stream), options.get("keep", "none"))
            if finished is None and request.stream_key not in self.streams:
                self.streams[request.stream_key] = ray.put(stream)
        except Exception as error:  # it belongs to this run alone, as in `perform`
            self._finish(number, failure_of(request, error))
            return
        if finished is not None:
            self._finish(number, finished)
            return
        self.folders[number] = folder
        self._send(number)

    def _send(self, number: int) -> None:
        # Starting over has been done here: a second attempt must not throw away what the first one reached.
        request = self.requests[number]
        request = replace(request, options={**request.options, "fresh": False})
        stream = self.streams[request.stream_key]
        perform = self.perform.options(**self.resources[number])
        task = perform.remote(number, request, stream, self.mailbox, self.driver)
        self.running[task] = number

    def _end(self, number: int, task: Any) -> None:
        """Take what a task came to, or send the run again if its worker was lost."""
        import ray
        from ray import exceptions

        lost = (
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.LocalRayletDiedError,
            exceptions.OutOfMemoryError,
            exceptions.ObjectLostError,
        )
        request = self.requests[number]
        try:
            finished: FinishedRun = ray.get(task)
            write_back(finished.files, self.folders[number])
            outcome = finished.outcome
        except lost as error:
            self.losses[number] += 1
            if self.losses[number] < LOSSES:
                self.listener(number, Event("note", {"text": "its worker was lost, another one takes it"}))
                self._send(number)
                return
            reason = f"its worker was lost {LOSSES} times, perhaps for lack of memory"
            outcome = Failure(request, reason, str(error))
        except Exception as error:  # it belongs to this run alone, as in `perform`
            outcome = failure_of(request, error)
        if isinstance(outcome, Failure):
            outcome = replace(outcome, request=request)
        self._finish(number, outcome)

    def _finish(self, number: int, outcome: Result | Failure) -> None:
        self.outcomes[number] = outcome
        kind = "failed" if isinstance(outcome, Failure) else "done"
        self.listener(number, Event(kind, {"outcome": outcome}))


def _resources(requests: Sequence[RunRequest]) -> list[Resources]:
    import ray

    devices = [request.options.get("device") for request in requests]
    cluster = ray.cluster_resources()
    return [resources_of_run(str(device) if device else None, cluster) for device in devices]


@contextmanager
def _marked(folders: Iterable[Path]) -> Iterator[Driver]:
    """Leave a mark in the output folders for a while; a worker that sees it shares the folder."""
    driver = Driver(mark=uuid4().hex, working_folder=os.getcwd())
    marks = [folder / MARK for folder in folders]
    try:
        for mark in marks:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.write_text(driver.mark, encoding="utf-8")
        yield driver
    finally:
        for mark in marks:
            mark.unlink(missing_ok=True)
