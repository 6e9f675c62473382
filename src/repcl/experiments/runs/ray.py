"""Many runs on many machines: each is one Ray task; the run of a lost worker is made again, or resumes."""

import os
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from uuid import uuid4

from repcl.data import TaskStream
from repcl.errors import InvalidSetting, RepclError
from repcl.experiments.runs.companions import check_parts, companions, start_over
from repcl.experiments.runs.observers import Ended, Event, Listener, Note, StepEnds
from repcl.experiments.runs.pool import Failure, attempt, failure_of
from repcl.experiments.runs.ray_cluster import Resources, ray_cluster, resources_of_run
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.run import make_run
from repcl.experiments.runs.spec import ResolvedRun, RunOptions
from repcl.experiments.runs.store import RunFolder, RunStore
from repcl.files import write_whole

MARK = ".driver"
MAX_LOST_WORKERS = 5  # a run whose worker was lost that often has probably killed it
SECONDS_BETWEEN_BATCHES = 0.2  # of events; one message per training step would slow small models down

Batch = list[tuple[int, Event]]  # with the index of the run


def run_on_ray(
    runs: Sequence[ResolvedRun], *, address: str, workers: int | None, listener: Listener
) -> list[Result | Failure]:
    """Make all runs on a Ray cluster; results and failures come back in the order of the runs.

    Args:
        runs: each has a folder.
        address: of the cluster, as `ray_cluster` takes it.
        workers: how many runs at a time at most; without, as many as the cluster has room for.
        listener: is told about every event, with the index of its run.
    """
    with ray_cluster(address):
        resources = _resources(runs)
        with _marked({_out(run) for run in runs}) as driver:
            return RayPool(runs, resources, driver, listener).perform_all(at_a_time=workers or len(runs))


def start_over_alone(run: ResolvedRun) -> None:
    """Forget what was made of a run before, unless another process is making it at this moment."""
    if run.folder is None:
        return
    with run.folder.lock(waiting=None) as is_ours:
        if not is_ours:
            raise RepclError(
                f"Expected no other process to make the run in {run.folder.path}, found one: wait until it "
                "has ended, or leave out --fresh."
            )
        start_over(run)


class RayPool:
    """The driver's view of the runs: which wait, which are with a worker, what they came to."""

    def __init__(
        self,
        runs: Sequence[ResolvedRun],
        resources: Sequence[Resources],
        driver: "Driver",
        listener: Listener,
    ) -> None:
        import ray

        self.runs, self.resources, self.driver, self.listener = runs, resources, driver, listener
        self.perform = ray.remote(max_retries=0)(perform_on_worker)  # lost runs are sent again by `_end`
        self.mailbox = open_mailbox()
        self.streams: dict[object, Any] = {}
        self.running: dict[Any, int] = {}
        self.lost: Counter[int] = Counter()
        self.outcomes: dict[int, Result | Failure] = {}

    def perform_all(self, *, at_a_time: int) -> list[Result | Failure]:
        """Make the runs."""
        import ray

        waiting = deque(range(len(self.runs)))
        news = self.mailbox.collect.remote()
        while waiting or self.running:
            while waiting and len(self.running) < at_a_time:
                self._begin(waiting.popleft())
            if not self.running:
                continue
            ready, _ = ray.wait([*self.running, news])
            ended = [task for task in ready if task in self.running]
            if ended:
                ray.get(self.mailbox.post.remote(b""))  # what they told before their end is news by now
            for message in ray.get(news):
                # from our own workers; Ray's messages are pickles anyway, and so the mailbox needs no torch
                for index, event in pickle.loads(message):
                    self.listener(index, event)
            news = self.mailbox.collect.remote()
            for task in ended:
                self._end(self.running.pop(task), task)
        return [self.outcomes[index] for index in range(len(self.runs))]

    def _begin(self, index: int) -> None:
        """Put the data of a run where every worker finds them, and send it, unless it is finished already."""
        import ray

        run = self.runs[index]
        try:
            if run.options.fresh:
                start_over_alone(run)
            check_parts(run)
            finished = run.earlier()
            if finished is None and run.spec.stream not in self.streams:
                self.streams[run.spec.stream] = ray.put(run.stream)
        except Exception as error:  # it belongs to this run alone, as in `attempt`
            self._finish(index, failure_of(run, error))
            return
        if finished is not None:
            self._finish(index, finished)
            return
        self._send(index)

    def _send(self, index: int) -> None:
        run = self.runs[index]
        sent = _begun(run)
        perform = self.perform.options(**self.resources[index])
        task = perform.remote(index, sent, self.streams[run.spec.stream], self.mailbox, self.driver)
        self.running[task] = index

    def _end(self, index: int, task: Any) -> None:
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
        run = self.runs[index]
        try:
            finished: FinishedRun = ray.get(task)
            if finished.files:
                _lay_down(run, finished.files, lambda text: self.listener(index, Note(text)))
            outcome = finished.outcome
        except lost as error:
            self.lost[index] += 1
            if self.lost[index] < MAX_LOST_WORKERS:
                self.listener(index, Note("its worker was lost, another one takes it"))
                self._send(index)
                return
            reason = f"its worker was lost {MAX_LOST_WORKERS} times, perhaps for lack of memory"
            outcome = Failure(run, reason, str(error))
        except Exception as error:  # it belongs to this run alone, as in `attempt`
            outcome = failure_of(run, error)
        if isinstance(outcome, Failure):
            outcome = replace(outcome, job=run)
        self._finish(index, outcome)

    def _finish(self, index: int, outcome: Result | Failure) -> None:
        self.outcomes[index] = outcome
        self.listener(index, Ended(outcome))


