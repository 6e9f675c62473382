"""The parts of a service, made, started and stopped together."""

from dataclasses import dataclass

from repcl.classifier import ModelFolder
from repcl.serving.batching import Answerer
from repcl.serving.collecting import Collector
from repcl.serving.history import History
from repcl.serving.jobs import Jobs
from repcl.serving.journal import Journal
from repcl.serving.metrics import Metrics
from repcl.serving.model import CurrentModel
from repcl.serving.options import Options
from repcl.serving.place import Place
from repcl.serving.review import Review


@dataclass(frozen=True)
class Service:
    """A model that is served.

    Attributes:
        options: how.
        folder: where it lives.
        current: the revision that answers.
        answerer: asks it.
        jobs: change it.
        metrics: count what is done.
        history: lists its revisions.
        collector: keeps texts for review; None where nothing may be written.
        review: groups them.
        place: is claimed for as long as the service may write; None where it may not.
    """

    options: Options
    folder: ModelFolder
    current: CurrentModel
    answerer: Answerer
    jobs: Jobs
    metrics: Metrics
    history: History
    collector: Collector | None
    review: Review | None
    place: Place | None

    @classmethod
    def of(cls, options: Options) -> "Service":
        """A service that can answer, though nobody asks yet; whatever is wrong is said here."""
        folder = ModelFolder(options.model)
        folder.current()
        place = Place(options.model) if options.can_write else None
        if place is not None:
            place.claim()
        try:
            return cls._made(options, folder, place)
        except BaseException:
            if place is not None:
                place.release()
            raise

    @classmethod
    def _made(cls, options: Options, folder: ModelFolder, place: Place | None) -> "Service":
        current, metrics = CurrentModel(folder, options.device), Metrics()
        answerer = Answerer(current, metrics)
        collector = Collector(place, folder) if place is not None else None
        jobs = Jobs(current, Journal(place) if place else None, collector)
        review = Review(collector, answerer) if collector is not None else None
        return cls(
            options, folder, current, answerer, jobs, metrics, History(folder), collector, review, place
        )

    def start(self) -> None:
        """Answer, follow the folder and carry out jobs."""
        self.answerer.start()
        self.current.start()
        self.jobs.start()
        if self.collector is not None:
            self.collector.start()

    def stop(self) -> None:
        """End jobs, then answer what still waits."""
        self.jobs.stop()
        self.current.stop()
        self.answerer.stop()
        if self.collector is not None:
            self.collector.stop()
        if self.place is not None:
            self.place.release()

    def metrics_page(self) -> str:
        """Counts for Prometheus."""
        gauges = {
            "repcl_revision": ("Revision in use.", float(self.current.served.number)),
            "repcl_classes": ("Classes that it knows.", float(len(self.current.served.classes))),
            "repcl_follow_failures": (
                "Times that the folder could not be followed.",
                float(self.current.failures),
            ),
            "repcl_waiting": ("Questions that wait for their turn.", float(self.answerer.length)),
            "repcl_can_write": ("Whether the model may be changed here.", float(self.options.can_write)),
        }
        return self.metrics.page(gauges, self.jobs.counts())
