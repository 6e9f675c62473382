"""Saving, loading and pickling a classifier."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from repcl.classifier.blobs import BlobsInMemory
from repcl.classifier.fitted import Fitted
from repcl.classifier.folder import ModelFolder
from repcl.classifier.records import Contents, DamagedModel, Revision
from repcl.classifier.snapshot import pack, unpack
from repcl.errors import RepclError

Own = TypeVar("Own", bound="Persistent")
WAIT = 60.0


class Persistent(Fitted):
    """A classifier that can be put away and taken out again."""

    def save(self, path: str | Path, *, wait: float = WAIT) -> int:
        """Write a new revision into a model folder, made if it does not exist, and use it from now on.

        Args:
            path: of the folder.
            wait: seconds to wait for another process that is writing there.

        Returns:
            The revision's number.
        """
        self.known()
        folder = ModelFolder(path)
        with folder.lock("saving", wait=wait):
            return self.commit(folder).number

    def commit(self, folder: ModelFolder, *, make_current: bool = True) -> Revision:
        """Write a new revision into a folder whose lock is held."""
        place = folder.path.resolve()
        parent = self._home[1] if self._home is not None and self._home[0] == place else None
        if parent is not None and folder.exists and folder.current() != parent:
            raise RepclError(
                f"{folder.path} is at revision {folder.current()}, this classifier comes from revision "
                f"{parent}: load it again and repeat the change, or save to another folder."
            )
        knowledge = self.known()
        revision = folder.commit(knowledge, self._parameters(), parent=parent, make_current=make_current)
        knowledge.updates.clear()
        self._home = (place, revision.number)
        return revision

    @classmethod
    def load(
        cls: type[Own],
        path: str | Path,
        *,
        revision: int | None = None,
        device: torch.device | str | None = None,
    ) -> Own:
        """A classifier from a model folder; it learns and predicts as if it had never been saved.

        Args:
            path: of the folder.
            revision: the one in use if not given.
            device: the best one present if not given.
        """
        folder = ModelFolder(path)
        record, knowledge = folder.open(revision, device=device)
        known = cls._get_param_names()
        try:
            loaded = cls(**{key: value for key, value in record.contents.parameters.items() if key in known})
        except TypeError as error:
            raise DamagedModel(f"{path}: the parameters cannot be used ({error}).") from error
        if device is not None:
            loaded.set_params(device=str(device))  # `fit` stays there
        loaded._knowledge = knowledge
        loaded._home = (folder.path.resolve(), record.number)
        if record.updates:
            loaded.last_update_ = record.updates[-1]
        return loaded

    def _parameters(self) -> dict[str, Any]:
        """The arguments of the constructor as JSON can hold them; the device is this machine's business."""
        values: dict[str, Any] = self.get_params(deep=False)
        del values["device"]
        plain: dict[str, Any] = json.loads(json.dumps(values, default=_plain))
        return plain

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        knowledge = state.pop("_knowledge", None)
        if knowledge is not None:
            blobs = BlobsInMemory()
            contents = pack(knowledge, {}, blobs)
            state["_packed"] = (contents.model_dump(), blobs.kept, list(knowledge.updates))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.pop("_packed", None)
        super().__setstate__(state)
        if packed is not None:
            contents, kept, updates = packed
            blobs = BlobsInMemory()
            blobs.kept.update(kept)
            self._knowledge = unpack(Contents.model_validate(contents), blobs, device=self.device)
            self._knowledge.updates = updates


def _plain(value: Any) -> Any:
    """What JSON does not know: NumPy's numbers, settings that are no plain dictionary, paths."""
    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else str(value)
