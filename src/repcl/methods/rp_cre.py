"""RP-CRE (Cui et al., 2021): features look at all class prototypes before they are classified."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from repcl.data import Batch, Task
from repcl.methods.prototypical import PrototypeMethod, PrototypeSettings
from repcl.methods.search_ranges import Dimension, Range
from repcl.training import LossTerms, ParameterGroup, Stage


class RPCRESettings(PrototypeSettings):
    """Settings of RP-CRE."""

    network_learning_rate: float = Field(1e-4, gt=0, description="learning rate of the memory network")
    attention_heads: int = Field(4, ge=1, description="attention heads of the memory network")
    key_size: int = Field(256, ge=1, description="size of a key in each head of the memory network")
    refresh_prototypes: bool = Field(
        False, description="renew the prototypes of old classes after initial learning"
    )

    search: ClassVar[Mapping[str, Dimension]] = {
        **PrototypeSettings.search,
        "network_learning_rate": Range(1e-5, 1e-3, is_log=True),
    }


class MemoryNetwork(nn.Module):
    """Refines features by attention to prototypes; one block of H heads with keys of size a.

    Every LayerNorm of queries, keys and values runs over all heads of a row together, as in the authors'
    code. Only the feature's own row is ever read, so only that row is computed.
    """

    def __init__(self, size: int, *, heads: int = 4, key_size: int = 256, value_size: int = 768) -> None:
        super().__init__()
        self.query = nn.Linear(size, heads * key_size)
        self.key_value = nn.Linear(size, heads * (key_size + value_size))
        self.merge = nn.Linear(heads * value_size, size)
        self.output = nn.Linear(size, size)
        self.query_norm = nn.LayerNorm((heads, key_size))
        self.key_norm = nn.LayerNorm((heads, key_size))
        self.value_norm = nn.LayerNorm((heads, value_size))
        self.merge_norm, self.attention_norm, self.output_norm = (nn.LayerNorm(size) for _ in range(3))

    def forward(self, features: Tensor, prototypes: Tensor) -> Tensor:
        """(batch, size) and (classes, size) -> refined features, (batch, size)."""
        own_keys, own_values = self._keys_and_values(features)  # (batch, heads, ...)
        keys, values = self._keys_and_values(prototypes)  # (classes, heads, ...)
        weights = self.attention(features, own_keys, keys)
        attended = torch.einsum("bhc,chv->bhv", weights[..., :-1], values) + weights[..., -1:] * own_values
        mixed = self.attention_norm(self.merge_norm(self.merge(attended.flatten(1))) + features)
        refined: Tensor = self.output_norm(gelu(self.output(mixed)) + mixed)
        return refined

    def attention(self, features: Tensor, own_keys: Tensor, keys: Tensor) -> Tensor:
        """How much each feature looks at each prototype and, last, at itself: (batch, heads, classes + 1)."""
        heads, key_size = self.query_norm.normalized_shape
        queries = self.query_norm(self.query(features).unflatten(1, (heads, key_size))) * key_size**-0.5
        to_prototypes = torch.einsum("bha,cha->bhc", queries, keys)
        to_itself = (queries * own_keys).sum(dim=2, keepdim=True)
        return torch.cat([to_prototypes, to_itself], dim=2).softmax(dim=2)

    def _keys_and_values(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        heads, key_size = self.key_norm.normalized_shape
        both = self.key_value(rows).unflatten(1, (heads, -1))
        return self.key_norm(both[..., :key_size]), self.value_norm(both[..., key_size:])


class RPCRE(PrototypeMethod):
    """Initial learning, then balanced training of encoder, classifier and a new memory network."""

    Settings: ClassVar[type[RPCRESettings]] = RPCRESettings
    settings: RPCRESettings
    clips_apart = True

    def build_parts(self) -> None:
        """Prototypes, and a memory network."""
        super().build_parts()
        self.network = self.new_network()

    def learn_task(self, task: Task) -> None:
        """Old prototypes, initial learning, new prototypes, balanced training, final exemplars."""
        others = [name for name in self.memory.classes if name not in task.classes]
        earlier = {name: self.memory.of(name) for name in task.classes}
        self.grow_head()
        old = self.exemplar_prototypes(others)
        self.learn_new(task)
        self.remember(task)
        if self.settings.refresh_prototypes:
            old = self.exemplar_prototypes(others)
        self.network = self.new_network()
        self.balance(torch.cat([old, self.exemplar_prototypes(task.classes)]))
        # The first choice was provisional: the encoder has moved, so exemplars are chosen once more.
        for name, exemplars in earlier.items():
            self.memory.keep(name, exemplars)
        self.remember(task)
        self.prototypes = self.exemplar_prototypes(self.classes)

    def balance(self, prototypes: Tensor) -> None:
        """Cross-entropy of refined features on the memory; the prototypes stay as they are."""
        drawn = self.memory_batches(self.settings.batch_size)
        # As in the authors' code the order of the batches is drawn once and the same in every epoch, unless
        # an epoch shows a part of the memory only.
        batches = list(drawn) if self.replay_budget is None else drawn
        # the network learns faster than the encoder and more slowly than the classifier
        network = ParameterGroup(
            (self.network,),
            self.settings.network_learning_rate,
            is_clipped_alone=True,
            decays_only_matrices=True,
        )

        def losses(batch: Batch) -> LossTerms:
            return {"ce": cross_entropy(self.refined_scores(batch, prototypes), batch.labels)}

        self.run(Stage.REPLAY, batches, losses, self.replay_epochs, also_groups=[network])

    def refined_scores(self, batch: Batch, prototypes: Tensor) -> Tensor:
        """Scores of all classes the head has, from features that have seen the prototypes."""
        scores: Tensor = self.head.output(self.network(self.exemplar_features(batch), prototypes))
        return scores

    def class_scores(self, batch: Batch) -> Tensor:
        """Refined scores of the seen classes."""
        return self.refined_scores(batch, self.prototypes)[:, : len(self.classes)]

    def new_network(self) -> MemoryNetwork:
        """A memory network with random weights."""
        size = self.prototypes.shape[1]
        return MemoryNetwork(
            size,
            heads=self.settings.attention_heads,
            key_size=self.settings.key_size,
            value_size=size,
        ).to(self.encoder.device)
