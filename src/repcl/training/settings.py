"""How one stage is trained."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StageSettings:
    """One run of the loop.

    Attributes:
        epochs: passes over the batches.
        learning_rate: of the encoder.
        head_learning_rate: of every other part.
        weight_decay: of AdamW; biases and the encoder's LayerNorms are not decayed.
        warmup_epochs: the rate rises linearly from 0 during these epochs, then stays constant.
        clip_norm: largest norm of the gradient.
    """

    epochs: int
    learning_rate: float
    head_learning_rate: float
    weight_decay: float = 0.01
    warmup_epochs: float = 0.0
    clip_norm: float = 10.0
