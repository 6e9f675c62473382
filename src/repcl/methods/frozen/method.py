"""What learners on a frozen encoder share: they embed texts, book them in a ledger, and answer from it.

Representations have unit length and lie on a grid of 16 bits, so all sums over them are exact. What such a
learner knows is the same for any order of tasks, and anything it learned can be taken away without a trace.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from repcl.data import Batch, Example, InputKind, Task
from repcl.errors import InvalidData, InvalidSetting, UnknownName
from repcl.methods.base import Method
from repcl.methods.frozen.cosines import nearest_cosines
from repcl.methods.frozen.ledger import Ledger
from repcl.methods.frozen.left_out import (
    MOST_ASKED,
    MOST_PAIRS,
    LeftOut,
    nearest_others,
    row_keys,
    spread_sample,
)
from repcl.methods.frozen.random_features import on_grid
from repcl.methods.frozen.sums import ClassSums
from repcl.methods.settings import MethodSettings
from repcl.model import FROZEN_DEPTHS, LAST_LAYER, Embedder, Readout, fingerprint
from repcl.model.layered import frozen_readout
from repcl.training import Stage

CHUNK = 1024

SUMS, SOLUTION = "ledger.sums.", "solution."

Depth = Annotated[float, Field(ge=0, le=1)]


class FrozenSettings(MethodSettings):
    """Settings of all learners on a frozen encoder."""

    layers: tuple[Depth, ...] | None = Field(
        None,
        min_length=1,
        max_length=8,
        description="how deep the layers that are read lie, 0 for the word embeddings and 1 for the last "
        "layer; left open, those that serve the input kind best",
    )


class KeepingSettings(FrozenSettings):
    """Settings of learners that may keep the embedding of every text."""

    keep_embeddings: bool = Field(
        True,
        description="keep each text's embedding, 2 bytes per number, to forget a class without its texts",
    )


class FrozenMethod(Method):
    """A learner on a frozen encoder.

    Subclasses say what is summed up, how sums become a solution, and a solution scores.
    """

    settings: FrozenSettings
    takes_back_exactly = True
    has_closed_form: ClassVar[bool] = True
    """Whether leaving one text out is a matter of arithmetic."""
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"last-layer": {"layers": LAST_LAYER}}

    @classmethod
    def resolved(cls, settings: MethodSettings, kind: InputKind) -> MethodSettings:
        """The settings with the layers that serve the input kind best, where they are left open."""
        if not isinstance(settings, FrozenSettings) or settings.layers is not None:
            return settings
        return settings.model_copy(update={"layers": FROZEN_DEPTHS[kind]})

    @classmethod
    def readout(cls, settings: MethodSettings, kind: InputKind) -> Readout:
        """Several layers, side by side."""
        layers = settings.layers if isinstance(settings, FrozenSettings) else None
        return frozen_readout(kind, layers or FROZEN_DEPTHS[kind])

    def build_parts(self) -> None:
        """The ledger, without any example yet."""
        self.encoder.requires_grad_(False)
        readout = self.readout(self.settings, self.encoder.readout.kind)
        if (type(readout), readout.depths) != (type(self.encoder.readout), self.encoder.readout.depths):
            self.encoder.read_with(readout)
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
            self._solution = None  # of many classes it takes as much memory as the next one
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
            self._solution = self._sound(self.restore)
        scores = torch.cat([self.row_scores(chunk, self._solution) for chunk in torch.split(rows, CHUNK)])
        return self._without_empty(scores).float()

    def _without_empty(self, scores: Tensor) -> Tensor:
        return without_empty(scores, self.ledger.class_sizes(len(self.classes)))

    def exported_solution(self) -> dict[str, Tensor]:
        """The solution: all that changes when texts are learned."""
        if self._solution is None:
            self._solution = self._sound(self.restore)
        return {f"{SOLUTION}{index}": part for index, part in enumerate(self._solution)}

    def exported_answers(
        self, batch: Batch, class_sizes: Tensor, solution: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """Scores, and representations on the grid."""
        rows = on_grid(self.encoder.represent(batch))
        return without_empty(self.row_scores(rows, tuple(solution)), class_sizes), rows

    def _sound(self, solve: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """A solution of sums that may be any, because they were loaded or texts were taken from them."""
        try:
            return solve()
        except (np.linalg.LinAlgError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
            raise InvalidData(
                "The sums belong to no texts, for they are damaged or lost texts that were never learned: "
                "restore the saved learner."
            ) from error

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

    # ---- saving ---------------------------------------------------------------------------------

    @property
    def many_rows(self) -> Sequence[str]:
        """The kept rows."""
        return ("ledger.kept.rows",) if self.keeps_rows and len(self.ledger.kept.rows) else ()

    def derived(self) -> dict[str, Tensor]:
        """The solution, and the sums where all rows are kept that were summed up."""
        found = {f"{SOLUTION}{index}": part for index, part in enumerate(self._solution or ())}
        if self.keeps_rows:
            found |= {name: part for name, part in self.state_dict().items() if name.startswith(SUMS)}
        return found

    def take_derived(self, found: Mapping[str, Tensor]) -> None:
        """Take over sums and solution, or sum up the kept rows again; a solution follows when needed."""
        self.ledger.grow_to(len(self.classes))
        if self.keeps_rows and not self._take_sums(found):
            self.ledger.sum_up_again(self.features)
        numbers = sorted(int(name.removeprefix(SOLUTION)) for name in found if name.startswith(SOLUTION))
        parts = [found[f"{SOLUTION}{number}"] for number in numbers]
        if parts and self.fits(parts) and all(bool(part.isfinite().all()) for part in parts):
            self._solution = tuple(parts)

    def _take_sums(self, found: Mapping[str, Tensor]) -> bool:
        own = {name: part for name, part in self.state_dict().items() if name.startswith(SUMS)}
        if not all(
            name in found and found[name].shape == part.shape and not found[name].is_floating_point()
            for name, part in own.items()
        ):
            return False
        for name in own:
            path, _, leaf = name.rpartition(".")
            setattr(self.get_submodule(path), leaf, found[name].long())
        return True

    def fits(self, solution: Sequence[Tensor]) -> bool:
        """Whether tensors have the shapes of a solution."""
        expected = self.solution_shapes()
        return [tuple(part.shape) for part in solution] == expected and all(
            part.dtype == torch.float64 for part in solution
        )

    @abstractmethod
    def solution_shapes(self) -> list[tuple[int, ...]]:
        """The shapes that the parts of a solution have."""

    # ---- leaving texts out ----------------------------------------------------------------------

    @property
    def leaves_out(self) -> bool:
        """Whether the learner can say what it would answer to a text had it not learned it."""
        return self.has_closed_form and self.keeps_rows

    def left_out(self, most: int = MOST_ASKED) -> LeftOut:
        """Answers to at most so many of the texts learned, each as if it had not been learned."""
        kept = self.ledger.kept
        keys = row_keys(kept.rows)
        asked = spread_sample(kept.labels, keys, most)
        few = spread_sample(kept.labels, keys, min(most, MOST_PAIRS // max(1, len(kept.rows))))
        nearest, nearest_stranger = nearest_others(kept, few)
        labels = kept.labels[asked].long()
        return LeftOut(
            indices=asked,
            keys=keys[asked],
            labels=labels,
            scores=self._without_empty(self.left_out_scores(kept.rows[asked], labels)),
            near=torch.searchsorted(keys[asked], keys[few]),
            nearest=nearest,
            nearest_stranger=nearest_stranger,
        )

    def nearness(self, examples: Sequence[Example]) -> Tensor:
        """Cosine of each example with the nearest one learned, (examples,)."""
        rows = self.embed(examples)
        if not len(rows):
            return torch.zeros(0)
        kept = self.ledger.kept.rows.numpy()
        found = [nearest_cosines(chunk.numpy(), kept) for chunk in torch.split(rows, CHUNK)]
        return torch.from_numpy(np.concatenate(found))

    def left_out_scores(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Scores of kept rows, each as if it had not been learned, (examples, seen classes)."""
        raise NotImplementedError(f"{type(self).__name__} has no closed form")

    # ---- exact forgetting and union -------------------------------------------------------------

    def regroup_classes(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Become what the learner would be, had it seen these classes only, and under these names."""
        place = {name: index for index, name in enumerate(self.classes)}
        indices = [[place[name] for name in names] for names in groups.values()]
        self.ledger.regroup(indices, len(self.classes), self.features)
        self.classes, self._solution = list(groups), None
        self._solution = self._sound(self.solve)

    def class_sizes(self) -> dict[str, int]:
        """How many examples each class was learned from."""
        sizes = self.ledger.class_sizes(len(self.classes)).tolist()
        return dict(zip(self.classes, sizes, strict=True))

    def may_have_learned(self, examples: Sequence[Example]) -> list[bool]:
        """Whether each example is among those learned with its label, as far as anything kept can tell."""
        if not self.keeps_rows or not examples:
            return [True] * len(examples)
        return [index is not None for index in self.find_kept(examples)]

    def find_kept(self, examples: Sequence[Example]) -> list[int | None]:
        """The index of each example among the kept rows of its class; None where it is not kept."""
        return self.ledger.find(self.embed(examples), self._indices(examples))

    def take_back(self, examples: Sequence[Example], *, are_known: bool = True) -> None:
        """Take examples out of the sums; `learn` or `regroup_classes` has to follow, which solves.

        Args:
            examples: each with the label it was learned with.
            are_known: whether they are known to have been learned; else what was not is refused, as far as
                anything kept can tell.
        """
        if not examples:
            return
        indices = self._indices(examples)
        taken = torch.bincount(indices, minlength=len(self.classes))
        left = self.ledger.class_sizes(len(self.classes)) - taken
        if bool((left < 0).any()):
            name = self.classes[int(left.argmin())]
            raise InvalidData(f"More examples of {name!r} are to be forgotten than were learned.")
        self.ledger.book_out(self.embed(examples), indices, self.features, are_known=are_known)
        self._solution = None

    def forget_examples(self, examples: Sequence[Example]) -> None:
        """Become what the learner would be, had it never seen these examples; emptied classes vanish."""
        self.take_back(examples, are_known=False)
        touched, left = {example.label for example in examples}, self.class_sizes()
        self.regroup_classes({name: [name] for name in self.classes if name not in touched or left[name] > 0})

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


def without_empty(scores: Tensor, class_sizes: Tensor) -> Tensor:
    """The scores, those of classes without examples below all others: they are never the answer."""
    return torch.where(class_sizes == 0, scores.amin(dim=1, keepdim=True) - 1.0, scores)
