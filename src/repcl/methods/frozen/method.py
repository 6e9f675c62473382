"""What learners on a frozen encoder share: they embed texts, book them in a ledger, and answer from it.

Representations have unit length and lie on a grid of 16 bits, so all sums over them are exact. What such a
learner knows is the same for any order of tasks, and anything it learned can be taken away without a trace.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from repcl.data import Batch, Example, InputKind, Task
from repcl.errors import InvalidData, InvalidSetting, UnknownName
from repcl.methods.base import Method
from repcl.methods.frozen.ledger import Ledger
from repcl.methods.frozen.random_features import on_grid
from repcl.methods.frozen.sums import ClassSums
from repcl.methods.settings import MethodSettings
from repcl.model import FROZEN_READOUTS, Embedder, Readout, fingerprint
from repcl.training import Stage

CHUNK = 1024


class KeepingSettings(MethodSettings):
    """Settings of learners that may keep the embedding of every text."""

    keep_embeddings: bool = Field(
        True,
        description="keep each text's embedding, 2 bytes per number, to forget a class without its texts",
    )


class FrozenMethod(Method):
    """A learner on a frozen encoder.

    Subclasses say what is summed up, how sums become a solution, and a solution scores.
    """

    readouts: ClassVar[dict[InputKind, type[Readout]]] = FROZEN_READOUTS

    def build_parts(self) -> None:
        """The ledger, without any example yet."""
        self.encoder.requires_grad_(False)
        self.embedder = Embedder(self.encoder)
        self.ledger = Ledger(self.encoder.representation_size, self.new_sums(), keeps_rows=self.keeps_rows)
        self._solution: tuple[Tensor, ...] | None = None

    # ---- what subclasses say --------------------------------------------------------------------

    def new_sums(self) -> Sequence[ClassSums]:
        """What is summed up, without any example yet."""
        return ()

    @property
    def keeps_rows(self) -> bool:
        """Whether the representation of every example is kept."""
        return isinstance(self.settings, KeepingSettings) and self.settings.keep_embeddings

    def features(self, rows: Tensor, number: int) -> Tensor:  # noqa: ARG002 (for several sums)
        """What the sum of that number adds up: whole numbers in float64, (examples, size)."""
        return rows.double()

    @abstractmethod
    def solve(self) -> tuple[Tensor, ...]:
        """What scores are computed from, out of the ledger as it is now."""

    def restore(self) -> tuple[Tensor, ...]:
        """The solution of a learner that was loaded: solved again, unless it was saved."""
        return self.solve()

    @abstractmethod
    def row_scores(self, rows: Tensor, solution: tuple[Tensor, ...]) -> Tensor:
        """Scores of representations on the grid, (examples, seen classes)."""

    # ---- learning and predicting ----------------------------------------------------------------

    def learn_task(self, task: Task) -> None:
        """Embed the texts, book them in, solve once."""
        with self.observer.stage(Stage.EMBEDDING):
            rows = self.embed(task.train)
        with self.observer.stage(Stage.SOLVING):
            self.ledger.grow_to(len(self.classes))
            self.ledger.book_in(rows, self._indices(task.train), self.features)
            self._solution = self.solve()

    def embed(self, examples: Sequence[Example]) -> Tensor:
        """Representations on the grid, (examples, representation size); each text is encoded once."""
        return on_grid(self.embedder(examples))

    def scores(self, examples: Sequence[Example]) -> Tensor:
        """Scores of all seen classes for each example, (examples, seen classes), on the CPU."""
        return self._scores(self.embed(examples))

    def class_scores(self, batch: Batch) -> Tensor:
        """Scores of all seen classes, (batch, seen classes)."""
        return self._scores(on_grid(self.encoder.represent(batch).cpu()))

    def _scores(self, rows: Tensor) -> Tensor:
        if self._solution is None:
            self._solution = self._restored()
        scores = torch.cat([self.row_scores(chunk, self._solution) for chunk in torch.split(rows, CHUNK)])
        is_empty = self.ledger.class_sizes(len(self.classes)) == 0
        if bool(is_empty.any()):  # a class named without examples is never the answer
            scores[:, is_empty] = scores.amin(dim=1, keepdim=True) - 1.0
        return scores.float()

    def _restored(self) -> tuple[Tensor, ...]:
        try:
            return self.restore()
        except (np.linalg.LinAlgError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
            raise InvalidData("The sums loaded belong to no texts: restore the saved learner.") from error

    @property
    def can_predict(self) -> bool:
        """Whether any class is known."""
        return len(self.classes) > 0

    def statistics_bytes(self) -> int:
        """Bytes of everything that is saved beside the encoder."""
        saved = self.state_dict().items()
        return sum(value.nbytes for name, value in saved if not name.startswith("encoder."))

    def check_loaded(self) -> None:
        """Raise `InvalidData` where a kept row belongs to no class."""
        self.ledger.kept.check(len(self.classes))

    # ---- exact forgetting and union -------------------------------------------------------------

    def regroup_classes(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Become what the learner would be, had it seen these classes only, and under these names."""
        place = {name: index for index, name in enumerate(self.classes)}
        indices = [[place[name] for name in names] for names in groups.values()]
        self.ledger.regroup(indices, len(self.classes), self.features)
        self.classes = list(groups)
        self._solution = self.solve()

    def forget_examples(self, examples: Sequence[Example]) -> None:
        """Become what the learner would be, had it never seen these examples; emptied classes vanish."""
        indices = self._indices(examples)
        taken = torch.bincount(indices, minlength=len(self.classes))
        left = self.ledger.class_sizes(len(self.classes)) - taken
        if bool((left < 0).any()):
            name = self.classes[int(left.argmin())]
            raise InvalidData(f"More examples of {name!r} are to be forgotten than were learned.")
        self.ledger.book_out(self.embed(examples), indices, self.features)
        emptied = {self.classes[index] for index in indices.tolist() if left[index] == 0}
        self.regroup_classes({name: [name] for name in self.classes if name not in emptied})

    def absorb(self, other: "FrozenMethod") -> None:
        """Become what the learner would be, had it also seen all that another one learned."""
        if type(other) is not type(self) or other.settings != self.settings:
            raise InvalidSetting("Only learners of one method and with the same settings can be united.")
        if fingerprint(other.encoder) != fingerprint(self.encoder):
            raise InvalidSetting(
                f"Only learners on one encoder can be united, found {self.encoder.name!r} and "
                f"{other.encoder.name!r} with other weights or another input kind."
            )
        known = set(self.classes)
        self.classes += [name for name in other.classes if name not in known]
        place = {name: index for index, name in enumerate(self.classes)}
        self.tasks_learned += other.tasks_learned
        self.ledger.grow_to(len(self.classes))
        self.ledger.absorb(other.ledger, [place[name] for name in other.classes])
        self._solution = self.solve()

    def _indices(self, examples: Sequence[Example]) -> Tensor:
        """The index of each example's class."""
        index = {name: at for at, name in enumerate(self.classes)}
        for example in examples:
            if example.label not in index:
                raise UnknownName("class", example.label, self.classes)
        return torch.tensor([index[example.label] for example in examples], dtype=torch.int64)
