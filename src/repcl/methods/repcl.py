"""RepCL (Song et al., 2023): contrastive and generative learning of a new task, then adversarial replay."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any, ClassVar, Literal, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Batches, Task
from repcl.errors import InvalidSetting
from repcl.losses import info_nce, masked_token_loss, supervised_contrast, supervised_info_nce
from repcl.methods.base import Method
from repcl.methods.retention import RetentionSettings, retention
from repcl.methods.search_ranges import Dimension, Range
from repcl.methods.settings import ClassifierSettings, ReplaySettings
from repcl.model import drop_other_rows, output_indices, output_rows
from repcl.model.heads import plain_linear
from repcl.model.products import linear
from repcl.training import LossTerms, Stage, adversarial_losses, ascend, default_groups, run_stage

IN_PASS_SHARE = 0.25  # most of a batch has to stay readable

Module = TypeVar("Module", bound=nn.Module)


class RepCLSettings(ClassifierSettings, ReplaySettings, RetentionSettings):
    """Settings of RepCL; the defaults are the paper's for HWU64."""

    warmup_epochs: float = Field(2.0, ge=0, description="epochs in which the learning rates rise from zero")
    contrast: Literal["supinfonce", "supcon", "infonce", "none"] = Field(
        "supinfonce", description="the contrastive loss of initial learning"
    )
    contrast_reads: Literal["representation", "hidden"] = Field(
        "representation",
        description="what the contrastive loss compares: representations, or the output of the classifier's "
        "hidden layer, as in the authors' code",
    )
    contrast_weight: float = Field(0.05, ge=0, description="λ1, weight of the contrastive loss")
    temperature: float = Field(0.05, gt=0, description="τ of the contrastive loss")
    queue_size: int = Field(
        512, ge=1, description="Q, representations in the contrastive queue; at most the size of the task"
    )
    momentum: float = Field(0.99, ge=0, le=1, description="η, how slowly the momentum encoder follows")
    generation: Literal["xmlm", "mlm", "none"] = Field(
        "xmlm", description="the generative loss of initial learning; mlm predicts without the other text"
    )
    generation_weight: float = Field(0.1, ge=0, description="λ2, weight of the generative loss")
    mask_probability: float = Field(0.4, ge=0, le=1, description="p, share of tokens masked")
    generation_share: float = Field(
        1.0, gt=0, le=1, description="share of a batch that the generative loss is computed on"
    )
    adversarial: bool = Field(True, description="adversarial replay; without it replay is plain")
    adversarial_steps: int = Field(2, ge=1, description="K, steps of the attack on each exemplar")
    adversarial_step_size: float = Field(0.1, ge=0, description="α, size of each step of the attack")
    adversarial_radius: float = Field(0.2, ge=0, description="ε, largest perturbation; 0 for no limit")
    clean_weight: float = Field(
        1.0, ge=0, description="weight of the loss on unperturbed exemplars, next to the adversarial one"
    )
    generation_in_pass: bool | None = Field(
        None,
        description="mask at most a quarter of the batch and let its other texts help, instead of encoding "
        "more texts; fast: yes",
    )
    task_vocabulary: bool | None = Field(
        None, description="predict masked tokens only among those that occur in task and memory; fast: yes"
    )
    cached_attack: bool | None = Field(
        None,
        description="keep each exemplar's perturbation from epoch to epoch, so that an attack takes one "
        "pass; fast: yes",
    )
    draw: int = Field(
        0,
        ge=0,
        description="another number gives different initial weights, orders and dropout on the same data",
    )

    @property
    def other_draw(self) -> int:
        """Which of several runs on the same data this is."""
        return self.draw

    fast: ClassVar[Mapping[str, Any]] = {
        **ClassifierSettings.fast,
        "generation_in_pass": True,
        "task_vocabulary": True,
        "cached_attack": True,
    }
    exact: ClassVar[Mapping[str, Any]] = {
        **ClassifierSettings.exact,
        "generation_in_pass": False,
        "task_vocabulary": False,
        "cached_attack": False,
    }
    search: ClassVar[Mapping[str, Dimension]] = {
        **ClassifierSettings.search,
        "contrast_weight": Range(0.01, 0.5, is_log=True, unless={"contrast": "none"}),
        "generation_weight": Range(0.01, 0.5, is_log=True, unless={"generation": "none"}),
        "temperature": Range(0.02, 0.2, is_log=True, unless={"contrast": "none"}),
        "mask_probability": Range(0.1, 0.6, unless={"generation": "none"}),
        # with two steps from a zero start the radius acts only below the step size: one of them is enough
        "adversarial_step_size": Range(0.02, 0.2, is_log=True, unless={"adversarial": False}),
    }


