"""The revisions of a model as a timeline; none is read twice, for they never change."""

import threading

from repcl.classifier import ModelFolder
from repcl.classifier.store.records import DamagedModel, Revision
from repcl.classifier.wording import described
from repcl.errors import MissingData
from repcl.serving.bodies import HistoryBody, RevisionBody


class History:
    """Lists the revisions of a folder."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder
        self._known: dict[int, RevisionBody] = {}
        self._reading = threading.Lock()

    def page(self) -> HistoryBody:
        """All revisions that can be read, oldest first."""
        with self._reading:
            current, numbers = self.folder.current(), self.folder.numbers()
            found = {number: self._known.get(number) or self._read(number) for number in numbers}
            self._known = {number: one for number, one in found.items() if one is not None}
            used = {current, *(one.parent for one in self._known.values())}
            rows = [
                one.model_copy(
                    update={
                        "is_current": one.number == current,
                        "is_accepted": one.is_refused and one.number in used,
                    }
                )
                for one in self._known.values()
            ]
            return HistoryBody(current=current, revisions=rows)

    def _read(self, number: int) -> RevisionBody | None:
        try:
            return _row(self.folder.revision(number))
        except (DamagedModel, MissingData):  # damaged, or purged since it was listed
            return None


def _row(revision: Revision) -> RevisionBody:
    last = revision.updates[-1] if revision.updates else None
    what = "; ".join(described(update) for update in revision.updates) or "saved"
    if not revision.is_refused and any(update.is_refused for update in revision.updates):
        what += " (against the guard's advice)"
    return RevisionBody(
        number=revision.number,
        parent=revision.parent,
        when=revision.when,
        action=last.action if last else "save",
        sentence=f"{what[:1].upper()}{what[1:]}.",
        classes=len(revision.contents.classes),
        accuracy=last.accuracy if last else None,
        is_current=False,
        is_refused=revision.is_refused,
        is_accepted=False,
    )
