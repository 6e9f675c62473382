"""The learning process: takes one order after another, says how far it is, and ends with the service."""

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repcl.classifier.store.files import ModelIsLocked
from repcl.data import Example
from repcl.data.label_cells import labels_of_cell
from repcl.errors import RepclError
from repcl.serving.bodies import Summary
from repcl.serving.orders import Learn, Merge, Order, Remove, Rename, Rollback

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier, ModelFolder
    from repcl.training import Observer

KINDER = 10
"""How much this process gives way to the one that answers."""
PAUSE = 0.2
WAIT = 600.0


@dataclass(frozen=True)
class Assignment:
    """An order for the model in a folder."""

    model: Path
    order: Order
    device: str | None = None


@dataclass(frozen=True)
class Advance:
    """So many steps of a stage are done."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class AsksToWrite:
    """Everything is computed; the answer says whether it may be written."""


@dataclass(frozen=True)
class Finished:
    """The order was carried out."""

    revision: int
    is_used: bool
    summary: Summary


@dataclass(frozen=True)
class Failed:
    """The order could not be carried out."""

    title: str
    detail: str


Message = Advance | AsksToWrite | Finished | Failed


class NotWanted(Exception):
    """The service no longer wants what was learned."""


def work(connection: Connection) -> None:
    """Carry out assignments until the service ends or wants no more."""
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to all at once; the service says when this one ends
    with suppress(OSError, AttributeError):
        os.nice(KINDER)
    warnings.simplefilter("ignore")  # they quote users' words, and this process writes into the service's log
    with suppress(EOFError, OSError):
        while True:
            assignment: Assignment = connection.recv()
            connection.send(carried_out(assignment, connection))


def carried_out(assignment: Assignment, connection: Connection) -> Finished | Failed:
    """Carry out an assignment, whatever comes of it."""
    try:
        return _carry_out(assignment, connection)
    except NotWanted:
        return Failed("Canceled", "The job was canceled.")
    except (EOFError, BrokenPipeError):
        raise
    except ModelIsLocked as error:
        return Failed("The model could not be changed", error.without_options)
    except RepclError as error:
        return Failed("The model could not be changed", str(error))
    except MemoryError:
        return Failed("Out of memory", "There is not enough memory for this: teach fewer or shorter texts.")
    except Exception as error:
        return Failed(
            "Unforeseen", f"Something happened that repcl did not foresee ({type(error).__name__})."
        )


def _end_with_the_service() -> None:
    """Nothing may be written after the service is gone: nobody would know of it."""
    service = multiprocessing.parent_process()
    if service is not None:
        service.join()
        os._exit(1)


def _carry_out(assignment: Assignment, connection: Connection) -> Finished:
    from repcl.classifier import ModelFolder

    folder = ModelFolder(assignment.model)

    def may_write() -> None:
        connection.send(AsksToWrite())
        if not connection.recv():
            raise NotWanted

    connection.send(Advance("loading", 0, 1))
    if isinstance(assignment.order, Rollback):
        return _rolled_back(folder, assignment.order, may_write)
    with folder.lock(_purpose(assignment.order), wait=WAIT):
        return _changed(folder, assignment, connection, may_write)


def _rolled_back(folder: "ModelFolder", order: Rollback, may_write: Callable[[], None]) -> Finished:
    folder.check(order.revision)
    with folder.lock("rolling back", wait=WAIT):
        may_write()
        chosen = folder.rollback(order.revision)
    sentence = f"Revision {order.revision} is in use, with {len(chosen.contents.classes)} classes."
    return Finished(order.revision, True, Summary(sentence=sentence))


def _changed(
    folder: "ModelFolder", assignment: Assignment, connection: Connection, may_write: Callable[[], None]
) -> Finished:
    from repcl.classifier import ContinualClassifier
    from repcl.serving.summaries import summary_of, was_right

    classifier = ContinualClassifier.load(folder.path, device=assignment.device)
    before = was_right(classifier.fitted_state())
    origins = dict(classifier.fitted_state().origins)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _apply(assignment.order, classifier, _reporter(connection))
    update = classifier.last_update_
    may_write()
    is_used = not (isinstance(assignment.order, Learn) and update.is_refused)
    revision = classifier.commit(folder, make_current=is_used)
    notes = list(dict.fromkeys(str(one.message) for one in caught if not _is_about_guard(one)))
    if isinstance(assignment.order, Remove):
        name = str(classifier.label_of(assignment.order.label))
        holding = folder.holding(name, origins.get(name, ()))
        notes += [_traces(folder, holding, assignment.order)] if holding else []
    summary = summary_of(update, before, was_right(classifier.fitted_state()), notes)
    return Finished(revision.number, is_used, summary)


def _traces(folder: "ModelFolder", holding: Sequence[int], order: Remove) -> str:
    """Delete the revisions that hold a removed class, if that is wanted, and say where it is or was held."""
    numbers = ", ".join(map(str, holding))
    if not order.purge:
        return f"Older revisions still hold its texts: {numbers}."
    try:
        folder.purge(holding)
    except RepclError as error:  # the class is removed all the same
        return (
            f"Older revisions still hold its texts: {numbers}. They could not be deleted ({error}); "
            "`repcl classes remove MODEL NAME --purge` deletes them later."
        )
    return f"Deleted the revisions that held it: {numbers}."


def _purpose(order: Order) -> str:
    return {Learn: "learning", Rename: "renaming a class", Merge: "merging classes"}.get(
        type(order), "removing a class"
    )


def _apply(order: Order, classifier: "ContinualClassifier", observer: "Observer") -> None:
    """Change a classifier as ordered."""
    match order:
        case Learn(examples):
            classifier.partial_fit(*_texts_and_labels(classifier, examples), observer=observer)
        case Rename(old, new):
            classifier.rename_class(classifier.label_of(old), classifier.label_of(new))
        case Merge(names, into):
            classifier.merge_classes([classifier.label_of(name) for name in names], classifier.label_of(into))
        case Remove(label):
            classifier.remove_class(classifier.label_of(label))


def _texts_and_labels(
    classifier: "ContinualClassifier", examples: Sequence[Example]
) -> tuple[list[Example], list[Any]]:
    """What to learn; where a text may have several labels, each text comes once with all of them."""
    if not classifier.fitted_state().is_multilabel:
        return list(examples), [classifier.label_of(example.label) for example in examples]
    labels: dict[Example, list[Any]] = {}
    for example in examples:
        own = labels.setdefault(replace(example, label=""), [])
        own += [classifier.label_of(label) for label in labels_of_cell(example.label)]
    return list(labels), list(labels.values())


def _is_about_guard(warning: warnings.WarningMessage) -> bool:
    from repcl.classifier import ForgettingWarning

    return issubclass(warning.category, ForgettingWarning)


def _reporter(connection: Connection) -> "Observer":
    """An observer that tells the service about stages and steps, a few times a second."""
    from repcl.training import Observer, Stage

    class Reporter(Observer):
        stage_now, done, total, said = "", 0, 1, 0.0

        def stage_begins(self, stage: Stage, *, epochs: int = 1, steps_per_epoch: int = 1) -> None:
            self.stage_now, self.done, self.total = str(stage), 0, max(1, epochs * steps_per_epoch)
            self._say()

        def step_ends(self, terms: Mapping[str, Any]) -> None:  # noqa: ARG002 (losses say little to users)
            self.done += 1
            if time.monotonic() - self.said > PAUSE:
                self._say()

        def _say(self) -> None:
            self.said = time.monotonic()
            connection.send(Advance(self.stage_now, min(self.done, self.total), self.total))

    return Reporter()
