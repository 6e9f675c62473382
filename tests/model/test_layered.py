import pytest
import torch
from torch.nn.functional import normalize

from repcl.data import Example, InputKind, Span
from repcl.errors import InvalidData
from repcl.model import FROZEN_DEPTHS, Embedder, Encoder
from repcl.model.layered import frozen_readout
from repcl.model.readouts import SentenceReadout
from tests.conftest import library_tokenizer, tiny_encoder, toy_task


def frozen_encoder(kind: InputKind) -> Encoder:
    return tiny_encoder(kind, readout=frozen_readout(kind, FROZEN_DEPTHS[kind]))


RELATION = Example("anna lives in the city paris", "home", head=Span(0, 4), tail=Span(18, 28))


def test_a_relation_is_read_from_sentence_head_and_tail_at_two_depths() -> None:
    encoder = frozen_encoder("relation")
    found = Embedder(encoder)([RELATION])[0].reshape(3, 2, 32)
    ids = torch.tensor([encoder.tokenize([RELATION])[0].ids])
    _, middle, last = encoder.backbone(ids, output_hidden_states=True).hidden_states
    for span, (start, end) in enumerate([(1, 7), (1, 2), (5, 7)]):  # after [CLS]; city paris is two words
        for depth, states in enumerate([middle, last]):
            torch.testing.assert_close(found[span, depth], normalize(states[0, start:end].mean(dim=0), dim=0))


def test_an_event_is_read_from_sentence_and_trigger_at_two_depths() -> None:
    encoder = frozen_encoder("event")
    example = Example("bob won the war", "win", trigger=Span(4, 7))
    found = Embedder(encoder)([example])[0].reshape(2, 2, 32)
    ids = torch.tensor([encoder.tokenize([example])[0].ids])
    _, middle, last = encoder.backbone(ids, output_hidden_states=True).hidden_states
    torch.testing.assert_close(found[1, 0], normalize(middle[0, 2], dim=0))
    torch.testing.assert_close(found[1, 1], normalize(last[0, 2], dim=0))


@pytest.mark.parametrize(("kind", "size"), [("sentence", 96), ("relation", 192), ("event", 128)])
def test_the_representation_has_the_size_it_says(kind: InputKind, size: int) -> None:
    encoder = frozen_encoder(kind)
    assert encoder.representation_size == size
    assert Embedder(encoder)(toy_task(kind, "fruit").train).shape == (6, size)


def test_no_marker_is_put_into_a_text_for_a_frozen_encoder() -> None:
    encoder = frozen_encoder("relation")
    ids = encoder.tokenize([RELATION])[0].ids
    assert library_tokenizer(encoder).decode(ids[1:-1]) == RELATION.text


@pytest.mark.parametrize(
    ("kind", "layers"), [("relation", [3, 5]), ("event", [3, 5]), ("sentence", [4, 5, 6])]
)
def test_of_six_layers_these_are_read(kind: InputKind, layers: list[int]) -> None:
    assert [round(depth * 6) for depth in FROZEN_DEPTHS[kind]] == layers


def test_a_sentence_is_the_mean_of_each_layer_at_unit_length_side_by_side() -> None:
    encoder = tiny_encoder(readout=frozen_readout("sentence", (0.5, 1.0)))
    example = Example("anna likes green apples", "fruit")
    ids = torch.tensor([encoder.tokenize([example])[0].ids])
    with torch.no_grad():
        states = encoder.backbone(input_ids=ids, output_hidden_states=True).hidden_states
        expected = torch.cat([normalize(states[layer][0].mean(dim=0), dim=0) for layer in (1, 2)])
        assert torch.allclose(Embedder(encoder)([example])[0], expected, atol=1e-6)


def test_the_last_layer_alone_is_read_as_trained_methods_read_it() -> None:
    assert type(frozen_readout("sentence", (1.0,))) is SentenceReadout


def test_a_long_text_keeps_both_entities() -> None:
    encoder = frozen_encoder("relation")
    text = "anna " + "the " * 100 + "paris"
    example = Example(text, "home", head=Span(0, 4), tail=Span(len(text) - 5, len(text)))
    with pytest.warns(UserWarning, match="shortened"):
        row = encoder.tokenize([example])[0]
    names = [library_tokenizer(encoder).decode(row.ids[start:end]) for start, end in row.spans[1:]]
    assert names == ["anna", "paris"]
    assert len(row.ids) == encoder.max_length


def test_an_entity_that_the_tokenizer_drops_is_named() -> None:
    encoder = frozen_encoder("relation")
    dropped = Example("anna \u200b paris", "home", head=Span(0, 4), tail=Span(5, 6))
    with pytest.raises(InvalidData, match="drops the tail"):
        encoder.tokenize([dropped])
