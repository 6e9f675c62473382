"""The jobs of a service on disk, so that the next one knows which were lost; it holds no text of a user."""

from repcl.classifier.store.records import DamagedModel, Record, now, read_record, to_json
from repcl.serving.bodies import JobBody, JobProblem
from repcl.serving.place import JOBS, Place

LARGEST = 32 << 20
MOST_JOBS = 100
LOST = "The service ended while this job waited or ran. Nothing of it is in use: start it again."
MAY_BE_WRITTEN = (
    "The service ended while this job was being written: if the history shows its revision, all of it is "
    "there; else start it again."
)


class JobEntry(Record):
    """A job as it is kept.

    Attributes:
        job: what everybody may know of it.
        is_writing: whether its revision was about to be written.
        collected: the collected texts that it settles, by their ids.
    """

    job: JobBody
    is_writing: bool = False
    collected: tuple[str, ...] = ()


class JobEntries(Record):
    """All jobs that are kept, oldest first."""

    jobs: tuple[JobEntry, ...]


class Journal:
    """Writes down jobs, and reads those of the service before."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def read(self) -> list[JobEntry]:
        """The jobs of the service before; those that it did not end are lost."""
        data = self.place.read(JOBS, LARGEST)
        if data is None:
            return []
        try:
            found: JobEntries = read_record(data, JobEntries, str(self.place.path / JOBS))
        except DamagedModel:  # what happened before is worth knowing, but not worth refusing to start
            return []
        return [_as_left(entry) for entry in found.jobs]

    def write(self, entries: list[JobEntry]) -> None:
        """Keep the last jobs."""
        kept = tuple(_without_texts(entry) for entry in entries[-MOST_JOBS:])
        self.place.write(JOBS, to_json(JobEntries(jobs=kept)))


def _as_left(entry: JobEntry) -> JobEntry:
    if entry.job.state not in ("queued", "running"):
        return entry
    detail = MAY_BE_WRITTEN if entry.is_writing else LOST
    problem = JobProblem(title="Lost", detail=detail)
    lost = {"state": "lost", "problem": problem, "progress": None, "finished": now()}
    return JobEntry(job=entry.job.model_copy(update=lost))


def _without_texts(entry: JobEntry) -> JobEntry:
    """The entry without words of users, which errors, lost texts and doubtful ones quote."""
    job = entry.job
    if job.problem is not None and job.state == "failed":
        job = job.model_copy(update={"problem": JobProblem(title=job.problem.title, detail="")})
    if job.summary is not None:
        classes = [one.model_copy(update={"lost_texts": []}) for one in job.summary.classes]
        summary = job.summary.model_copy(update={"classes": classes, "doubtful_texts": [], "notes": []})
        job = job.model_copy(update={"summary": summary})
    return entry.model_copy(update={"job": job})
