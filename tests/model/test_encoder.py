"""The encoder, over the families of transformers that have to work, and how one is found by its name."""

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE, WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel
from tokenizers.processors import RobertaProcessing, TemplateProcessing
from transformers import (
    MPNetConfig,
    MPNetModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
)

from repcl.data import Batch, Example, InputKind, Span
from repcl.data.batches import collate
from repcl.errors import EncoderUnavailable, UnknownName
from repcl.model import DEFAULT_ENCODER, ENCODERS, READOUTS, Encoder, load_encoder
from repcl.model.readouts import MARKERS
from repcl.model.tokenizer import FastTokenizer
from tests.conftest import (
    LETTERS,
    WORDS,
    library_tokenizer,
    of_transformers,
    save_encoder,
    tiny_encoder,
    toy_example,
)

KINDS: tuple[InputKind, ...] = ("sentence", "relation", "event")
POSITIONS = 66


def batch_of(encoder: Encoder, examples: list[Example]) -> Batch:
    rows = encoder.tokenize(examples)
    numbers = list(range(len(rows)))
    pad_id = int(encoder.tokenizer.pad_token_id)
    return collate(rows, numbers, numbers, pad_id=pad_id, device=torch.device("cpu"))


def toy_batch(encoder: Encoder) -> Batch:
    """Rows of different lengths, so that there is padding."""
    kind = encoder.readout.kind
    return batch_of(encoder, [toy_example(kind, "fruit", 0), toy_example(kind, "conflict", 5)])


# ---- three families --------------------------------------------------------------------------------


def wrapped(backend: Tokenizer, frame: tuple[str, str], pad: str, mask: str) -> FastTokenizer:
    special = {
        "bos_token": frame[0],
        "cls_token": frame[0],
        "eos_token": frame[1],
        "sep_token": frame[1],
        "unk_token": "<unk>",
        "pad_token": pad,
        "mask_token": mask,
    }
    return FastTokenizer(backend, special, longest=512)


def tiny_roberta() -> tuple[PreTrainedModel, FastTokenizer]:
    """RoBERTa with a byte-level tokenizer; its positions count from the padding id on."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {token: index for index, token in enumerate([*special, *sorted(ByteLevel.alphabet())])}
    backend = Tokenizer(BPE(vocabulary, [], unk_token="<unk>"))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    backend.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    config = RobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        pad_token_id=1,
    )
    return RobertaModel(config), wrapped(backend, ("<s>", "</s>"), "<pad>", "<mask>")


def tiny_mpnet() -> tuple[PreTrainedModel, FastTokenizer]:
    """MPNet with a word-piece tokenizer; it has relative positions besides the absolute ones."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = [*special, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(pieces))}
    backend = Tokenizer(WordPiece(vocabulary, unk_token="<unk>"))
    backend.normalizer = BertNormalizer(lowercase=True, strip_accents=False)
    backend.pre_tokenizer = BertPreTokenizer()
    backend.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    config = MPNetConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
        pad_token_id=1,
    )
    return MPNetModel(config), wrapped(backend, ("<s>", "</s>"), "<pad>", "<mask>")


def tiny_bert() -> tuple[PreTrainedModel, FastTokenizer]:
    encoder = tiny_encoder()
    return encoder.backbone, encoder.tokenizer


FAMILIES: dict[str, Callable[[], tuple[PreTrainedModel, FastTokenizer]]] = {
    "bert": tiny_bert,
    "roberta": tiny_roberta,
    "mpnet": tiny_mpnet,
}
every_family = pytest.mark.parametrize("family", FAMILIES)
every_kind = pytest.mark.parametrize("kind", KINDS)


def encoder_of(family: str, kind: InputKind) -> Encoder:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        backbone, tokenizer = FAMILIES[family]()
        return Encoder(backbone, tokenizer, READOUTS[kind](), name=family).eval()


@every_family
@every_kind
def test_every_family_represents_every_kind(family: str, kind: InputKind) -> None:
    encoder = encoder_of(family, kind)
    representation = encoder.represent(toy_batch(encoder))
    assert representation.shape == (2, 64 if kind == "relation" else 32)
    assert representation.shape[1] == encoder.representation_size
    assert representation.isfinite().all()


@every_family
@every_kind
def test_a_perturbation_of_zero_changes_nothing(family: str, kind: InputKind) -> None:
    encoder = encoder_of(family, kind)
    batch = toy_batch(encoder)
    zeros = torch.zeros(*batch.ids.shape, encoder.hidden_size)
    with torch.no_grad():
        torch.testing.assert_close(encoder.represent(batch, zeros), encoder.represent(batch))