@dataclass(frozen=True)
class Driver:
    """What workers know about the process that asked for their runs.

    Attributes:
        mark: what it wrote into its output folder.
        working_folder: where it was started; relative paths begin there.
    """

    mark: str
    working_folder: str

    def shares(self, folder: Path) -> bool:
        """Whether a folder here is the driver's, and not another one of the same name."""
        try:
            return (folder / MARK).read_text(encoding="utf-8") == self.mark
        except OSError:
            return False


@dataclass(frozen=True)
class FinishedRun:
    """What a task came to, and files that the driver cannot see.

    Attributes:
        outcome: of the run.
        files: by the name of each row that the run made; empty where the driver sees the folder.
    """

    outcome: Result | Failure
    files: Mapping[str, Mapping[str, bytes]]


def perform_on_worker(
    index: int, run: ResolvedRun, stream: TaskStream, mailbox: Any, driver: Driver
) -> FinishedRun:
    """Make one run on a worker: in the driver's output folder if it is seen here, else in one of its own."""
    with suppress(OSError):  # on a machine without that folder, relative paths lead nowhere
        os.chdir(driver.working_folder)
    tell = EventSender(mailbox, index).tell
    run = replace(run, spec=replace(run.spec, stream=stream))
    if driver.shares(_out(run)):
        return FinishedRun(attempt(run, make_run, tell), {})
    with TemporaryDirectory(prefix="repcl-") as out:
        moved = _with_options(run, replace(run.options, out=Path(out)))
        moved = replace(moved, folder=_folder(moved))
        outcome = attempt(moved, make_run, tell)
        made = [] if isinstance(outcome, Failure) else RunStore(out).runs()
        return FinishedRun(outcome, {one.result.row: RunFolder(one.folder).files() for one in made})


class EventSender:
    """Sends the events of one run to the mailbox; training steps travel together in a batch."""

    def __init__(self, mailbox: Any, index: int) -> None:
        self.mailbox, self.index = mailbox, index
        self.batch: Batch = []
        self.last_sent = monotonic()

    def tell(self, event: Event) -> None:
        """Send an event, soon; the end of a run is told by its task, which cannot get lost."""
        import ray

        if not isinstance(event, Ended):
            self.batch.append((self.index, event))
        if not isinstance(event, StepEnds) or monotonic() - self.last_sent > SECONDS_BETWEEN_BATCHES:
            ray.get(self.mailbox.post.remote(pickle.dumps(self.batch)))
            self.batch, self.last_sent = [], monotonic()


def open_mailbox() -> Any:
    """Start the actor that keeps batches of events until the driver collects them."""
    import asyncio

    import ray

    class Mailbox:
        # Defined in here, Ray sends it as code; batches are plain bytes. Its process then needs no torch.
        def __init__(self) -> None:
            self.batches: list[bytes] = []
            self.has_news = asyncio.Event()

        async def post(self, batch: bytes) -> None:
            if batch:
                self.batches.append(batch)
            self.has_news.set()

        async def collect(self) -> list[bytes]:
            await self.has_news.wait()
            self.has_news.clear()
            batches, self.batches = self.batches, []
            return batches

    # A mailbox whose machine is lost starts again elsewhere, empty: only progress shown is lost with it.
    return ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Mailbox).remote()


def _with_options(run: ResolvedRun, options: RunOptions) -> ResolvedRun:
    return replace(run, spec=replace(run.spec, options=options))


def _begun(run: ResolvedRun) -> ResolvedRun:
    """The run as it is sent: a second attempt must not throw away what the first one reached."""
    return _with_options(run, replace(run.options, fresh=False))


def _lay_down(
    run: ResolvedRun, files: Mapping[str, Mapping[str, bytes]], note: Callable[[str], None]
) -> None:
    """Write the rows that a run made elsewhere, its own last; those that are there by now stay."""
    for other in companions(_with_options(run, replace(run.options, fresh=True))):  # whatever is there
        if other.run.folder is not None and other.row in files and other.is_wanted(note):
            other.run.folder.lay_down(files[other.row])
    _folder(run).lay_down(files[run.plan.row])


def _out(run: ResolvedRun) -> Path:
    if run.options.out is None:
        raise InvalidSetting("Runs on a Ray cluster need a folder for their results: give `out`.")
    return run.options.out


def _folder(run: ResolvedRun) -> RunFolder:
    return RunStore(_out(run)).folder(run.benchmark, run.plan.row, run.plan.round)


def _resources(runs: Sequence[ResolvedRun]) -> list[Resources]:
    import ray

    devices = [run.options.device for run in runs]
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
            write_whole(mark, driver.mark, durable=False)
        yield driver
    finally:
        for mark in marks:
            mark.unlink(missing_ok=True)
