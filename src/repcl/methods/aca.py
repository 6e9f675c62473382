"""ACA (Wang et al., 2022): synthetic relations make initial learning harder; EMAR or RP-CRE does the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Batches, InputKind, Task, TokenizedExample
from repcl.methods.base import Method
from repcl.methods.emar import EMAR, EMARSettings
from repcl.methods.prototypical import PrototypeMethod, PrototypeSettings
from repcl.methods.rp_cre import RPCRE, RPCRESettings
from repcl.methods.search_ranges import Dimension
from repcl.methods.settings import MethodSettings
from repcl.model import GrowingLinear
from repcl.training import LossTerms, Stage

SYMMETRIC = (
    *("P26", "P3373"),  # FewRel: spouse, sibling
    *("per:siblings", "per:spouse", "per:alternate_names", "per:other_family", "org:alternate_names"),
)


class ACASettings(EMARSettings, RPCRESettings):
    """Settings of ACA, with those of both hosts."""

    host: Literal["emar", "rp_cre"] = Field("emar", description="the method that ACA is added to")
    initial_epochs: int = Field(2, ge=1, description="epochs on a new task, with EMAR as host")
    replay_epochs: int = Field(
        2, ge=1, description="rounds of activation and reconsolidation, with EMAR as host"
    )
    rp_cre_epochs: int = Field(10, ge=1, description="epochs of each of the two stages, with RP-CRE as host")
    hybrid_classes: bool = Field(True, description="add mixtures of two classes")
    reversed_classes: bool = Field(True, description="add classes with head and tail swapped")
    window: int = Field(5, ge=0, description="tokens kept on either side of an entity in a mixture")
    spare_rows: int = Field(
        3, ge=0, description="classifier rows for synthetic classes, per class of a task; more if needed"
    )
    keep_spare_rows_in_activation: bool = Field(
        False,
        description="keep new spare rows in the softmax of EMAR's activation, too, as the authors' code does",
    )
    symmetric_classes: tuple[str, ...] = Field(
        SYMMETRIC, description="classes that are not reversed; the authors' code lacks per:spouse"
    )

    search: ClassVar[Mapping[str, Dimension]] = PrototypeSettings.search


class ACA(PrototypeMethod):
    """Adversarial class augmentation: initial learning meets synthetic classes beside the real ones.

    The rest is done by a host: EMAR, as in the paper's row, or RP-CRE (`aca@rp_cre`).
    """

    Settings: ClassVar[type[ACASettings]] = ACASettings
    settings: ACASettings
    kinds: ClassVar[tuple[InputKind, ...]] = ("relation",)
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"rp_cre": {"host": "rp_cre"}}

    @classmethod
    def for_settings(cls, settings: MethodSettings) -> type[Method]:
        """The class with the chosen host."""
        is_on_rp_cre = isinstance(settings, ACASettings) and settings.host == "rp_cre"
        return ACAOnRPCRE if is_on_rp_cre else ACAOnEMAR

    def learn_new(self, task: Task) -> None:
        """Initial learning on new and synthetic examples alike; then the synthetic classes are dropped."""
        real = self.batches(task.train, self.settings.batch_size)
        synthetic = self.synthetic_classes(task)
        spare = self.new_spare_rows(max(self.settings.spare_rows * len(task.classes), len(synthetic)))
        first = len(self.head.output.weight)
        batches = Batches(
            [*real.rows, *(row for rows in synthetic for row in rows)],
            [*real.labels, *(first + index for index, rows in enumerate(synthetic) for _ in rows)],
            batch_size=real.batch_size,
            pad_id=real.pad_id,
            device=real.device,
            generator=real.generator,
        )
        losses = self.classify_beside(spare)
        self.run(Stage.INITIAL_LEARNING, batches, losses, self.initial_epochs, also_train=[spare])

    def synthetic_classes(self, task: Task) -> list[list[TokenizedExample]]:
        """Examples of the task's hybrid classes, then of its reversed classes."""
        settings, encoder = self.settings, self.encoder
        before, after = encoder.frame
        mixer = RelationMixer(
            markers=tuple(encoder.tokenizer.get_vocab()[marker] for marker in encoder.readout.markers),
            frame=(len(before), len(after)),
            longest=encoder.max_length,
            window=settings.window,
        )
        rows = {
            name: encoder.tokenize([example for example in task.train if example.label == name])
            for name in task.classes
        }
        directed = [name for name in rows if name not in settings.symmetric_classes]
        return [
            *(mixer.hybrid_classes(list(rows.values())) if settings.hybrid_classes else []),
            *([mixer.reverse(row) for row in rows[name]] for name in directed if settings.reversed_classes),
        ]

    def new_spare_rows(self, count: int) -> GrowingLinear:
        """Classifier rows for synthetic classes."""
        rows = GrowingLinear(self.prototypes.shape[1], is_uniform=True).to(self.encoder.device)
        rows.grow_to(count)
        return rows

    def classify_beside(self, spare: GrowingLinear) -> Callable[[Batch], LossTerms]:
        """Cross-entropy over real classes and, after them, spare rows."""

        def losses(batch: Batch) -> LossTerms:
            features = self.exemplar_features(batch)
            scores = torch.cat([self.head.output(features), spare(features)], dim=1)
            return {"ce": cross_entropy(scores, batch.labels)}

        return losses