@every_family
@every_kind
def test_a_perturbation_is_added_to_the_word_embeddings(family: str, kind: InputKind) -> None:
    encoder = encoder_of(family, kind)
    batch = toy_batch(encoder)
    shift = torch.linspace(-1, 1, encoder.hidden_size)
    with torch.no_grad():
        perturbed = encoder.represent(batch, shift.expand(*batch.ids.shape, -1))
        original = encoder.represent(batch)
        encoder.word_embeddings.weight += shift
        assert not torch.allclose(perturbed, original, atol=1e-3)
        torch.testing.assert_close(perturbed, encoder.represent(batch))


@every_family
def test_padding_does_not_change_a_representation(family: str) -> None:
    encoder = encoder_of(family, "sentence")
    short, long = Example("rain", "x"), Example("the sun is warm in paris", "x")
    with torch.no_grad():
        together = encoder.represent(batch_of(encoder, [short, long]))[0]
        alone = encoder.represent(batch_of(encoder, [short]))[0]
    torch.testing.assert_close(together, alone)


@every_family
def test_the_longest_text_fits_with_and_without_perturbation(family: str) -> None:
    encoder = encoder_of(family, "sentence")
    with pytest.warns(UserWarning, match="shortened"):
        batch = batch_of(encoder, [Example("rain " * 200, "x"), Example("sun", "x")])
    assert batch.ids.shape[1] == encoder.max_length == 64
    zeros = torch.zeros(*batch.ids.shape, encoder.hidden_size)
    with torch.no_grad():
        torch.testing.assert_close(encoder.represent(batch, zeros), encoder.represent(batch))


@every_family
def test_gradients_reach_the_word_embeddings(family: str) -> None:
    encoder = encoder_of(family, "relation")
    encoder.represent(toy_batch(encoder)).square().sum().backward()
    gradient = encoder.word_embeddings.weight.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


@every_family
def test_special_ids_hold_no_ordinary_token(family: str) -> None:
    encoder = encoder_of(family, "relation")
    names = library_tokenizer(encoder).convert_ids_to_tokens(encoder.special_ids)
    special = {"bert": "[PAD] [UNK] [CLS] [SEP] [MASK]"}.get(family, "<s> <pad> </s> <unk> <mask>")
    assert sorted(names) == sorted([*special.split(), *MARKERS])


@every_family
def test_a_byte_or_piece_of_an_entity_is_never_swallowed_by_a_marker(family: str) -> None:
    encoder = encoder_of(family, "relation")
    example = toy_example("relation", "conflict", 0)
    (row,) = encoder.tokenize([example])
    indices = [row.ids.index(at) for at in library_tokenizer(encoder).convert_tokens_to_ids(list(MARKERS))]
    head = library_tokenizer(encoder).decode(row.ids[indices[0] + 1 : indices[1]])
    tail = library_tokenizer(encoder).decode(row.ids[indices[2] + 1 : indices[3]])
    assert (head.replace(" ", ""), tail.replace(" ", "")) == ("fight", "fight")


@every_family
def test_an_event_in_a_text_outside_ascii_is_read_at_its_trigger(family: str) -> None:
    encoder = encoder_of(family, "event")
    text = "é ß 🚗 the war was lost"
    at = text.index("war")
    (row,) = encoder.tokenize([Example(text, "x", trigger=Span(at, at + 3))])
    start, end = row.spans[0]
    assert library_tokenizer(encoder).decode(row.ids[start:end]).replace(" ", "") == "war"


@every_family
def test_a_saved_folder_of_every_family_can_be_loaded(family: str, tmp_path: Path) -> None:
    backbone, tokenizer = FAMILIES[family]()
    original = Encoder(backbone, tokenizer, READOUTS["sentence"](), name=family).eval()
    save_encoder(original, tmp_path)
    loaded = load_encoder(str(tmp_path), READOUTS["sentence"](), device="cpu").eval()
    batch = toy_batch(original)
    assert torch.equal(toy_batch(loaded).ids, batch.ids)
    with torch.no_grad():
        torch.testing.assert_close(loaded.represent(batch), original.represent(batch))


# ---- markers, copies, starting over ----------------------------------------------------------------


def test_marker_embeddings_are_drawn_from_a_narrow_normal() -> None:
    encoder = tiny_encoder("relation")
    rows = encoder.word_embeddings.weight[library_tokenizer(encoder).convert_tokens_to_ids(list(MARKERS))]
    assert rows.shape == (4, 32)
    assert rows.std().item() == pytest.approx(0.02, abs=0.005)  # 128 draws: four deviations
    assert rows.mean().item() == pytest.approx(0.0, abs=0.007)
    assert len(rows.unique(dim=0)) == 4


