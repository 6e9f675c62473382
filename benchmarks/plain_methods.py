"""FEA and RepCL as one writes them first: clear, right, and with no thought of speed.

The methods of the package are compared with them (`benchmarks/speed.py`). Objectives and settings are the
same. Batches are drawn at random and padded to their longest text, the optimizer is AdamW as it comes, every
loss has a pass of its own, and an attack of K steps takes K + 1 passes.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoTokenizer

from repcl.losses import supervised_info_nce
from repcl.memory import nearest_to_centers
from repcl.methods.fea import FEASettings
from repcl.methods.repcl import RepCLSettings

Texts = list[tuple[str, int]]
"""Texts with the numbers of their classes."""
SliceEnds = Callable[[str], None]
"""Is told the stage of what was done since the last time."""


class PlainFEA(nn.Module):
    """Learn the new task alone, then tune on a balanced memory.

    Args:
        folder: of the pretrained encoder.
        classes: how many there will be.
        settings: those of the method that it stands for.
        ends: is told after every step.
    """

    def __init__(
        self, folder: Path, classes: int, settings: FEASettings | RepCLSettings, ends: SliceEnds
    ) -> None:
        super().__init__()
        self.settings: Any = settings
        self.ends = ends
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.encoder = AutoModel.from_pretrained(folder)
        size = self.size = self.encoder.config.hidden_size
        self.hidden = nn.Sequential(
            nn.Dropout(settings.head_dropout), nn.Linear(size, size), nn.GELU(), nn.LayerNorm(size)
        )
        self.output = nn.Linear(size, classes, bias=False)
        self.memory: Texts = []

    def learn(self, texts: Texts) -> None:
        """Initial learning, memory update, and from the second task on replay."""
        is_first = not self.memory
        self.ends("other")
        self.begin(texts)
        self.train_on(texts, "initial learning", self.settings.initial_epochs, self.learn_batch)
        self.update_memory(texts)
        if not is_first:
            self.train_on(self.memory, "replay", self.settings.replay_epochs, self.replay_batch)

    def begin(self, texts: Texts) -> None:
        """Nothing to prepare."""

    def learn_batch(self, batch: Texts) -> None:
        """The backward pass of one batch of new texts."""
        self.classify(self.tokenize(batch), labels_of(batch)).backward()

    def replay_batch(self, batch: Texts) -> None:
        """The backward pass of one batch of exemplars."""
        self.classify(self.tokenize(batch), labels_of(batch)).backward()

    def train_on(self, texts: Texts, stage: str, epochs: int, backward: Callable[[Texts], None]) -> None:
        """Some epochs with AdamW, a rate that rises at first, and clipped gradients."""
        settings = self.settings
        heads = [value for name, value in self.named_parameters() if not name.startswith("encoder.")]
        optimizer = torch.optim.AdamW(
            [
                {"params": list(self.encoder.parameters()), "lr": settings.learning_rate},
                {"params": heads, "lr": settings.head_learning_rate},
            ],
            weight_decay=settings.weight_decay,
        )
        warmup = max(1.0, settings.warmup_epochs * -(-len(texts) // settings.batch_size))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / warmup))
        self.train()
        for _ in range(epochs):
            for batch in random_batches(texts, settings.batch_size):
                backward(batch)
                nn.utils.clip_grad_norm_(self.parameters(), settings.clip_norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                self.ends(stage)

    @torch.no_grad()
    def update_memory(self, texts: Texts) -> None:
        """Keep the texts of each new class that are nearest to the centers of its clusters."""
        self.eval()
        for label in sorted({label for _, label in texts}):
            own = [(text, label) for text, other in texts if other == label]
            features = self.hidden(self.represent(self.tokenize(own))).numpy()
            chosen = nearest_to_centers(features, self.settings.memory_per_class)
            self.memory += [own[index] for index in chosen]
        self.ends("memory update")

    def tokenize(self, batch: Texts) -> dict[str, Tensor]:
        """Ids and mask, padded to the longest text."""
        found = self.tokenizer(
            [text for text, _ in batch],
            padding=True,
            truncation=True,
            max_length=self.encoder.config.max_position_embeddings - 2,
            return_tensors="pt",
        )
        return {name: found[name] for name in ("input_ids", "attention_mask")}

    def represent(self, inputs: dict[str, Tensor]) -> Tensor:
        """Mean states, (batch, size)."""
        return mean_states(self.encoder(**inputs).last_hidden_state, inputs["attention_mask"])

    def classify(self, inputs: dict[str, Tensor], labels: Tensor) -> Tensor:
        """Cross-entropy over all classes."""
        return cross_entropy(self.output(self.hidden(self.represent(inputs))), labels)


class PlainRepCL(PlainFEA):
    """FEA with contrastive and generative losses on the new task, and replay under attack."""

    def __init__(self, folder: Path, classes: int, settings: RepCLSettings, ends: SliceEnds) -> None:
        super().__init__(folder, classes, settings, ends)
        size = self.size
        self.projection = nn.Sequential(
            nn.Linear(size, size), nn.Linear(size, size), nn.LayerNorm(size), nn.Dropout(0.1)
        )
        self.prediction = nn.Sequential(
            nn.Linear(size, size), nn.LayerNorm(size), nn.Dropout(0.1), nn.Linear(size, size), nn.Tanh()
        )
        self.recovery = nn.Sequential(nn.Linear(2 * size, size), nn.GELU(), nn.LayerNorm(size))

    def begin(self, texts: Texts) -> None:
        """A momentum copy of encoder and projection, and a queue of keys."""
        self.texts = texts
        self.momentum = copy.deepcopy(self.encoder), copy.deepcopy(self.projection)
        self.eval()
        first = next(random_batches(texts, self.settings.queue_size))
        with torch.no_grad():
            keys = [
                self.projection(self.represent(self.tokenize(part))) for part in random_batches(first, 64)
            ]
        self.keys, self.key_labels = torch.cat(keys), labels_of(first)
        for part in self.momentum:
            part.train()
        self.ends("other")

    def learn_batch(self, batch: Texts) -> None:
        """Cross-entropy, contrast with momentum keys, and masked tokens of other texts of the same class."""
        inputs, labels = self.tokenize(batch), labels_of(batch)
        representation = self.represent(inputs)
        loss = cross_entropy(self.output(self.hidden(representation)), labels)
        loss = loss + self.settings.contrast_weight * self.contrast(inputs, labels, representation)
        share = max(1, round(self.settings.generation_share * len(batch)))
        rows = torch.randperm(len(batch))[:share].tolist()
        partners = [self.partner(*batch[row]) for row in rows]
        loss = loss + self.settings.generation_weight * self.recover(partners, representation[rows])
        loss.backward()

    def contrast(self, inputs: dict[str, Tensor], labels: Tensor, representation: Tensor) -> Tensor:
        """Anchors against the keys of the batch and of the queue."""
        encoder, projection = self.momentum
        with torch.no_grad():
            for slow, fast in ((encoder, self.encoder), (projection, self.projection)):
                for average, value in zip(slow.parameters(), fast.parameters(), strict=True):
                    average.mul_(self.settings.momentum).add_(value, alpha=1 - self.settings.momentum)
            keys = projection(mean_states(encoder(**inputs).last_hidden_state, inputs["attention_mask"]))
        anchors = self.prediction(self.projection(representation))
        candidates, of_candidates = torch.cat([keys, self.keys]), torch.cat([labels, self.key_labels])
        size = len(self.keys)
        self.keys, self.key_labels = candidates[:size], of_candidates[:size]
        return supervised_info_nce(
            anchors,
            labels,
            candidates,
            of_candidates,
            temperature=self.settings.temperature,
            own_key=torch.arange(len(labels)),
        )

    def partner(self, text: str, label: int) -> tuple[str, int]:
        """Another text of the same class."""
        others = [one for one in self.texts if one[1] == label and one[0] != text]
        return others[int(torch.randint(len(others), ()))] if others else (text, label)

    def recover(self, batch: Texts, helpers: Tensor) -> Tensor:
        """Cross-entropy of masked tokens over the whole vocabulary."""
        inputs = self.tokenize(batch)
        ids = inputs["input_ids"]
        special = torch.isin(ids, torch.tensor(self.tokenizer.all_special_ids))
        masked = (torch.rand(ids.shape) < self.settings.mask_probability) & ~special
        hidden = ids.masked_fill(masked, self.tokenizer.mask_token_id)
        states = self.encoder(input_ids=hidden, attention_mask=inputs["attention_mask"]).last_hidden_state
        helped = torch.cat([states[masked], helpers[masked.nonzero()[:, 0]]], dim=1)
        scores = self.recovery(helped) @ self.encoder.get_input_embeddings().weight.T
        return cross_entropy(scores, ids[masked], reduction="sum") / max(1, int(masked.sum()))

    def replay_batch(self, batch: Texts) -> None:
        """A clean pass, then the passes of the attack, each with its share of the adversarial loss."""
        settings, inputs, labels = self.settings, self.tokenize(batch), labels_of(batch)
        (settings.clean_weight * self.classify(inputs, labels)).backward()
        delta = torch.zeros(*inputs["input_ids"].shape, self.size)
        for _ in range(settings.adversarial_steps):
            delta = delta.detach().requires_grad_()
            words = self.encoder.get_input_embeddings()(inputs["input_ids"])
            attacked = {"inputs_embeds": words + delta, "attention_mask": inputs["attention_mask"]}
            (self.classify(attacked, labels) / settings.adversarial_steps).backward()
            delta = delta + settings.adversarial_step_size * delta.grad / norms(delta.grad)
            delta = delta * (settings.adversarial_radius / norms(delta)).clamp(max=1.0)


def random_batches(texts: Texts, size: int) -> Iterator[Texts]:
    """Shuffled batches of any lengths."""
    order = torch.randperm(len(texts)).tolist()
    for at in range(0, len(order), size):
        yield [texts[row] for row in order[at : at + size]]


def labels_of(batch: Sequence[tuple[str, int]]) -> Tensor:
    return torch.tensor([label for _, label in batch])


def mean_states(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over real tokens, (batch, size)."""
    weights = mask[:, :, None].float()
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def norms(values: Tensor) -> Tensor:
    """Norm of each sentence, (batch, 1, 1)."""
    return values.flatten(1).norm(dim=1).clamp_min(1e-8)[:, None, None]