class ACAOnEMAR(ACA, EMAR):
    """ACA with EMAR as its host."""

    Settings: ClassVar[type[ACASettings]] = ACASettings
    settings: ACASettings

    def activate(self, task: Task) -> None:
        """EMAR's activation; where set, beside spare rows, which are never the right answer."""
        if self.settings.keep_spare_rows_in_activation:
            everything = self.batches([*self.drawn_memory(), *task.train], self.settings.batch_size)
            spare = self.new_spare_rows(self.settings.spare_rows * len(task.classes))
            self.run(Stage.ACTIVATION, everything, self.classify_beside(spare), 1, also_train=[spare])
        else:
            super().activate(task)


class ACAOnRPCRE(ACA, RPCRE):
    """ACA with RP-CRE as its host, which has its own number of epochs."""

    Settings: ClassVar[type[ACASettings]] = ACASettings
    settings: ACASettings

    @property
    def initial_epochs(self) -> int:
        """Epochs on a new task."""
        return self.settings.rp_cre_epochs

    @property
    def replay_epochs(self) -> int:
        """Epochs on the memory."""
        return self.settings.rp_cre_epochs


@dataclass(frozen=True)
class RelationMixer:
    """Makes examples of synthetic relations (ACA, Wang et al., 2022).

    Attributes:
        markers: ids of the tokens that open and close the head, then the tail.
        frame: how many special tokens stand before and after every text.
        longest: most tokens of an example.
        window: tokens kept on either side of an entity in a hybrid.
    """

    markers: tuple[int, ...]
    frame: tuple[int, int]
    longest: int
    window: int = 5

    def hybrid_classes(self, classes: Sequence[Sequence[TokenizedExample]]) -> list[list[TokenizedExample]]:
        """A class for each class of the first half with its counterpart in the second, paired by position."""
        half = len(classes) // 2
        return [
            [
                mixed
                for first, second in zip(classes[at], classes[at + half], strict=False)
                if (mixed := self.hybrid(first, second)) is not None
            ]
            for at in range(half)
        ]

    def hybrid(self, first: TokenizedExample, second: TokenizedExample) -> TokenizedExample | None:
        """The head of one and the tail of the other example; nothing where a tail comes before its head."""
        before, after = self.frame
        texts = [row.ids[before : len(row.ids) - after] for row in (first, second)]
        if not all(self._is_marked(text) for text in texts):
            return None
        found = [[text.index(marker) for marker in self.markers] for text in texts]
        if any(tail <= head for head, _, tail, _ in found):
            return None
        (head, head_end, tail, _), (_, other_head_end, other_tail, other_tail_end) = found
        left = texts[0][max(0, head - self.window) : min(head_end + self.window + 1, tail)]
        right = texts[1][max(other_head_end + 1, other_tail - self.window) : other_tail_end + self.window + 1]
        ids = (*first.ids[:before], *left, *right, *first.ids[len(first.ids) - after :])
        if not self._is_marked(ids) or len(ids) > self.longest:  # nested entities lose markers on the way
            return None
        openings = (ids.index(self.markers[0]), ids.index(self.markers[2]))
        return TokenizedExample(ids, tuple((start, start + 1) for start in openings))

    def reverse(self, row: TokenizedExample) -> TokenizedExample:
        """The same text with head and tail exchanged; its own inverse."""
        head, head_end, tail, tail_end = self.markers
        swap = {head: tail, tail: head, head_end: tail_end, tail_end: head_end}
        return TokenizedExample(tuple(swap.get(token, token) for token in row.ids), row.spans[::-1])

    def _is_marked(self, ids: Sequence[int]) -> bool:
        return all(ids.count(marker) == 1 for marker in self.markers)