def test_markers_leave_the_old_embeddings_as_they_were() -> None:
    with_markers, without = tiny_encoder("relation"), tiny_encoder("sentence")
    old = without.word_embeddings.weight
    assert torch.equal(with_markers.word_embeddings.weight[: len(old)], old)


@every_kind
def test_a_copy_shares_nothing_that_can_be_trained(kind: InputKind) -> None:
    encoder = tiny_encoder(kind)
    twin = copy.deepcopy(encoder)
    addresses = {parameter.data_ptr() for parameter in encoder.parameters()}
    assert addresses.isdisjoint(parameter.data_ptr() for parameter in twin.parameters())


@every_kind
def test_a_copy_gives_the_same_representations(kind: InputKind) -> None:
    encoder = tiny_encoder(kind)
    twin = copy.deepcopy(encoder)
    batch = toy_batch(encoder)
    with torch.no_grad():
        assert torch.equal(twin.represent(batch), encoder.represent(batch))


def test_changing_a_copy_leaves_the_original_alone() -> None:
    encoder = tiny_encoder()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    twin = copy.deepcopy(encoder)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


@pytest.mark.parametrize("is_training", [True, False])
def test_a_copy_keeps_dropout_as_it_was(is_training: bool) -> None:
    assert copy.deepcopy(tiny_encoder().train(is_training)).backbone.training is is_training


def test_starting_over_brings_the_first_weights_back() -> None:
    encoder = tiny_encoder("relation")
    first = {name: value.clone() for name, value in encoder.state_dict().items()}
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(2.0)
    encoder.start_over()
    assert all(torch.equal(value, first[name]) for name, value in encoder.state_dict().items())


def test_an_example_is_tokenized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = tiny_encoder()
    example = Example("rain", "x")
    first = encoder.tokenize([example])
    asked: list[Example] = []
    monkeypatch.setattr(encoder.readout, "pieces", lambda examples, _: asked.extend(examples) or [])
    assert encoder.tokenize([example, example]) == [*first, *first]
    assert asked == []


# ---- from a name to an encoder ---------------------------------------------------------------------


def saved_bert(folder: Path) -> Path:
    encoder = tiny_encoder()
    save_encoder(encoder, folder)
    return folder


def test_an_encoder_from_a_folder_can_start_over(tmp_path: Path) -> None:
    encoder = load_encoder(str(saved_bert(tmp_path)), READOUTS["relation"](), device="cpu")
    layer = "backbone.encoder.layer.0.output.dense.weight"
    first = encoder.state_dict()[layer].clone()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(2.0)
    encoder.start_over()
    assert torch.equal(encoder.state_dict()[layer], first)


def test_a_folder_without_weights_is_refused_with_what_was_found(tmp_path: Path) -> None:
    (saved_bert(tmp_path) / "model.safetensors").unlink()
    with pytest.raises(EncoderUnavailable, match=r"holds no weights: expected .*found .*'config.json'"):
        load_encoder(str(tmp_path), READOUTS["sentence"]())


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    (saved_bert(tmp_path) / "model.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(EncoderUnavailable, match="could not be loaded"):
        load_encoder(str(tmp_path), READOUTS["sentence"]())


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    of_transformers(tiny_encoder())[0].save_pretrained(tmp_path)
    with pytest.raises(EncoderUnavailable, match="has no tokenizer"):
        load_encoder(str(tmp_path), READOUTS["sentence"]())


def test_a_mistyped_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match=r"No encoder 'minilm'. Did you mean 'minilm-l6'\?"):
        load_encoder("minilm", READOUTS["sentence"]())


def test_a_hugging_face_id_that_cannot_be_reached_is_refused_with_a_remedy() -> None:
    with pytest.raises(EncoderUnavailable, match="Give minilm-l6, a local folder"):
        load_encoder("nobody/nothing-base", READOUTS["sentence"]())


def test_bundled_weights_with_another_hash_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(ENCODERS[DEFAULT_ENCODER], sha256="0" * 64)
    monkeypatch.setitem(ENCODERS, DEFAULT_ENCODER, other)
    with pytest.raises(EncoderUnavailable, match="not the expected ones"):
        load_encoder(DEFAULT_ENCODER, READOUTS["sentence"]())


def test_a_bundled_encoder_whose_package_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(ENCODERS[DEFAULT_ENCODER], package="no_such_package_anywhere")
    monkeypatch.setitem(ENCODERS, DEFAULT_ENCODER, other)
    with pytest.raises(EncoderUnavailable, match=r"'no_such_package_anywhere' .* not installed"):
        load_encoder(DEFAULT_ENCODER, READOUTS["sentence"]())


def test_the_bundled_weights_are_the_expected_ones() -> None:
    assert (ENCODERS[DEFAULT_ENCODER].locate() / "config.json").is_file()
