"""Small trainable parts on top of the encoder."""

import torch
from torch import Tensor, nn

INITIAL_SPREAD = 0.02


class GrowingLinear(nn.Module):
    """A linear layer, by default without bias, that gains a row for every new class."""

    def __init__(self, size: int, *, has_bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(0, size))
        self.bias = nn.Parameter(torch.empty(0)) if has_bias else None

    def grow_to(self, rows: int) -> None:
        """Add rows drawn from N(0, 0.02), bias 0, until there are `rows`; old rows stay as they are."""
        missing = rows - len(self.weight)
        if missing > 0:
            fresh = self.weight.new_empty(missing, self.weight.shape[1]).normal_(0.0, INITIAL_SPREAD)
            self.weight = nn.Parameter(torch.cat([self.weight.data, fresh]))
            if self.bias is not None:
                self.bias = nn.Parameter(torch.cat([self.bias.data, self.bias.new_zeros(missing)]))

    def forward(self, features: Tensor) -> Tensor:
        """(batch, size) -> (batch, rows)."""
        return nn.functional.linear(features, self.weight, self.bias)


class ClassifierHead(nn.Module):
    """The classifier of FEA and RepCL: dropout, one hidden layer (not for events), growing output."""

    def __init__(self, size: int, hidden: int, *, has_hidden_layer: bool, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Sequential()
        if has_hidden_layer:
            self.hidden = nn.Sequential(
                nn.Dropout(dropout), plain_linear(size, hidden), nn.GELU(), nn.LayerNorm(hidden)
            )
        self.output = GrowingLinear(hidden if has_hidden_layer else size)

    def features(self, representation: Tensor) -> Tensor:
        """What exemplars are chosen by: the hidden layer's output."""
        features: Tensor = self.hidden(representation)
        return features

    def forward(self, representation: Tensor) -> Tensor:
        """Scores of all classes the head has rows for, (batch, rows)."""
        scores: Tensor = self.output(self.features(representation))
        return scores


class FeatureMapHead(ClassifierHead):
    """The classifier of KCN and KDRK: a feature map of two ReLU layers, growing output."""

    def __init__(self, size: int, hidden: int, *, dropout: float) -> None:
        super().__init__(hidden, hidden, has_hidden_layer=False, dropout=0.0)
        self.hidden = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, hidden), nn.ReLU()
        )


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


class TokenHead(nn.Module):
    """Predicts masked tokens from their states, helped by a representation; output tied to the embeddings."""

    def __init__(self, hidden: int, help_size: int, vocabulary: int) -> None:
        super().__init__()
        self.transform = nn.Sequential(
            plain_linear(hidden + help_size, hidden), nn.GELU(), nn.LayerNorm(hidden)
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor, help_: Tensor | None, embeddings: Tensor) -> Tensor:
        """(masked, hidden) and (masked, help_size) or nothing -> (masked, vocabulary) scores."""
        inputs = states if help_ is None else torch.cat([states, help_], dim=1)
        return nn.functional.linear(self.transform(inputs), embeddings, self.bias)


def plain_linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer that starts as BERT's do: weights N(0, 0.02), bias 0."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=INITIAL_SPREAD)
    nn.init.zeros_(layer.bias)
    return layer