class RepCL(Method):
    """Learn class-relevant features of each new task, then replay a K-means memory under attack."""

    Settings: ClassVar[type[RepCLSettings]] = RepCLSettings
    settings: RepCLSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "no-con": {"contrast": "none"},
        "no-xmlm": {"generation": "none"},
        "no-adv": {"adversarial": False},
        "mlm": {"generation": "mlm"},
        "supcon": {"contrast": "supcon"},
        "infonce": {"contrast": "infonce"},
        "retain": {"retain": 0.1},
        # of the study of what RepCL gains by (docs/beyond.md)
        "hidden-contrast": {"contrast_reads": "hidden"},
        "all-texts-xmlm": {"generation_share": 1.0},
        "weak-xmlm": {"generation_weight": 0.02},
        "no-clean": {"clean_weight": 0.0},
        "three-steps": {"adversarial_steps": 3},
        "long": {"initial_epochs": 10, "replay_epochs": 10, "momentum": 0.99},
        "fast-momentum": {"momentum": 0.98},
        "slow": {"learning_rate": 2e-5},
        "draw-1": {"draw": 1},
        "draw-2": {"draw": 2},
    }

    def build_parts(self) -> None:
        """The head of the contrastive loss."""
        encoder = self.encoder
        width = encoder.word_embeddings.embedding_dim
        if width != encoder.hidden_size:  # tokens are recovered, and attacked, in the space of the embeddings
            raise InvalidSetting(
                f"Expected an encoder whose word embeddings are as wide as its states, found {width} and "
                f"{encoder.hidden_size}: choose another encoder, or another method than 'repcl'."
            )
        reads_hidden = self.settings.contrast_reads == "hidden"
        size = self.head.output.weight.shape[1] if reads_hidden else encoder.representation_size
        self.contrast = ContrastHead(size, encoder.hidden_size).to(encoder.device)

    def learn_task(self, task: Task) -> None:
        """Initial learning, memory update, and from the second task on adversarial replay."""
        self.grow_head()
        self._learn_new(task)
        self.remember(task)
        if self.tasks_learned > 0:
            self._replay()

    def _learn_new(self, task: Task) -> None:
        """L_init = L_ce + λ1 L_con + λ2 L_xmlm, with a new momentum branch and a new token head."""
        settings = self.settings
        batches = self.batches(task.train, settings.batch_size)
        retain = retention(self, task.train, settings.retain)
        has_tokens = settings.generation != "none"
        # any token of the vocabulary may be predicted
        with self.occurring_rows(others_learn=has_tokens and not settings.task_vocabulary):
            contrast = self._contrast_loss(batches) if settings.contrast != "none" else None
            generate, token_head = self._generation_loss(batches) if has_tokens else (None, None)

            def losses(batch: Batch) -> LossTerms:
                generated: Tensor | None = None
                if token_head is not None and settings.generation_in_pass:
                    representation, generated = self._read_masked(batch, token_head)
                else:
                    representation = self.encoder.represent(batch)
                    if generate:
                        generated = generate(batch, representation)
                terms = {"ce": cross_entropy(self.head(representation), batch.labels)}
                if contrast:
                    terms["con"] = settings.contrast_weight * contrast(batch, representation)
                if generated is not None:
                    terms[settings.generation] = settings.generation_weight * generated
                if retain:
                    terms["retain"] = retain(batch, representation)
                return terms

            also = [token_head] if token_head is not None else []
            stage = settings.stage(settings.initial_epochs)
            groups = default_groups(self, stage, also=also)
            run_stage(self, Stage.INITIAL_LEARNING, batches, losses, stage, groups=groups)

    def _contrast_loss(self, batches: Batches) -> Callable[[Batch, Tensor], Tensor]:
        """The loss of anchors against momentum keys of the batch and of the queue."""
        settings = self.settings
        reads_hidden, source = settings.contrast_reads == "hidden", self._key_head()
        encoder, key_head = momentum_copy(self.encoder), momentum_copy(source)
        drop_other_rows(encoder.word_embeddings)
        queue = self._first_queue(batches)

        def loss(batch: Batch, representation: Tensor) -> Tensor:
            follow(encoder, self.encoder, decay=settings.momentum)
            follow(key_head, source, decay=settings.momentum)
            with torch.no_grad():
                keys = key_head(encoder.represent(batch))
            candidates = torch.cat([keys, queue.keys])
            labels = torch.cat([batch.labels, queue.labels])
            own = torch.arange(len(batch), device=keys.device)
            anchors = self.contrast(self.head.features(representation) if reads_hidden else representation)
            queue.push(keys, batch.labels)
            if settings.contrast == "infonce":
                return info_nce(anchors, candidates, temperature=settings.temperature, own_key=own)
            supervised = supervised_info_nce if settings.contrast == "supinfonce" else supervised_contrast
            return supervised(
                anchors, batch.labels, candidates, labels, temperature=settings.temperature, own_key=own
            )

        return loss

    def _key_head(self) -> nn.Module:
        """From representations to keys: the projection, behind the hidden layer if that is read."""
        if self.settings.contrast_reads == "hidden":
            return nn.Sequential(self.head.hidden, self.contrast.projection)
        return self.contrast.projection

    @torch.no_grad()
    def _first_queue(self, batches: Batches) -> "KeyQueue":
        """Projections of the first Q training texts in shuffled order, in evaluation mode."""
        size = min(self.settings.queue_size, len(batches.rows))
        keys: list[Tensor] = []
        labels: list[Tensor] = []
        self.eval()
        for batch in batches:
            keys.append(self._key_head()(self.encoder.represent(batch)))
            labels.append(batch.labels)
            if sum(map(len, keys)) >= size:
                break
        return KeyQueue(size, torch.cat(keys), torch.cat(labels))

    def _generation_loss(self, batches: Batches) -> "tuple[Callable[[Batch, Tensor], Tensor], TokenHead]":
        """The loss of recovering masked tokens of another text of the same class."""
        settings, encoder = self.settings, self.encoder
        is_crossed, share = settings.generation == "xmlm", settings.generation_share
        table = encoder.word_embeddings
        vocabulary = sum(map(len, output_rows(table)))
        head = TokenHead(
            encoder.hidden_size, encoder.representation_size if is_crossed else 0, vocabulary
        ).to(encoder.device)

        def loss(batch: Batch, representation: Tensor) -> Tensor:
            # A random part of the batch gives the same gradient on average, at a part of the price.
            rows = torch.randperm(len(batch), generator=self.generator)[: ceil(share * len(batch))]
            partners = same_class_partners(batch.positions[rows].tolist(), batches.labels, self.generator)
            other = batches.take(partners)
            ids, masked = self._mask(other)
            states = encoder(replace(other, ids=ids))
            helpers = representation[rows][masked.nonzero()[:, 0]]  # f(x) of each masked token's partner
            return self._recovery_loss(head, states[masked], helpers, other.ids[masked])

        return loss, head

    def _read_masked(self, batch: Batch, head: "TokenHead") -> tuple[Tensor, Tensor]:
        """Representations of a batch, some of its texts masked, and the loss of recovering their tokens."""
        share = min(self.settings.generation_share, IN_PASS_SHARE)
        chosen, partners = clean_partners(batch.labels, ceil(share * len(batch)), self.generator)
        ids, masked = self._mask(batch)
        is_chosen = torch.zeros_like(batch.labels, dtype=torch.bool)
        is_chosen[chosen] = True
        masked &= is_chosen[:, None]
        states = self.encoder(replace(batch, ids=torch.where(masked, ids, batch.ids)))
        representation = self.encoder.readout.pool(states, batch)
        helped_by = torch.zeros_like(batch.labels)
        helped_by[chosen] = partners
        helpers = representation[helped_by[masked.nonzero()[:, 0]]]
        return representation, self._recovery_loss(head, states[masked], helpers, batch.ids[masked])

    def _mask(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The ids of a batch with some tokens masked, and which."""
        special = torch.tensor(self.encoder.special_ids, device=batch.ids.device)
        return mask_tokens(
            batch.ids,
            ~torch.isin(batch.ids, special) & batch.mask.bool(),
            probability=self.settings.mask_probability,
            mask_id=self.encoder.mask_id,
            generator=self.generator,
        )

    def _recovery_loss(self, head: "TokenHead", states: Tensor, helpers: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of masked tokens from their states and, unless it is plain MLM, their helpers."""
        table = self.encoder.word_embeddings
        help_ = helpers if self.settings.generation == "xmlm" else None
        scores = head(states, help_, *output_rows(table))
        return masked_token_loss(scores, output_indices(table, targets))

    def _replay(self) -> None:
        """L_replay = L_ce + L_adv on the balanced memory."""
        settings = self.settings
        batches = self.memory_batches(settings.batch_size)
        losses: Callable[[Batch], LossTerms | Iterator[LossTerms]] = self.classify
        if settings.adversarial:
            losses = partial(self._attacked_again, {}) if settings.cached_attack else self._attacked
        run_stage(self, Stage.REPLAY, batches, losses, settings.stage(settings.replay_epochs))

    def _attacked(self, batch: Batch) -> Iterator[LossTerms]:
        settings = self.settings
        zeros = torch.zeros(*batch.ids.shape, self.encoder.hidden_size, device=batch.ids.device)
        return adversarial_losses(
            lambda delta: cross_entropy(self.head(self.encoder.represent(batch, delta)), batch.labels),
            zeros,
            steps=settings.adversarial_steps,
            step_size=settings.adversarial_step_size,
            radius=settings.adversarial_radius,
            clean_weight=settings.clean_weight,
        )

    def _attacked_again(self, kept: dict[int, Tensor], batch: Batch) -> Iterator[LossTerms]:
        """One pass: half of the texts under the perturbation that their last one led to, half clean.

        Args:
            kept: perturbation of each exemplar, (its length, hidden), by its position; grows here.
            batch: the exemplars.
        """
        settings, lengths = self.settings, batch.mask.sum(dim=1).tolist()
        start = torch.zeros(*batch.ids.shape, self.encoder.hidden_size, device=batch.ids.device)
        positions = batch.positions.tolist()
        for row in torch.randperm(len(batch), generator=self.generator)[: len(batch) // 2].tolist():
            if positions[row] in kept:
                start[row, : lengths[row]] = kept[positions[row]]
        start.requires_grad_()
        loss = cross_entropy(self.head(self.encoder.represent(batch, start)), batch.labels)
        yield {"attacked": (settings.clean_weight + 1.0) * loss}
        if start.grad is not None:
            self.processes.average_gradients([start])  # each process knows that of its own rows only
            moved = ascend(
                start,
                start.grad,
                step_size=settings.adversarial_step_size,
                radius=settings.adversarial_radius,
            )
            kept.update({at: moved[row, : lengths[row]] for row, at in enumerate(positions)})


class ContrastHead(nn.Module):
    """Projection for keys, projection and prediction for anchors (the asymmetry of MoCoSE)."""

    def __init__(self, size: int, hidden: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.projection = nn.Sequential(
            plain_linear(size, hidden),
            plain_linear(hidden, hidden),
            nn.LayerNorm(hidden),
            nn.Dropout(dropout),
        )
        self.prediction = nn.Sequential(
            plain_linear(hidden, hidden),
            nn.LayerNorm(hidden),
            nn.Dropout(dropout),
            plain_linear(hidden, hidden),
            nn.Tanh(),
        )

    def forward(self, representation: Tensor) -> Tensor:
        """Anchors, (batch, hidden)."""
        anchors: Tensor = self.prediction(self.projection(representation))
        return anchors


class KeyQueue:
    """Keys of recent batches, newest first, at most `size` of them."""

    def __init__(self, size: int, keys: Tensor, labels: Tensor) -> None:
        self.size = size
        self.keys = keys[:size].detach()
        self.labels = labels[:size]

    def push(self, keys: Tensor, labels: Tensor) -> None:
        """Put a batch in front and drop what is too old."""
        self.keys = torch.cat([keys.detach(), self.keys])[: self.size]
        self.labels = torch.cat([labels, self.labels])[: self.size]


def momentum_copy(module: Module) -> Module:
    """A copy that follows its source by `follow`; it keeps dropout on, as in the authors' code."""
    return copy.deepcopy(module).requires_grad_(False).train()


@torch.no_grad()
def follow(momentum: nn.Module, source: nn.Module, *, decay: float) -> None:
    """Exponential moving average: θ' ← decay · θ' + (1 − decay) · θ."""
    targets: dict[str, Tensor] = dict(momentum.named_parameters())
    sources: dict[str, Tensor] = dict(source.named_parameters())
    torch._foreach_lerp_(list(targets.values()), [sources[name] for name in targets], 1.0 - decay)


class TokenHead(nn.Module):
    """Predicts masked tokens from their states, helped by a representation; output tied to the embeddings."""

    def __init__(self, hidden: int, help_size: int, vocabulary: int) -> None:
        super().__init__()
        self.transform = nn.Sequential(
            plain_linear(hidden + help_size, hidden), nn.GELU(), nn.LayerNorm(hidden)
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor, help_: Tensor | None, *embeddings: Tensor) -> Tensor:
        """(masked, hidden) and (masked, help_size) or nothing -> (masked, vocabulary) scores.

        The embeddings may come in parts, whose rows stand one after another in the vocabulary.
        """
        inputs = states if help_ is None else torch.cat([states, help_], dim=1)
        transformed = self.transform(inputs)
        biases = torch.split(self.bias, [len(part) for part in embeddings])
        scores = map(linear, [transformed] * len(embeddings), embeddings, biases)
        return torch.cat(list(scores), dim=1)


def same_class_partners(
    positions: Sequence[int], labels: Sequence[int], generator: torch.Generator
) -> list[int]:
    """For each row another row of the same class, drawn uniformly; itself only when it is alone.

    Args:
        positions: rows that need a partner.
        labels: the class of every row.
        generator: where the draws come from.
    """
    members: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    partners = []
    for row in positions:
        others = members[labels[row]]
        if len(others) == 1:
            partners.append(row)
            continue
        # Drawing among the others = drawing a shift, so no list without the row has to be built.
        shift = int(torch.randint(1, len(others), (1,), generator=generator))
        partners.append(others[(others.index(row) + shift) % len(others)])
    return partners


def clean_partners(labels: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """At most `count` random rows, and for each another row of its class that is not among them.

    Rows whose class has no other row left are dropped.

    Args:
        labels: (batch,) the class of each row.
        count: how many rows are wanted.
        generator: where the draws come from, on the CPU.
    """
    order = torch.randperm(len(labels), generator=generator)
    chosen, others = order[:count], order[count:]
    own = labels.cpu()
    is_partner = own[chosen][:, None] == own[others]  # (chosen, others)
    has_one = is_partner.any(dim=1)
    if not has_one.any():
        return chosen[:0].to(labels.device), chosen[:0].to(labels.device)
    drawn = torch.multinomial(is_partner[has_one].float(), 1, generator=generator)[:, 0]
    return chosen[has_one].to(labels.device), others[drawn].to(labels.device)


def mask_tokens(
    ids: Tensor, maskable: Tensor, *, probability: float, mask_id: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Replace each maskable token by the mask token with a probability.

    Args:
        ids: (batch, length) token ids.
        maskable: (batch, length) booleans, false for special tokens, markers and padding.
        probability: of each token by itself; there is no 80/10/10 rule.
        mask_id: the mask token.
        generator: where the draws come from, on the CPU.

    Returns:
        The masked ids and (batch, length) booleans that say where.
    """
    drawn = torch.rand(ids.shape, generator=generator).to(ids.device) < probability
    masked = drawn & maskable
    return ids.masked_fill(masked, mask_id), masked
