"""KDRK (Yu et al., 2021): distillation and replay, with knowledge moved between old and new classes."""

import math
from collections.abc import Callable, Mapping
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softmax

from repcl.data import Batch, Task
from repcl.losses import soft_cross_entropy
from repcl.methods.distilling import SELECTIONS, DistillingMethod, DistillingSettings, Teacher, by_classes
from repcl.methods.search_ranges import Dimension, Range


class KDRKSettings(DistillingSettings):
    """Settings of KDRK."""

    none_threshold: float = Field(
        0.9,
        ge=0,
        le=1,
        description="new examples that the teacher calls None less surely than this teach old classes",
    )
    likeness_threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="without a virtual None: new examples teach an old class if it is likelier than this",
    )
    soften_replay: bool = Field(
        True,
        description="on exemplars, the temperature softens the student, too, not only the teacher",
    )
    transfer: Literal["first", "second", "none"] = Field(
        "first",
        description="how new classifier rows start: by the paper's rule, by its second version, or at random",
    )
    transfer_sharpness: float = Field(1.0, ge=0, description="τ_kt, multiplies scores when rows are mixed")
    own_share: float = Field(
        0.5, ge=0, le=1, description="δ, share of a class's own mean, in the second version"
    )
    gate: float = Field(0.25, ge=0, le=1, description="α, the largest share of transfer in a new row")
    gate_decay: Annotated[float, Field(ge=0)] | Literal["median"] = Field(
        0.05,
        description="γ, how fast that share falls with more examples; median: to half α at the median class",
    )

    search: ClassVar[Mapping[str, Dimension]] = {
        **DistillingSettings.search,
        "temperature": Range(1.0, 5.0),
        "gate": Range(0.0, 0.5, unless={"transfer": "none"}),
        "none_threshold": Range(0.5, 0.99, unless={"virtual_none": False}),
    }


