"""ACA (Wang et al., 2022): synthetic relations make initial learning harder; EMAR or RP-CRE does the rest."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Batches, InputKind, Task, TokenizedExample
from repcl.data.relations import RelationMixer
from repcl.methods.emar import EMAR, EMARSettings
from repcl.methods.rp_cre import RPCRE, RPCRESettings
from repcl.model import Encoder, GrowingLinear
from repcl.training import LossTerms

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
    rp_cre_epochs: int = Field(10, ge=1, description="epochs of either stage, with RP-CRE as host")
    hybrid_classes: bool = Field(True, description="add mixtures of two classes")
    reversed_classes: bool = Field(True, description="add classes with head and tail exchanged")
    window: int = Field(5, ge=0, description="tokens kept on either side of an entity in a mixture")
    spare_rows: int = Field(
        3, ge=0, description="classifier rows for synthetic classes, per class of a task; more if needed"
    )
    keep_spare_rows_in_activation: bool = Field(
        False, description="new spare rows in the softmax of EMAR's activation too, as in the authors' code"
    )
    symmetric_classes: tuple[str, ...] = Field(
        SYMMETRIC, description="classes that are not reversed; the authors' code lacks per:spouse"
    )


class ACA(EMAR, RPCRE):
    """Adversarial class augmentation of EMAR, the paper's row, or of RP-CRE (`aca@rp_cre`)."""

    Settings: ClassVar[type[ACASettings]] = ACASettings
    settings: ACASettings
    paper = "Wang et al., 2022"
    kinds: ClassVar[tuple[InputKind, ...]] = ("relation",)
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"rp_cre": {"host": "rp_cre"}}

    def __init__(
        self, encoder: Encoder, settings: ACASettings, *, seed: int = 0, expected_classes: int = 0
    ) -> None:
        if settings.host == "rp_cre":
            epochs = settings.rp_cre_epochs
            settings = settings.model_copy(update={"initial_epochs": epochs, "replay_epochs": epochs})
        super().__init__(encoder, settings, seed=seed, expected_classes=expected_classes)
        if settings.host == "emar":
            del self.network  # only RP-CRE has one

    @property
    def host(self) -> type[EMAR] | type[RPCRE]:
        """The method that ACA is added to."""
        return EMAR if self.settings.host == "emar" else RPCRE

    def learn_task(self, task: Task) -> None:
        """The host's procedure around the initial learning below."""
        self.host.learn_task(self, task)

    def class_scores(self, batch: Batch) -> Tensor:
        """The host's scores; synthetic classes have none."""
        return self.host.class_scores(self, batch)

    def learn_new(self, task: Task, *, clip_apart: bool = False) -> None:
        """Initial learning on new and synthetic examples alike; then the synthetic classes are dropped."""
        real = self.batches(task.train, self.settings.batch_size)
        synthetic = self.synthetic_classes(task)
        spare = self.new_spare_rows(max(self.settings.spare_rows * len(task.classes), len(synthetic)))
        first = len(self.head.output.weight)
        batches = Batches(
            [*real.rows, *(row for rows in synthetic for row in rows)],
            [*real.labels, *(first + place for place, rows in enumerate(synthetic) for _ in rows)],
            batch_size=real.batch_size,
            pad_id=real.pad_id,
            device=real.device,
            generator=real.generator,
        )
        self.run(
            "initial learning",
            batches,
            self.classify_beside(spare),
            self.settings.initial_epochs,
            also_train=[spare],
            clip_apart=clip_apart,
        )

    def activate(self, task: Task) -> None:
        """EMAR's activation, on request with spare rows as never correct answers."""
        if self.settings.keep_spare_rows_in_activation:
            everything = self.batches([*self.memory, *task.train], self.settings.batch_size)
            spare = self.new_spare_rows(self.settings.spare_rows * len(task.classes))
            self.run("activation", everything, self.classify_beside(spare), 1, also_train=[spare])
        else:
            super().activate(task)

    def synthetic_classes(self, task: Task) -> list[list[TokenizedExample]]:
        """Examples of the task's hybrid classes, then of its reversed classes."""
        settings, encoder = self.settings, self.encoder
        is_special = encoder.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
        mixer = RelationMixer(
            markers=tuple(encoder.tokenizer.get_vocab()[marker] for marker in encoder.readout.markers),
            frame=(is_special.index(0), is_special[::-1].index(0)),
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
        rows = GrowingLinear(self.prototypes.shape[1]).to(self.encoder.device)
        rows.grow_to(count)
        return rows

    def classify_beside(self, spare: GrowingLinear) -> Callable[[Batch], LossTerms]:
        """Cross-entropy over real classes and, after them, spare rows."""

        def losses(batch: Batch) -> LossTerms:
            features = self.exemplar_features(batch)
            scores = torch.cat([self.head.output(features), spare(features)], dim=1)
            return {"ce": cross_entropy(scores, batch.labels)}

        return losses
