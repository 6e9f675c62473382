"""What learners on a frozen encoder share: they embed texts, book them in a ledger, and answer from it.

Representations have unit length and lie on a grid of 16 bits, so all sums over them are exact. What such a
learner knows is the same for any order of tasks, and anything it learned can be taken away without a trace.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from repcl.allocator import release_freed_memory
from repcl.data import Batch, Example, Task
from repcl.errors import InvalidData, InvalidSetting
from repcl.methods.base import is_of_encoder
from repcl.methods.frozen.cosines import nearest_cosines
from repcl.methods.frozen.ledger import Ledger
from repcl.methods.frozen.left_out import (
    MOST_ASKED,
    MOST_PAIRS,
    LeftOut,
    nearest_others,
    next_of_classes,
    pair_keys,
    row_keys,
    spread_sample,
    times_of,
)
from repcl.methods.frozen.random_features import on_grid
from repcl.methods.frozen.reader import FrozenReader, FrozenSettings
from repcl.methods.frozen.shared_texts import LeftOutTexts, SharedLedger, SharedTexts
from repcl.methods.frozen.strangers import Strangers
from repcl.methods.frozen.sums import ClassSums
from repcl.model import fingerprint
from repcl.training import Stage

CHUNK = 1024
FEW_ROWS = 64
SUMS, SOLUTION = "ledger.sums.", "solution."


class KeepingSettings(FrozenSettings):
    """Settings of learners that may keep the embedding of every text."""

    keep_embeddings: bool = Field(
        True,
        description="keep each text's embedding, 2 bytes per number, to forget a class without its texts",
    )


class SharingSettings(KeepingSettings):
    """Settings of learners that may give a text several labels."""

    multilabel: bool = Field(False, description="a text may have several labels; they are learned one by one")

    @model_validator(mode="after")
    def _keeps_what_it_needs(self) -> "SharingSettings":
        if self.multilabel and not self.keep_embeddings:
            raise ValueError(
                "several labels per text (multilabel) need keep_embeddings = true, which is off where "
                "memory_per_class and holdout_per_class are 0"
            )
        return self


class FrozenMethod(FrozenReader):
    """A learner on a frozen encoder.

    Subclasses say what is summed up, how sums become a solution, and a solution scores.
    """

    takes_back_exactly = True
    has_closed_form: ClassVar[bool] = True
    """Whether leaving one text out is a matter of arithmetic."""

    def build_parts(self) -> None:
        """The ledger, without any example yet."""
        super().build_parts()
        ledger = SharedLedger if self.is_multilabel else Ledger
        self.ledger = ledger(self.encoder.representation_size, self.new_sums(), keeps_rows=self.keeps_rows)
        self._solution: tuple[Tensor, ...] | None = None

    # ---- what subclasses say --------------------------------------------------------------------

    def new_sums(self) -> Sequence[ClassSums]:
        """What is summed up, without any example yet."""
        return ()

    @property
    def keeps_rows(self) -> bool:
        """Whether the representation of every example is kept."""
        return isinstance(self.settings, KeepingSettings) and self.settings.keep_embeddings

    @property
    def is_multilabel(self) -> bool:
        """Whether a text may have several labels."""
        return isinstance(self.settings, SharingSettings) and self.settings.multilabel

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
            self.ledger.book_in(rows, self.indices(task.train), self.features)
            del rows  # they are kept, or not needed any more
            release_freed_memory()
            self._solution = self.solve()
            release_freed_memory()

    def scores(self, examples: Sequence[Example]) -> Tensor:
        """Scores of all seen classes for each example, (examples, seen classes), on the CPU."""
        return self._scores(self.embed(examples))

    def class_scores(self, batch: Batch) -> Tensor:
        """Scores of all seen classes, (batch, seen classes)."""
        return self._scores(on_grid(self.encoder.represent(batch).cpu()))

    def kept_scores(self, which: Tensor) -> Tensor:
        """Scores of rows that are kept, (rows, seen classes)."""
        return self._scores(self.ledger.kept.rows[which])

    def _scores(self, rows: Tensor) -> Tensor:
        if self._solution is None:
            self._solution = self._sound(self.restore)
        scores = torch.cat([self.row_scores(chunk, self._solution) for chunk in torch.split(rows, CHUNK)])
        return self._without_empty(scores).float()

    def _without_empty(self, scores: Tensor) -> Tensor:
        sizes = self.ledger.class_sizes(len(self.classes))
        return without_empty(scores, sizes) if bool((sizes == 0).any()) else scores

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
        return sum(value.nbytes for name, value in saved if not is_of_encoder(name))

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

    def derived_shapes(self) -> dict[str, tuple[int, ...]]:
        """Those of the solution and of the sums."""
        found = {f"{SOLUTION}{index}": shape for index, shape in enumerate(self.solution_shapes())}
        return found | (self._sum_shapes() if self.keeps_rows else {})

    def _sum_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all sums; they are not made yet, for those of many classes take much memory."""
        return {
            f"{SUMS}{number}.{name}": shape
            for number, part in enumerate(self.ledger.parts())
            for name, shape in part.shapes(len(self.classes)).items()
        }

    def take_derived(self, found: Mapping[str, Tensor]) -> None:
        """Take over sums and solution, or sum up the kept rows again; a solution follows when needed."""
        if self.keeps_rows and not self._take_sums(found):
            self.ledger.grow_to(len(self.classes))
            self.ledger.sum_up_again(self.features)
        numbers = sorted(int(name.removeprefix(SOLUTION)) for name in found if name.startswith(SOLUTION))
        parts = [found[f"{SOLUTION}{number}"] for number in numbers]
        if parts and self.fits(parts) and all(map(_is_finite, parts)):
            self._solution = tuple(parts)

    def _take_sums(self, found: Mapping[str, Tensor]) -> bool:
        if not all(
            name in found and found[name].shape == shape and not found[name].is_floating_point()
            for name, shape in self._sum_shapes().items()
        ):
            return False
        for number, part in enumerate(self.ledger.parts()):
            names = [name for name, _ in part.named_buffers(recurse=False)]
            part.take_over({name: found[f"{SUMS}{number}.{name}"] for name in names})
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
        nearest, nearest_stranger = nearest_others(kept, keys, few)
        labels, times = kept.labels[asked].long(), times_of(keys, kept.labels, asked)
        release_freed_memory()
        return LeftOut(
            indices=asked,
            keys=keys[asked],
            labels=labels,
            scores=self._without_empty(self.left_out_scores(kept.rows[asked], labels, times)),
            near=torch.searchsorted(keys[asked], keys[few]),
            nearest=nearest,
            nearest_stranger=nearest_stranger,
        )

    def next_left_out(self, names: Collection[str], most: int = MOST_ASKED) -> Tensor:
        """Keys of more texts of some classes, as many again as `left_out` asks of each and there are."""
        kept = self.ledger.kept
        classes = torch.tensor([index for index, name in enumerate(self.classes) if name in names])
        keys = row_keys(kept.rows)
        return keys[next_of_classes(kept.labels, keys, classes, most)]

    def left_out_by_key(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Keys, labels and scores of the learned texts with such keys, each as if it had not been learned."""
        kept = self.ledger.kept
        known = row_keys(kept.rows)
        asked = torch.isin(known, keys).nonzero()[:, 0]
        labels, times = kept.labels[asked].long(), times_of(known, kept.labels, asked)
        scores = self._without_empty(self.left_out_scores(kept.rows[asked], labels, times))
        return known[asked], labels, scores

    def left_out_examples(self, examples: Sequence[Example]) -> Tensor:
        """Scores of examples that were learned, each as if it had not been, (examples, seen classes)."""
        kept, rows, labels = self.ledger.kept, self.embed(examples), self.indices(examples)
        pairs = pair_keys(row_keys(rows), labels)
        known, copies = torch.unique(pair_keys(row_keys(kept.rows), kept.labels), return_counts=True)
        times = copies[torch.searchsorted(known, pairs).clamp(max=len(known) - 1)].double()
        release_freed_memory()
        return self._without_empty(self.left_out_scores(rows, labels, times))

    def strangers(self, most: int = MOST_ASKED) -> Strangers | None:  # noqa: ARG002 (for learners that can)
        """At most so many learned texts as they would look had none of their class been learned.

        None where the scores of other classes do not depend on the class, or hardly, or not by a closed form.
        """
        return None

    def nearness(self, examples: Sequence[Example]) -> Tensor:
        """Cosine of each example with the nearest one learned, (examples,)."""
        rows = self.embed(examples)
        if not len(rows):
            return torch.zeros(0)
        kept = self.ledger.kept.rows.numpy()
        found = [nearest_cosines(chunk.numpy(), kept) for chunk in torch.split(rows, CHUNK)]
        return torch.from_numpy(np.concatenate(found))

    def left_out_scores(self, rows: Tensor, labels: Tensor, times: Tensor) -> Tensor:
        """Scores of kept rows, each as if it had not been learned, (examples, seen classes).

        Args:
            rows: to be left out, one after another.
            labels: the indices of their classes.
            times: how many copies of each were learned as its class; they are left out together.
        """
        raise NotImplementedError(f"{type(self).__name__} has no closed form")

    def left_out_texts(self, most: int = MOST_ASKED) -> LeftOutTexts:
        """The same where a text may have several labels: it is left out with all of them."""
        texts = SharedTexts.of(self.ledger.kept, len(self.classes))
        asked = texts.spread(most)
        few = texts.spread(min(most, MOST_PAIRS // max(1, len(texts.keys))))
        nearest, nearest_stranger = texts.nearest_others(few)
        has_label = texts.has_label[asked]
        return LeftOutTexts(
            keys=texts.keys[asked],
            has_label=has_label,
            scores=self._without_empty(self.left_out_text_scores(texts.rows[asked], has_label)),
            stands_for=texts.stands_for(asked),
            near=torch.searchsorted(asked, few),
            nearest=nearest,
            nearest_stranger=nearest_stranger,
        )

    def left_out_text_scores(self, rows: Tensor, has_label: Tensor) -> Tensor:
        """Scores of texts with several labels, each as if it had not been learned, (texts, seen classes)."""
        raise NotImplementedError(f"{type(self).__name__} gives each text one label")

    # ---- exact forgetting and union -------------------------------------------------------------

    def regroup_classes(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Become what the learner would be, had it seen these classes only, and under these names."""
        index_of = {name: index for index, name in enumerate(self.classes)}
        indices = [[index_of[name] for name in names] for names in groups.values()]
        self._solution = None  # of many classes it takes as much memory as the next one
        self.ledger.regroup(indices, len(self.classes), self.features)
        self.classes = list(groups)
        release_freed_memory()
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

    def find_kept(self, examples: Sequence[Example], *, are_known: bool = False) -> list[int | None]:
        """The index of each example among the kept rows of its class; None where it is not kept.

        Args:
            examples: each with the label it was learned with.
            are_known: whether they are known to have been learned, perhaps on another machine.
        """
        return self.ledger.find(self.embed(examples), self.indices(examples), are_known=are_known)

    def take_back(self, examples: Sequence[Example], *, are_known: bool = True) -> None:
        """Take examples out of the sums; `learn` or `regroup_classes` has to follow, which solves.

        Args:
            examples: each with the label it was learned with.
            are_known: whether they are known to have been learned; else what was not is refused, as far as
                anything kept can tell.
        """
        if not examples:
            return
        indices = self.indices(examples)
        taken = torch.bincount(indices, minlength=len(self.classes))
        left = self.ledger.class_sizes(len(self.classes)) - taken
        if bool((left < 0).any()) and not self.is_multilabel:
            name = self.classes[int(left.argmin())]
            raise InvalidData(f"More examples of {name!r} are to be forgotten than were learned.")
        self.ledger.book_out(self.embed(examples), indices, self.features, are_known=are_known)
        self._solution = None

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
        index_of = {name: index for index, name in enumerate(self.classes)}
        self.tasks_learned += other.tasks_learned
        self.ledger.grow_to(len(self.classes))
        indices = [index_of[name] for name in other.classes]
        if self.is_multilabel:  # both may know one text
            theirs = other.ledger.kept
            labels = torch.tensor(indices, dtype=torch.int64)[theirs.labels.long()]
            self.ledger.book_in(theirs.rows, labels, self.features)
        else:
            self.ledger.absorb(other.ledger, indices)
        self._solution = self.solve()


def _is_finite(part: Tensor) -> bool:
    """Whether a part of a solution has nothing but numbers; torch makes a copy of what it is asked about."""
    return all(bool(rows.isfinite().all()) for rows in torch.split(part, FEW_ROWS))


def without_empty(scores: Tensor, class_sizes: Tensor) -> Tensor:
    """The scores, those of classes without examples below all others: they are never the answer."""
    return torch.where(class_sizes == 0, scores.amin(dim=1, keepdim=True) - 1.0, scores)
