"""Which revisions of a model folder hold a text, so that it can be deleted from all of them."""

from collections.abc import Iterable

from repcl.classifier.known import unlabeled
from repcl.classifier.store.files import Blobs, get_examples
from repcl.classifier.store.folder import ModelFolder
from repcl.classifier.store.records import Contents, DamagedModel
from repcl.classifier.store.snapshot import get_known
from repcl.data import Example
from repcl.data.normal import normal_example


def revisions_holding(folder: ModelFolder, examples: Iterable[Example]) -> list[int]:
    """Revisions that hold texts, word for word or as hashes, or that may, where hashes are not kept."""
    texts = {unlabeled(normal_example(example)) for example in examples}

    def is_held(contents: Contents, blobs: Blobs) -> bool:
        records = (contents.memory, contents.held_out)
        kept = (example for record in records for example in get_examples(record, blobs, contents.names))
        if any(unlabeled(normal_example(example)) in texts for example in kept):
            return True
        known = get_known(contents, blobs)
        return known is None or bool(known.unlisted) or any(known.labels(texts))

    found = folder.unreadable()
    for revision in folder.history():
        try:
            if folder.open(is_held, revision.number)[1]:
                found.append(revision.number)
        except DamagedModel:  # no one knows what it holds
            found.append(revision.number)
    return sorted(found)
