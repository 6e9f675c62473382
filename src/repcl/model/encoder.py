"""The encoder: a pretrained transformer, its tokenizer and the readout of one input kind."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from repcl.data import Batch, Example, TokenizedExample
from repcl.errors import EncoderUnavailable
from repcl.model.lower_layers import LowerLayers, layers_of
from repcl.model.packing import can_pack, padded_states
from repcl.model.processes import ALONE, Processes
from repcl.model.readouts import Readout, note_shortened, special_frame
from repcl.model.tokenizer import FastTokenizer, caught
from repcl.model.untrusted import Unusable, shown
from repcl.model.vocabulary import OccurringRows

if TYPE_CHECKING:
    from repcl.model.backbone import Backbone

LONGEST = 512
REMEMBERED = 200_000

_TOKENIZED: dict[tuple[str, str, int], dict[Example, TokenizedExample]] = {}


class Encoder(nn.Module):
    """Turns batches of tokenized examples into representations.

    Args:
        backbone: our BERT, or any model of transformers that takes `inputs_embeds`.
        tokenizer: its (fast) tokenizer.
        readout: the input kind.
        name: what the user calls it; goes into result files.
        reload: gives the pretrained weights again, for methods that start over.
        processes: share the rows of each batch; this one alone if not given.
    """

    def __init__(
        self,
        backbone: Backbone,
        tokenizer: FastTokenizer,
        readout: Readout,
        *,
        name: str,
        reload: Callable[[], dict[str, Tensor]] | None = None,
        processes: Processes = ALONE,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.readout = readout
        self.name = name
        self.processes = processes
        self._reload = reload
        if readout.markers:
            _add_markers(backbone, tokenizer, readout.markers)
        markers = [tokenizer.get_vocab()[marker] for marker in readout.markers]
        self.special_ids = sorted({*tokenizer.all_special_ids, *markers})
        self.remembered = REMEMBERED  # texts whose tokens are kept
        self._tokenized = _tokenized_before(self)
        self.lower: LowerLayers | None = None
        """The lower layers, where they are frozen."""

    @property
    def hidden_size(self) -> int:
        """Size of one token's state."""
        return int(self.backbone.config.hidden_size)

    @property
    def representation_size(self) -> int:
        """Size of an example's representation."""
        return self.readout.width * self.hidden_size

    @property
    def max_length(self) -> int:
        """The longest input in tokens."""
        # Some families count positions from the padding id + 1; two spare positions serve them all.
        positions = int(self.backbone.config.max_position_embeddings) - 2
        return min(LONGEST, positions, int(self.tokenizer.model_max_length))

    @property
    def frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens that stand before and after a text."""
        return special_frame(self.tokenizer.backend_tokenizer)

    @property
    def pad_id(self) -> int:
        """Number of the token that fills up short rows."""
        return cast(int, self.tokenizer.pad_token_id)

    @property
    def mask_id(self) -> int:
        """Number of the token that stands for a hidden one."""
        return cast(int, self.tokenizer.mask_token_id)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.backbone.parameters()).device

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The table of word embeddings, wherever the backbone keeps it."""
        return word_embeddings(self.backbone)

    def freeze_lower(self, share: float) -> None:
        """Let the word embeddings and this share of the layers, from below, never learn."""
        if share:
            self.lower = LowerLayers(self.backbone, share)
            self.lower.freeze(self.backbone)

    def kept_states(self, examples: Sequence[Example]) -> AbstractContextManager[None]:
        """Within it, what frozen layers make of these examples is computed once."""
        if self.lower is None:
            return nullcontext()
        return self.lower.kept_for(row.ids for row in self.tokenize(examples))

    def read_with(self, readout: Readout) -> None:
        """Be read in another way from now on; the readout needs no markers that are not there."""
        self.readout = readout
        self._tokenized = _tokenized_before(self)

    def tokenize(self, examples: Sequence[Example]) -> list[TokenizedExample]:
        """Token ids and spans of the examples; recent examples are not tokenized again."""
        if len(self._tokenized) > self.remembered:
            self._tokenized.clear()  # a server must not keep every text it was ever asked about
        found = {example: self._tokenized.get(example) for example in examples}
        fresh = [example for example, row in found.items() if row is None]
        rows, shortened = self._prepare(fresh)
        note_shortened(shortened, len(fresh), self.max_length)
        known = dict(zip(fresh, rows, strict=True))
        self._tokenized.update(known)  # other threads share it, and may clear it at any moment
        return [found[example] or known[example] for example in examples]

    def occurring_ids(self, examples: Sequence[Example]) -> Tensor:
        """Ids of all tokens in these examples, and of special tokens, (ids,) ascending."""
        seen = {token for row in self.tokenize(examples) for token in row.ids}
        return torch.tensor(sorted(seen.union(self.special_ids)))

    def _prepare(self, examples: Sequence[Example]) -> tuple[list[TokenizedExample], int]:
        try:
            with caught("the tokenizer gave up"):
                return self.readout.prepare(
                    examples, self.tokenizer.backend_tokenizer, max_length=self.max_length
                )
        except Unusable as error:
            raise EncoderUnavailable(
                f"Encoder {shown(self.name)!r} cannot read these texts: {error}; use another encoder."
            ) from error

    def forward(
        self,
        batch: Batch,
        perturbation: Tensor | None = None,
        *,
        depths: Sequence[float] = (1.0,),
        segments: Tensor | None = None,
        is_pooled: bool = False,
    ) -> Tensor:
        """States of all tokens, (batch, length, hidden), of all rows even where several processes share them.

        Args:
            batch: the texts.
            perturbation: is added to the word embeddings.
            depths: of the layers that are read; several stand side by side, (batch, length, depths · hidden).
            segments: (batch, length), 0 for the first part of a text and 1 for the second, where encoders
                know such parts; left out, all is one part.
            is_pooled: give representations instead, (batch, representation_size).
        """

        def encode(
            ids: Tensor,
            mask: Tensor,
            spans: Tensor,
            labels: Tensor,
            positions: Tensor,
            perturbation: Tensor | None,
            segments: Tensor | None,
        ) -> Tensor:
            rows = Batch(ids, mask, spans, labels, positions)
            states = self._states(rows, perturbation, depths, segments)
            return self.readout.pool(states, rows) if is_pooled else states

        inputs = (batch.ids, batch.mask, batch.spans, batch.labels, batch.positions, perturbation, segments)
        return self.processes.share_rows(encode, inputs, draws=self.training, device=batch.ids.device)

    def represent(self, batch: Batch, perturbation: Tensor | None = None) -> Tensor:
        """Representations, (batch, representation_size)."""
        pooled: Tensor = self(batch, perturbation, depths=self.readout.depths, is_pooled=True)
        return pooled

    def _states(
        self, batch: Batch, perturbation: Tensor | None, depths: Sequence[float], segments: Tensor | None
    ) -> Tensor:
        is_deep = tuple(depths) != (1.0,)
        if self.lower is not None and not is_deep:
            with self.processes.encoder_precision(batch.ids.device):
                return self.lower.states(self.backbone, batch, perturbation, segments).float()
        with self.processes.encoder_precision(batch.ids.device) as is_mixed:
            if perturbation is None:
                inputs = {"input_ids": batch.ids}
            else:
                inputs = {"inputs_embeds": self.word_embeddings(batch.ids) + perturbation}
            if segments is not None and getattr(self.backbone.config, "type_vocab_size", 0) > 1:
                inputs["token_type_ids"] = segments
            if can_pack(self) and not bool(batch.mask.all()):
                embeddings: Any = self.backbone.embeddings
                return padded_states(layers_of(self.backbone), embeddings(**inputs), batch.mask, depths)
            output = self.backbone(**inputs, attention_mask=batch.mask, output_hidden_states=is_deep)
        states: Tensor = output.last_hidden_state
        if is_deep:
            layers = output.hidden_states  # the embeddings, then every layer
            states = torch.cat([layers[round(depth * (len(layers) - 1))] for depth in depths], dim=-1)
        return states.float() if is_mixed else states

    def __deepcopy__(self, memo: dict[int, object]) -> Encoder:
        copied = self.with_backbone(copy.deepcopy(self.backbone, memo)).train(self.training)
        copied.lower = self.lower  # equal weights make equal states
        return copied

    def with_backbone(self, backbone: Backbone) -> Encoder:
        """The same encoder with other weights; tokenizer, readout and tokenized texts are shared."""
        return Encoder(
            backbone,
            self.tokenizer,
            self.readout,
            name=self.name,
            reload=self._reload,
            processes=self.processes,
        )

    def without_weights(self) -> Encoder:
        """The same encoder on the device `meta`, where nothing takes memory or time."""
        empty: dict[int, object] = {
            id(value): nn.Parameter(torch.empty_like(value, device="meta"), value.requires_grad)
            for value in self.backbone.parameters()
        }
        empty.update({id(value): torch.empty_like(value, device="meta") for value in self.backbone.buffers()})
        return self.with_backbone(copy.deepcopy(self.backbone, empty))

    def start_over(self) -> None:
        """Go back to the pretrained weights."""
        if self._reload is None:
            raise RuntimeError(f"Encoder {self.name!r} was built without a way to reload its weights.")
        try:
            self.load_state_dict(self._reload())
            self.freeze_lower(self.lower.share if self.lower is not None else 0.0)  # other states than before
        except RuntimeError as error:
            raise EncoderUnavailable(
                f"Expected the weights that this model was made from, found others in {shown(self.name)!r}: "
                "name the encoder that it was made with."
            ) from error

    def start_over_from(self, name: str, reload: Callable[[], dict[str, Tensor]]) -> None:
        """Take the pretrained weights from elsewhere when they are needed again."""
        self.name = name
        self._reload = reload


def _tokenized_before(encoder: Encoder) -> dict[Example, TokenizedExample]:
    """What encoders with this tokenizer and readout have tokenized here; the runs of a grid share it."""
    tokenizer = hashlib.sha256(encoder.tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
    return _TOKENIZED.setdefault((tokenizer, type(encoder.readout).__qualname__, encoder.max_length), {})


def _add_markers(backbone: Backbone, tokenizer: FastTokenizer, markers: Sequence[str]) -> None:
    """Add marker tokens with embeddings drawn from N(0, 0.02)."""
    if isinstance(word_embeddings(backbone), OccurringRows):
        return  # a copy made while a task is learned, markers and all
    added = tokenizer.add_tokens(markers)
    is_short = len(tokenizer) > len(word_embeddings(backbone).weight)
    if is_short:
        backbone.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    if added or is_short:  # a copy of an encoder already has its markers
        with torch.no_grad():
            for marker in markers:
                word_embeddings(backbone).weight[tokenizer.get_vocab()[marker]].normal_(0.0, 0.02)


def word_embeddings(backbone: Backbone) -> nn.Embedding:
    """The table of word embeddings, wherever a transformer keeps it."""
    return cast(nn.Embedding, backbone.get_input_embeddings())
