"""What all learners on a frozen encoder begin with: they read several layers, and encode each text once."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from repcl.data import Example, InputKind
from repcl.errors import UnknownName
from repcl.methods.base import Method
from repcl.methods.frozen.random_features import on_grid
from repcl.methods.settings import MethodSettings
from repcl.model import FROZEN_DEPTHS, LAST_LAYER, Embedder, Readout
from repcl.model.layered import frozen_readout

AT_A_TIME = 4096
"""Texts whose representations are there in full width; those of a hundred thousand would take gigabytes."""

Depth = Annotated[float, Field(ge=0, le=1)]


class FrozenSettings(MethodSettings):
    """Settings of all learners on a frozen encoder."""

    layers: tuple[Depth, ...] | None = Field(
        None,
        min_length=1,
        max_length=8,
        description="depths of the layers to read, from 0 for the word embeddings to 1 for the last layer; "
        "left open, those that suit the input kind best",
    )


class FrozenReader(Method):
    """A method that never changes its encoder."""

    settings: FrozenSettings
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"last-layer": {"layers": LAST_LAYER}}

    @classmethod
    def resolved(cls, settings: MethodSettings, kind: InputKind) -> MethodSettings:
        """The settings with the layers that serve the input kind best, where they are left open."""
        if not isinstance(settings, FrozenSettings) or settings.layers is not None:
            return settings
        return settings.model_copy(update={"layers": FROZEN_DEPTHS[kind]})

    @classmethod
    def readout(cls, settings: MethodSettings, kind: InputKind) -> Readout:
        """Several layers, side by side."""
        layers = settings.layers if isinstance(settings, FrozenSettings) else None
        return frozen_readout(kind, layers or FROZEN_DEPTHS[kind])

    def build_parts(self) -> None:
        """The frozen encoder, read as the settings say."""
        self.encoder.requires_grad_(False)
        readout = self.readout(self.settings, self.encoder.readout.kind)
        if (type(readout), readout.depths) != (type(self.encoder.readout), self.encoder.readout.depths):
            self.encoder.read_with(readout)
        self.embedder = Embedder(self.encoder)

    @property
    def embeddings_read(self) -> int:
        """How many embeddings came from the folder that runs share."""
        return self.embedder.read_from_disk

    def embed(self, examples: Sequence[Example]) -> Tensor:
        """Representations on the grid, (examples, representation size); each text is encoded once."""
        found = torch.empty(len(examples), self.encoder.representation_size, dtype=torch.int16)
        for start in range(0, len(examples), AT_A_TIME):
            some = slice(start, start + AT_A_TIME)
            found[some] = on_grid(self.embedder(examples[some]))
        return found

    def indices(self, examples: Sequence[Example]) -> Tensor:
        """The index of each example's class."""
        index = {name: at for at, name in enumerate(self.classes)}
        for example in examples:
            if example.label not in index:
                raise UnknownName("class", example.label, self.classes)
        return torch.tensor([index[example.label] for example in examples], dtype=torch.int64)
