"""RepCL (Song et al., 2023): contrastive and generative learning of a new task, then adversarial replay."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from repcl.data import Batch, Batches, Task, mask_tokens, same_class_partners
from repcl.losses import info_nce, masked_token_loss, supervised_contrast, supervised_info_nce
from repcl.memory import KeyQueue
from repcl.methods.base import Method
from repcl.methods.retention import RetentionSettings, retention
from repcl.methods.settings import ClassifierSettings, MemorySettings
from repcl.model import ContrastHead, Encoder, TokenHead, follow, momentum_copy
from repcl.training import LossTerms, adversarial_losses, run_stage


class RepCLSettings(ClassifierSettings, MemorySettings, RetentionSettings):
    """Settings of RepCL; the defaults are the paper's for HWU64."""

    warmup_epochs: float = Field(2.0, ge=0, description="epochs in which the rates rise from zero")
    contrast: Literal["supinfonce", "supcon", "infonce", "none"] = Field(
        "supinfonce", description="the contrastive loss of initial learning"
    )
    contrast_weight: float = Field(0.05, ge=0, description="λ1")
    temperature: float = Field(0.05, gt=0, description="τ")
    queue_size: int = Field(512, ge=1, description="Q, at most the size of the task")
    momentum: float = Field(0.99, ge=0, le=1, description="η")
    generation: Literal["xmlm", "mlm", "none"] = Field(
        "xmlm", description="the generative loss of initial learning; mlm predicts without the other text"
    )
    generation_weight: float = Field(0.1, ge=0, description="λ2")
    mask_probability: float = Field(0.4, ge=0, le=1, description="p, share of tokens masked")
    generation_share: float = Field(
        1.0, gt=0, le=1, description="share of a batch that the generative loss is computed on"
    )
    adversarial: bool = Field(True, description="adversarial replay; without it replay is plain")
    adversarial_steps: int = Field(2, ge=1, description="K")
    adversarial_step_size: float = Field(0.1, ge=0, description="α")
    adversarial_radius: float = Field(0.2, ge=0, description="ε; 0 for no limit")
    clean_weight: float = Field(1.0, ge=0, description="weight of the clean loss beside the adversarial one")


class RepCL(Method):
    """Learn class-relevant features of each new task, then replay a K-means memory under attack."""

    Settings: ClassVar[type[RepCLSettings]] = RepCLSettings
    settings: RepCLSettings
    paper = "Song et al., 2023"
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "no-con": {"contrast": "none"},
        "no-xmlm": {"generation": "none"},
        "no-adv": {"adversarial": False},
        "mlm": {"generation": "mlm"},
        "supcon": {"contrast": "supcon"},
        "infonce": {"contrast": "infonce"},
        "retain": {"retain": 0.1},
    }

    def __init__(
        self, encoder: Encoder, settings: RepCLSettings, *, seed: int = 0, expected_classes: int = 0
    ) -> None:
        super().__init__(encoder, settings, seed=seed, expected_classes=expected_classes)
        self.contrast = ContrastHead(encoder.representation_size, encoder.hidden_size).to(encoder.device)

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
        contrast = self._contrast_loss(batches) if settings.contrast != "none" else None
        generate, token_head = (
            self._generation_loss(batches) if settings.generation != "none" else (None, None)
        )

        def losses(batch: Batch) -> LossTerms:
            representation = self.encoder.represent(batch)
            terms = {"ce": cross_entropy(self.head(representation), batch.labels)}
            if contrast:
                terms["con"] = settings.contrast_weight * contrast(batch, representation)
            if generate:
                terms[settings.generation] = settings.generation_weight * generate(batch, representation)
            if retain:
                terms["retain"] = retain(batch, representation)
            return terms

        also = [token_head] if token_head is not None else []
        stage = settings.stage(settings.initial_epochs)
        run_stage(self, "initial learning", batches, losses, stage, also_train=also)

    def _contrast_loss(self, batches: Batches) -> Callable[[Batch, Tensor], Tensor]:
        """The loss of anchors against momentum keys of the batch and of the queue."""
        settings = self.settings
        encoder, projection = momentum_copy(self.encoder), momentum_copy(self.contrast.projection)
        queue = self._first_queue(batches)

        def loss(batch: Batch, representation: Tensor) -> Tensor:
            follow(encoder, self.encoder, decay=settings.momentum)
            follow(projection, self.contrast.projection, decay=settings.momentum)
            with torch.no_grad():
                keys = projection(encoder.represent(batch))
            candidates = torch.cat([keys, queue.keys])
            labels = torch.cat([batch.labels, queue.labels])
            own = torch.arange(len(batch), device=keys.device)
            anchors = self.contrast(representation)
            queue.push(keys, batch.labels)
            if settings.contrast == "infonce":
                return info_nce(anchors, candidates, temperature=settings.temperature, own_key=own)
            supervised = supervised_info_nce if settings.contrast == "supinfonce" else supervised_contrast
            return supervised(
                anchors, batch.labels, candidates, labels, temperature=settings.temperature, own_key=own
            )

        return loss

    @torch.no_grad()
    def _first_queue(self, batches: Batches) -> KeyQueue:
        """Projections of the first Q training texts in shuffled order, in evaluation mode."""
        size = min(self.settings.queue_size, len(batches.rows))
        keys: list[Tensor] = []
        labels: list[Tensor] = []
        self.eval()
        for batch in batches:
            keys.append(self.contrast.projection(self.encoder.represent(batch)))
            labels.append(batch.labels)
            if sum(map(len, keys)) >= size:
                break
        return KeyQueue(size, torch.cat(keys), torch.cat(labels))

    def _generation_loss(self, batches: Batches) -> tuple[Callable[[Batch, Tensor], Tensor], TokenHead]:
        """The loss of recovering masked tokens of another text of the same class."""
        settings, encoder = self.settings, self.encoder
        is_crossed, share = settings.generation == "xmlm", settings.generation_share
        embeddings = encoder.word_embeddings.weight
        head = TokenHead(
            encoder.hidden_size, encoder.representation_size if is_crossed else 0, len(embeddings)
        ).to(encoder.device)
        special = torch.tensor(encoder.special_ids, device=encoder.device)

        def loss(batch: Batch, representation: Tensor) -> Tensor:
            # A random part of the batch gives the same gradient on average, at a part of the price.
            rows = torch.randperm(len(batch), generator=self.generator)[: ceil(share * len(batch))]
            partners = same_class_partners(batch.positions[rows].tolist(), batches.labels, self.generator)
            other = batches.take(partners)
            ids, masked = mask_tokens(
                other.ids,
                ~torch.isin(other.ids, special) & other.mask.bool(),
                probability=settings.mask_probability,
                mask_id=int(encoder.tokenizer.mask_token_id),
                generator=self.generator,
            )
            states = encoder(Batch(ids, other.mask, other.spans, other.labels, other.positions))
            helpers = representation[rows][masked.nonzero()[:, 0]]  # f(x) of each masked token's partner
            scores = head(states[masked], helpers if is_crossed else None, encoder.word_embeddings.weight)
            return masked_token_loss(scores, other.ids[masked])

        return loss, head

    def _replay(self) -> None:
        """L_replay = L_ce + L_adv on the balanced memory."""
        settings = self.settings
        batches = self.batches(list(self.memory), settings.batch_size)
        losses = self._attacked if settings.adversarial else self.classify
        run_stage(self, "replay", batches, losses, settings.stage(settings.replay_epochs))

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