class KDRK(DistillingMethod):
    """New data teach old classes by self-training; new classifier rows start from old ones."""

    Settings: ClassVar[type[KDRKSettings]] = KDRKSettings
    settings: KDRKSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "balanced": {"replay_weights": "balanced"},
        "median-gate": {"gate_decay": "median"},
        "no-none": {"virtual_none": False},
        "no-transfer": {"transfer": "none"},
        "sharp-replay": {"soften_replay": False},
    }

    def learn_task(self, task: Task) -> None:
        """The first task is plain; later ones start with rows made from old ones and replay in pairs."""
        if self.tasks_learned == 0:
            self.learn_first(task)
        else:
            self._learn_next(task)
        self.remember(task)

    def _learn_next(self, task: Task) -> None:
        """Each part gives (n_old D + n_new L_ce) / (n_old + n_new); D has self-training on new data only."""
        settings = self.settings
        of_new, of_memory = self.teacher(task.train), self.teacher(list(self.memory))
        old, old_rows = of_new.slots.shape[1], self.head.output.weight.data
        self.grow_head()
        if settings.transfer != "none":
            self.start_rows(task, of_new.features, old_rows)

        def loss(batch: Batch, teacher: Teacher, distil: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
            slots = self.slots(self.exemplar_features(batch))
            distilled = distil(slots[:, :old], teacher.of(batch)[1])
            return by_classes(distilled, self.hard_loss(slots, batch.labels), old=old, new=len(task.classes))

        self.learn_in_pairs(
            task,
            lambda batch: loss(batch, of_new, self.self_trained),
            lambda batch: loss(batch, of_memory, self.replayed),
        )

    def replayed(self, slots: Tensor, old_slots: Tensor) -> Tensor:
        """D^M, distillation on exemplars.

        In the authors' code only the teacher has the temperature here. A student that learns softened answers
        without one softens its own: the scores of old classes become T times smaller at every task.
        """
        softness = self.settings.temperature
        return soft_cross_entropy(
            slots,
            old_slots,
            temperature=softness if self.settings.soften_replay else 1.0,
            target_temperature=softness,
        )

    def self_trained(self, slots: Tensor, old_slots: Tensor) -> Tensor:
        """D' = (B D + Σ_V e) / (B + |V|): distillation, and sharpened answers where an old class is seen."""
        settings, softness = self.settings, self.settings.temperature
        answers = softmax(softness * old_slots, dim=1)
        if settings.virtual_none:
            resembles_old = answers[:, 0] < settings.none_threshold
        else:
            resembles_old = answers.amax(dim=1) > settings.likeness_threshold
        distilled = soft_cross_entropy(slots, old_slots, temperature=softness, target_temperature=softness)
        self_taught = soft_cross_entropy(
            slots[resembles_old], old_slots[resembles_old], target_temperature=1.0 / softness
        )
        size, similar = len(slots), int(resembles_old.sum())
        return (size * distilled + similar * self_taught) / (size + similar)

    @torch.no_grad()
    def start_rows(self, task: Task, features: Tensor, old_rows: Tensor) -> None:
        """New rows W_c = g (p + r) + (1 - g) ξ, from the old model's features of the task's examples."""
        settings = self.settings
        new = {name: index for index, name in enumerate(self.classes) if index >= len(old_rows)}
        members = {name: [at for at, one in enumerate(task.train) if one.label == name] for name in new}
        decay = settings.gate_decay
        if decay == "median":
            decay = math.log(2) / max(median([len(own) for own in members.values()] or [1]), 1)
        for name, index in new.items():
            if not members[name]:
                continue
            own = features[members[name]]
            telling = SELECTIONS[settings.selection](own.cpu().numpy(), settings.memory_per_class)
            mixed = mixture_of_rows(
                own[telling],
                old_rows,
                has_none=settings.virtual_none,
                sharpness=settings.transfer_sharpness,
                own_share=settings.own_share if settings.transfer == "second" else None,
            )
            gate = transferred_share(len(own), gate=settings.gate, decay=decay)
            noise = typical_norm(old_rows) / math.sqrt(len(mixed)) * torch.randn_like(mixed)
            self.head.output.weight[index] = gate * mixed + (1 - gate) * noise


def transferred_share(examples: int, *, gate: float, decay: float) -> float:
    """Share g = α exp(-γ N) of transfer in the row of a class of N examples."""
    return gate * math.exp(-decay * examples)


def typical_norm(rows: Tensor) -> Tensor:
    """ρ, the mean length of classifier rows."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return norms.mean()


def mixture_of_rows(
    features: Tensor,
    rows: Tensor,
    *,
    has_none: bool = True,
    sharpness: float = 1.0,
    own_share: float | None = None,
) -> Tensor:
    """The sum p + r: a class's own features and the old rows they resemble, (dim,).

    Args:
        features: (examples, dim) of one new class, by the old model.
        rows: (old classes, dim) of the classifier.
        has_none: whether resemblance to None is the weight of the own part.
        sharpness: multiplies the scores.
        own_share: δ of the second version, which looks at the most probable slots only; None for the first.
    """
    scores = sharpness * features @ rows.T
    slots = torch.cat([scores.new_zeros(len(scores), 1), scores], dim=1) if has_none else scores
    weights = softmax(slots, dim=1)
    if own_share is not None:
        weights = most_probable(weights, has_none=has_none)
    own = weights[:, :1] if has_none else 1.0 - weights.amax(dim=1, keepdim=True)
    likeness = weights[:, 1:] if has_none else weights
    from_own = own * typical_norm(rows) * normalize(features, dim=1)
    if own_share is not None:
        from_own = own_share * from_own
        share = (likeness + 1e-8) / likeness.sum(dim=1, keepdim=True).clamp_min(1e-8)
        likeness = (1.0 - own_share * own) * share
    return (from_own + likeness @ rows).mean(dim=0)


def most_probable(weights: Tensor, *, has_none: bool, enough: float = 0.9) -> Tensor:
    """The most probable slots until `enough` is reached, at least two and always None, to sum one again."""
    ordered, order = weights.sort(dim=1, descending=True)
    is_kept = ordered.cumsum(dim=1) - ordered < enough
    is_kept[:, :2] = True
    is_kept = torch.zeros_like(is_kept).scatter(1, order, is_kept)
    is_kept[:, 0] |= has_none
    kept = weights * is_kept
    return kept / kept.sum(dim=1, keepdim=True)
