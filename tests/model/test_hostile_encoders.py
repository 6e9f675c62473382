"""Encoders from strangers: nothing runs, nothing is fetched, what cannot be used is one sentence."""

import copy
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel

from repcl import ContinualClassifier
from repcl.data import Example
from repcl.errors import EncoderUnavailable, InvalidSetting, RepclError, ResultMismatch
from repcl.methods import build_method
from repcl.model import READOUTS, Embedder, Encoder, check_encoder, chosen_device, load_encoder
from repcl.model import machine as machine_module
from repcl.model.backbone import FAMILIES, build_config, empty_backbone
from repcl.model.encoders import NamedByFolder
from repcl.model.tokenizer import EXPRESSIONS, KINDS, build_tokenizer
from repcl.model.untrusted import Unusable
from tests.classifier.conftest import cheap_settings, save_tiny_encoder, toy
from tests.conftest import of_transformers, save_encoder, tiny_encoder, tiny_tokenizer

Change = Callable[[dict[str, Any]], object]

pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)  # DeBERTa


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_encoder(tmp_path_factory.mktemp("pristine"))


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "encoder"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(*_: object, **__: object) -> None:
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", tried)
    monkeypatch.setattr(socket, "getaddrinfo", tried)
    monkeypatch.setattr("builtins.input", tried)


def change(path: Path, how: Change) -> None:
    values = json.loads(path.read_text())
    how(values)
    path.write_text(json.dumps(values))


def configured(folder: Path, **values: Any) -> Path:
    change(folder / "config.json", lambda config: config.update(values))
    return folder


def load(folder: Path) -> Encoder:
    return load_encoder(str(folder), READOUTS["sentence"](), device="cpu")


def refused(folder: Path, sentence: str = "could not be loaded|holds no weights") -> None:
    with pytest.raises(EncoderUnavailable, match=sentence) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


# ---- what is supported -------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
    "pad_token_id": 0,
}
SHAPES: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16},
    "deberta-v2": {
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "position_biased_input": False,
        "conv_kernel_size": 3,
    },
    "distilbert": {"hidden_dim": 64},
    "electra": {"embedding_size": 16},
    "modernbert": {"local_attention": 8, "cls_token_id": 2, "sep_token_id": 3},
}


def saved(family: str, folder: Path) -> Encoder:
    tokenizer = tiny_tokenizer()
    shape = {**SMALL, "vocab_size": len(tokenizer), **SHAPES.get(family, {})}
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        backbone = AutoModel.from_config(AutoConfig.for_model(family, **shape), attn_implementation="eager")
    encoder = Encoder(backbone, tokenizer, READOUTS["sentence"](), name=family).eval()
    save_encoder(encoder, folder)
    return encoder


@pytest.mark.parametrize("family", FAMILIES)
def test_every_supported_family_is_loaded_to_the_same_numbers(family: str, tmp_path: Path) -> None:
    original = saved(family, tmp_path)
    examples = [Example("the rain in paris", "x"), Example("snow", "y")]
    assert torch.equal(Embedder(load(tmp_path))(examples), Embedder(original)(examples))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_supported_family_comes_back_from_a_model_folder(family: str, tmp_path: Path) -> None:
    saved(family, tmp_path / "encoder")
    options = {"settings": cheap_settings("instant"), "holdout_per_class": 0, "device": "cpu"}
    classifier = ContinualClassifier("instant", str(tmp_path / "encoder"), **options)
    texts, labels = toy("fruit", "vehicle", texts=4)
    classifier.fit(texts, labels).save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    assert (loaded.predict_proba(texts) == classifier.predict_proba(texts)).all()


def test_a_masked_language_model_gives_its_encoder_without_a_word(tmp_path: Path) -> None:
    from transformers import BertForMaskedLM

    encoder = tiny_encoder()
    backbone, tokenizer = of_transformers(encoder)
    BertForMaskedLM(backbone.config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load(tmp_path).hidden_size == 32


def test_a_pooler_without_weights_is_the_same_every_time(folder: Path) -> None:
    rewrite(folder, lambda weights: [weights.pop(key) for key in list(weights) if "pooler" in key])
    first, second = load(folder).state_dict(), load(folder).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


# ---- code, kernels, other models ---------------------------------------------------------------------


@pytest.fixture
def trap(folder: Path, tmp_path: Path) -> Path:
    """Exists as soon as the code beside the weights was run."""
    sprung = tmp_path / "sprung"
    code = f"from pathlib import Path\nPath({str(sprung)!r}).touch()\nclass Evil: pass\nEvilConfig = Evil\n"
    (folder / "evil.py").write_text(code)
    return sprung


OWN_CODE = {
    "AutoConfig": "evil.EvilConfig",
    "AutoModel": "evil.Evil",
    "AutoTokenizer": ["evil.Evil", "evil.Evil"],
}


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_of_an_encoder_is_not_run_and_not_asked_about(folder: Path, trap: Path, file: str) -> None:
    change(folder / file, lambda values: values.update(auto_map=OWN_CODE, tokenizer_class="Evil"))
    assert load(folder).hidden_size == 32
    assert not trap.exists()


@pytest.mark.parametrize(
    "kind", ["evil", "detr", "gpt2", "t5", "timm_wrapper", "encoder-decoder", None, 5, ["bert"]]
)
def test_another_type_than_the_supported_ones_is_refused(folder: Path, trap: Path, kind: Any) -> None:
    refused(
        configured(folder, model_type=kind, auto_map=OWN_CODE, backbone="evil/backbone"), "found model type"
    )
    with pytest.raises(EncoderUnavailable, match="found model type"):
        check_encoder(str(folder))
    assert not trap.exists()


@pytest.mark.parametrize(
    "key", ["_attn_implementation", "attn_implementation", "_attn_implementation_internal"]
)
def test_attention_is_chosen_here(folder: Path, key: str) -> None:
    encoder = load(configured(folder, **{key: "evil/kernel:attention"}))
    assert encoder.backbone.config._attn_implementation == "eager"


@pytest.mark.parametrize("key", ["is_decoder", "add_cross_attention", "is_encoder_decoder"])
def test_what_is_no_encoder_is_refused(folder: Path, key: str) -> None:
    refused(configured(folder, **{key: True}), f"expected an encoder, found {key}")


def test_an_adapter_beside_the_weights_is_not_followed(folder: Path) -> None:
    adapter = {"base_model_name_or_path": "evil/model", "peft_type": "LORA"}
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    assert load(folder).hidden_size == 32


def test_weights_as_a_pickle_are_not_opened(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "holds no weights")


@pytest.mark.parametrize(
    "name", ["evil.bin", "../encoder/model.safetensors", "/etc/passwd", "", "a/b.safetensors", 5]
)
def test_an_index_that_leads_elsewhere_is_refused(folder: Path, name: Any) -> None:
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    refused(folder, r"expected \*\.safetensors files beside")


def test_weights_in_several_files_are_read(folder: Path) -> None:
    encoder = tiny_encoder()
    shutil.rmtree(folder)
    save_encoder(encoder, folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert torch.equal(load(folder).word_embeddings.weight, encoder.word_embeddings.weight)


def test_only_known_files_are_fetched_from_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked: list[Any] = []

    def fetch(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, tuple(allow_patterns)))
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert load_encoder("someone/bert-tiny", READOUTS["sentence"](), device="cpu").hidden_size == 32
    ((name, patterns),) = asked
    assert name == "someone/bert-tiny"
    assert all(pattern.endswith((".json", ".safetensors")) for pattern in patterns)


# ---- a model folder names an encoder -----------------------------------------------------------------


@pytest.fixture
def joint(folder: Path, tmp_path: Path) -> Path:
    """A model folder whose method goes back to the pretrained weights."""
    options = {"settings": cheap_settings("joint"), "holdout_per_class": 0, "device": "cpu"}
    classifier = ContinualClassifier("joint", str(folder), **options)
    classifier.fit(*toy("fruit", "vehicle")).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_that_starts_over_does_not_choose_its_encoder(joint: Path) -> None:
    loaded = ContinualClassifier.load(joint)
    with pytest.raises(EncoderUnavailable, match="not loaded on a folder's word: name it yourself"):
        loaded.partial_fit(*toy("weather"))


def test_a_model_that_is_fitted_anew_does_not_choose_its_encoder(joint: Path) -> None:
    from sklearn.base import clone

    loaded = ContinualClassifier.load(joint)
    for classifier in (loaded, clone(loaded), copy.deepcopy(loaded)):
        with pytest.raises(EncoderUnavailable, match="not loaded on a folder's word"):
            classifier.fit(*toy("weather", "fruit"))


def test_a_user_names_the_encoder_of_a_model_that_starts_over(joint: Path, folder: Path) -> None:
    loaded = ContinualClassifier.load(joint, encoder=str(folder))
    assert loaded.partial_fit(*toy("weather")).classes_.tolist() == ["fruit", "vehicle", "weather"]


def test_a_user_names_the_encoder_of_a_model_that_is_fitted_anew(joint: Path, folder: Path) -> None:
    loaded = ContinualClassifier.load(joint).set_params(encoder=str(folder))
    assert loaded.fit(*toy("weather", "fruit")).classes_.tolist() == ["fruit", "weather"]


def test_another_encoder_than_that_of_the_model_is_refused(joint: Path, tmp_path: Path) -> None:
    saved("electra", tmp_path / "other")
    loaded = ContinualClassifier.load(joint, encoder=str(tmp_path / "other"))
    with pytest.raises(EncoderUnavailable, match="Expected the weights that this model was made from"):
        loaded.partial_fit(*toy("weather"))


@pytest.mark.parametrize("name", ["evil/model", "/etc", "..", "bert-base-uncased", "x" * 5000])
def test_a_name_from_a_folder_reaches_neither_disk_nor_network(name: str) -> None:
    with pytest.raises(EncoderUnavailable, match="does not come with repcl") as caught:
        load_encoder(NamedByFolder(name), READOUTS["sentence"]())
    assert len(str(caught.value)) < 400


# ---- a random encoder, silently ----------------------------------------------------------------------


def rewrite(folder: Path, how: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    how(weights)
    save_file({key: value.contiguous() for key, value in weights.items()}, folder / "model.safetensors")


def every_weight() -> list[str]:
    return [key for key in tiny_encoder().backbone.state_dict() if "pooler" not in key]


@pytest.mark.parametrize("key", every_weight())
def test_a_missing_weight_is_refused_by_name(folder: Path, key: str) -> None:
    def drop(weights: dict[str, torch.Tensor]) -> None:
        weights["spare"] = weights.pop(key)

    rewrite(folder, drop)
    refused(folder, f"expected weights for {key}, found none")


@pytest.mark.parametrize("key", every_weight())
def test_a_weight_of_another_shape_is_refused_by_name(folder: Path, key: str) -> None:
    def enlarge(weights: dict[str, torch.Tensor]) -> None:
        weights[key] = torch.cat([weights[key], weights[key]])

    rewrite(folder, enlarge)
    refused(folder, rf"expected {key} of shape \(.*\), found \(")


def test_weights_under_other_names_are_refused(folder: Path) -> None:
    def rename(weights: dict[str, torch.Tensor]) -> None:
        for key in list(weights):
            weights[f"model.{key}"] = weights.pop(key)

    rewrite(folder, rename)
    refused(folder, r"expected weights for .* and \d+ more, found none")


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"bert"}))
def test_weights_of_another_type_are_refused(folder: Path, family: str) -> None:
    configured(folder, model_type=family, **SHAPES.get(family, {}))
    if family in ("camembert", "roberta", "xlm-roberta"):
        load(folder)  # they have all the weights of a BERT, under the same names
    else:
        refused(folder)


def test_more_layers_than_there_are_weights_are_refused(folder: Path) -> None:
    refused(configured(folder, num_hidden_layers=3), "expected weights of .* numbers")


def test_fewer_layers_than_there_are_weights_are_said(folder: Path) -> None:
    with pytest.warns(UserWarning, match=r"16 weights that its type has no place for \(encoder.layer.1"):
        load(configured(folder, num_hidden_layers=1))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(folder: Path, number: float) -> None:
    rewrite(folder, lambda weights: weights["embeddings.word_embeddings.weight"].fill_(number))
    refused(folder, "expected finite numbers")


@pytest.mark.parametrize("kind", [torch.int8, torch.int32, torch.bool, torch.complex64])
def test_weights_of_other_number_types_are_refused(folder: Path, kind: torch.dtype) -> None:
    change(folder / "config.json", lambda config: config.pop("dtype", None))
    rewrite(folder, lambda weights: weights.update({key: weights[key].to(kind) for key in weights}))
    refused(folder)


# ---- malformed folders -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"num_attention_heads": 0}, "expected num_attention_heads between"),
        ({"num_attention_heads": 3}, "attention heads divide"),
        ({"hidden_size": "big"}, "expected hidden_size between"),
        ({"hidden_size": -1}, "expected hidden_size between"),
        ({"hidden_size": 16}, "expected .* of shape"),
        ({"hidden_size": True}, "expected hidden_size between"),
        ({"hidden_size": 10**30}, "plain value of hidden_size"),
        ({"intermediate_size": [64]}, "expected intermediate_size between"),
        ({"hidden_act": "os.system"}, "cannot be"),
        ({"hidden_act": {"a": {}}}, "cannot be"),
        ({"hidden_act": "x" * 10**5}, "plain value of hidden_act"),
        ({"hidden_dropout_prob": 7}, "cannot be"),
        ({"layer_norm_eps": float("nan")}, "plain value of layer_norm_eps"),
        ({"pad_token_id": 10**7}, "expected a padding id below"),
        ({"pad_token_id": -5}, "expected a padding id below"),
        ({"pad_token_id": "0"}, "padding id|cannot be used"),
        ({"max_position_embeddings": 4}, "of shape|room for 8 tokens"),
        ({"quantization_config": {"quant_method": "gptq"}}, "expected plain weights, found a quantization"),
        ({"num_hidden_layers": 10**7}, "expected num_hidden_layers between 1 and 256"),
        ({"vocab_size": 10**9}, "expected .*vocab_size"),
        ({"vocab_size": 2_000_000}, "expected weights of .* numbers"),
        ({"hidden_size": 65_536}, "expected weights of .* numbers"),
        ({"type_vocab_size": 10**6}, "expected type_vocab_size between"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(
    folder: Path, values: dict[str, Any], sentence: str
) -> None:
    refused(configured(folder, **values), sentence)


DEEP = "[" * 100_000 + "]" * 100_000
BROKEN_JSON = {
    "list": b"[1]",
    "number": b"5",
    "null": b"null",
    "empty": b"",
    "deep": DEEP.encode(),
    "deep object": b'{"a":' * 50_000,
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "long number": b'{"a": ' + b"9" * 10_000 + b"}",
    "large": b'{"a": "' + b"x" * (33 << 20) + b'"}',
    "pickle": b"\x80\x04cos\nsystem\n.",
}


@pytest.mark.parametrize("data", BROKEN_JSON.values(), ids=BROKEN_JSON)
@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"]
)
def test_a_file_that_is_no_json_object_is_refused(folder: Path, file: str, data: bytes) -> None:
    if "index" in file:
        (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / file).write_bytes(data)
    refused(folder)


@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
)
def test_a_folder_or_a_pipe_in_place_of_a_file_is_refused(folder: Path, file: str) -> None:
    for make in (os.mkdir, os.mkfifo):
        path = folder / file
        path.unlink() if not path.is_dir() else path.rmdir()
        make(path)
        refused(folder)


@pytest.mark.parametrize(
    "name", ["x" * 300 + "/y", "a\0b-c", "\ud800-x", "/dev/null", "a b-c", "", "../.." * 900]
)
def test_a_name_that_names_nothing_is_one_sentence(name: str) -> None:
    for use in (check_encoder, lambda name: load_encoder(name, READOUTS["sentence"]())):
        with pytest.raises(RepclError) as caught:
            use(name)
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize("share", range(0, 100, 5))
@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_file_that_was_cut_short_is_refused(folder: Path, file: str, share: int) -> None:
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[: len(data) * share // 100])
    refused(folder)


@pytest.mark.parametrize(
    "device", ["meta", "cuda:99", "nothing", "", "cpu:x", "xla", "privateuseone", "x" * 999]
)
def test_a_device_that_keeps_no_numbers_is_refused(device: str) -> None:
    with pytest.raises(InvalidSetting, match="Expected a device") as caught:
        chosen_device(device)
    assert len(str(caught.value)) < 300


# ---- tokenizers --------------------------------------------------------------------------------------


def backend() -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    return parts


def tokenizer_refused(how: Change, sentence: str, *, config: dict[str, Any] | None = None) -> None:
    parts = backend()
    how(parts)
    with pytest.raises(Unusable, match=sentence) as caught:
        build_tokenizer(json.dumps(parts), config or {})
    assert len(str(caught.value)) < 400


def doubling(times: int) -> dict[str, Any]:
    twice = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    return {"type": "Sequence", "normalizers": [twice] * times}


def nested(slot: str, key: str, depth: int) -> Change:
    part: dict[str, Any] = {"type": "Sequence", key: []}
    for _ in range(depth):
        part = {"type": "Sequence", key: [part]}
    return lambda parts: parts.update({slot: part})


def expression(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


HOSTILE_PARTS: dict[str, tuple[Change, str]] = {
    "doubling": (
        lambda parts: parts.update(normalizer=doubling(34)),
        "make a text at most 16 times as long|32",
    ),
    "five doublings": (lambda parts: parts.update(normalizer=doubling(5)), "at most 16 times as long"),
    "one long replacement": (
        lambda parts: parts.update(
            normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": "b" * 10**6}
        ),
        "short replacement",
    ),
    "nothing replaced": (
        lambda parts: parts.update(normalizer={"type": "Replace", "pattern": {"String": ""}, "content": "b"}),
        "short text or a known expression",
    ),
    "slow expression": (lambda parts: parts.update(pre_tokenizer=expression("(a+)+$")), "known expression"),
    "slower expression": (
        lambda parts: parts.update(pre_tokenizer=expression(r"(?:(?=(\w+))\1)*" * 9)),
        "known expression",
    ),
    "many parts": (
        lambda parts: parts.update(
            pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}] * 99}
        ),
        "at most 32 parts",
    ),
    "deep normalizer": (nested("normalizer", "normalizers", 60), "at most 32 parts"),
    "deep pre-tokenizer": (nested("pre_tokenizer", "pretokenizers", 60), "at most 32 parts"),
    "deep post-processor": (nested("post_processor", "processors", 60), "at most 32 parts"),
    "deep decoder": (nested("decoder", "decoders", 60), "at most 32 parts"),
    "map of characters": (
        lambda parts: parts.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        "map of characters",
    ),
    "map of long characters": (
        lambda parts: parts.update(
            normalizer={"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAA" + "YWFh" * 1000}
        ),
        "map of characters",
    ),
    "no model": (lambda parts: parts.update(model=None), "with a model"),
    "other model": (lambda parts: parts["model"].update(type="Evil"), "model among"),
    "no words": (lambda parts: parts["model"].update(vocab={}), "1 to 1000000 tokens"),
    "words without numbers": (lambda parts: parts["model"].update(vocab={"a": "b"}), "expected tokens"),
    "negative numbers": (lambda parts: parts["model"]["vocab"].update(a=-1), "expected tokens"),
    "long words": (lambda parts: parts["model"]["vocab"].update({"x" * 5000: 1}), "expected tokens"),
    "no unknown": (lambda parts: parts["model"].update(unk_token="[NOTHING]"), "expected an unknown token"),
    "slow words": (
        lambda parts: parts["model"].update(max_input_chars_per_word=1000),
        "at most 256 characters",
    ),
    "dropout": (lambda parts: parts["model"].update(type="BPE", merges=[], dropout=0.5), "without dropout"),
    "merge of nothing": (
        lambda parts: parts["model"].update(type="BPE", merges=["a zzzz"]),
        "cannot be built",
    ),
    "merges that are none": (lambda parts: parts["model"].update(type="BPE", merges=[5]), "expected tokens"),
    "scores that are none": (
        lambda parts: parts.update(model={"type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0}),
        "expected tokens",
    ),
    "empty piece": (
        lambda parts: parts.update(model={"type": "Unigram", "vocab": [["", 0.0]], "unk_id": 0}),
        "expected tokens",
    ),
    "unknown out of range": (
        lambda parts: parts.update(model={"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}),
        "expected an unknown token",
    ),
    "template out of range": (
        lambda parts: parts["post_processor"]["special_tokens"]["[CLS]"].update(ids=[10**7]),
        "special tokens that the vocabulary has",
    ),
    "template without a text": (lambda parts: parts["post_processor"].update(single=[]), "one text in it"),
    "template with two texts": (
        lambda parts: parts["post_processor"].update(single=[{"Sequence": {"id": "A", "type_id": 0}}] * 2),
        "one text in it",
    ),
    "long template": (
        lambda parts: parts["post_processor"].update(
            single=[{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * 10**5
        ),
        "at most 32 pieces",
    ),
    "frame out of range": (
        lambda parts: parts.update(
            post_processor={"type": "BertProcessing", "sep": ["[SEP]", 10**6], "cls": ["[CLS]", 2]}
        ),
        "special tokens that the vocabulary has",
    ),
    "added tokens": (
        lambda parts: parts.update(added_tokens=[{"content": "x"}] * 10**5),
        "at most 10000 added",
    ),
    "added nothing": (
        lambda parts: parts.update(added_tokens=[{"content": "", "id": 5}]),
        "added token with its number",
    ),
    "added far away": (
        lambda parts: parts["added_tokens"].append(
            {**parts["added_tokens"][0], "content": "far", "id": 10**7}
        ),
        "to be token 10000000",
    ),
    "table as an option": (lambda parts: parts["normalizer"].update(lowercase={}), "plain option"),
    "long option": (lambda parts: parts["model"].update(continuing_subword_prefix="#" * 999), "plain option"),
    "half a character": (lambda parts: parts["model"]["vocab"].update({"\ud800": 3}), "cannot be built"),
}


@pytest.mark.parametrize(("how", "sentence"), HOSTILE_PARTS.values(), ids=HOSTILE_PARTS)
def test_a_hostile_tokenizer_is_refused(how: Change, sentence: str) -> None:
    tokenizer_refused(how, sentence)


@pytest.mark.parametrize("slot", KINDS)
@pytest.mark.parametrize(
    "part", [5, "x", [], {}, {"type": None}, {"type": []}, {"type": "Evil"}, {"type": "CTC"}]
)
def test_a_part_of_an_unknown_kind_is_refused(slot: str, part: Any) -> None:
    tokenizer_refused(lambda parts: parts.update({slot: part}), f"expected a {slot} among")


@pytest.mark.parametrize("pattern", sorted(EXPRESSIONS))
def test_every_known_expression_takes_time_that_grows_with_the_text_only(pattern: str) -> None:
    parts = backend()
    parts["pre_tokenizer"] = expression(pattern)
    built = build_tokenizer(json.dumps(parts), {})
    text = "a " * 20_000 + "'" * 20_000 + "7" * 20_000 + " " * 20_000
    assert built.backend_tokenizer.encode(text).ids


@pytest.mark.parametrize("length", [0, -1, "long", [], float("nan"), True])
def test_a_longest_input_that_is_none_is_refused(length: Any) -> None:
    tokenizer_refused(lambda _: None, "expected the longest input", config={"model_max_length": length})


def test_a_longest_input_without_limit_is_taken() -> None:
    assert build_tokenizer(json.dumps(backend()), {"model_max_length": 1e30}).model_max_length == 10**8


def no_special(token: str) -> Change:
    def how(parts: dict[str, Any]) -> None:
        parts["added_tokens"] = [one for one in parts["added_tokens"] if one["content"] != token]
        parts["model"]["vocab"][f"{token}?"] = parts["model"]["vocab"].pop(token)

    return how


@pytest.mark.parametrize("token", ["[PAD]", "[MASK]"])
def test_a_tokenizer_without_padding_or_mask_is_refused(folder: Path, token: str) -> None:
    change(folder / "tokenizer.json", no_special(token))
    refused(folder, "mask token and a padding token")


def test_special_tokens_that_the_vocabulary_lacks_are_not_added(folder: Path) -> None:
    change(folder / "tokenizer_config.json", lambda values: values.update(bos_token="[EVIL]"))
    assert "[EVIL]" not in load(folder).tokenizer.get_vocab()


def test_a_tokenizer_with_more_words_than_the_encoder_knows_is_refused(folder: Path) -> None:
    change(folder / "tokenizer.json", lambda parts: parts["model"]["vocab"].update(surprise=5000))
    refused(folder, "more words than the")


def test_a_tokenizer_that_drops_every_letter_is_refused(folder: Path) -> None:
    nothing = {"type": "Replace", "pattern": {"String": "a"}, "content": ""}
    change(folder / "tokenizer.json", lambda parts: parts.update(normalizer=nothing))
    refused(folder, "the tokenizer cannot read a text")


class PanicException(BaseException):
    """As the tokenizer's library raises it; the real one cannot be made here."""


@pytest.mark.parametrize("error", [PanicException("index out of bounds"), Exception("Missing [UNK] token")])
def test_a_panic_over_a_text_is_one_sentence(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    encoder = tiny_encoder()

    def panic(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(encoder.readout, "prepare", panic)
    with pytest.raises(EncoderUnavailable, match="Encoder 'tiny' cannot read these texts"):
        encoder.tokenize([Example("rain", "x")])


def test_a_stop_by_the_user_is_not_taken_for_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = tiny_encoder()

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(encoder.readout, "prepare", stop)
    with pytest.raises(KeyboardInterrupt):
        encoder.tokenize([Example("rain", "x")])


# ---- bombs, under limits of the system ---------------------------------------------------------------

LIMITED = """
import resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
warnings.simplefilter("ignore")
from repcl.errors import RepclError
from repcl import ContinualClassifier
import repcl.model.encoders, transformers
before = resource.getrusage(resource.RUSAGE_SELF)
try:
    texts = ["a a a", "b b b"]
    settings = dict(pair.split("=") for pair in sys.argv[2:])
    settings = {key: int(value) for key, value in settings.items()}
    ContinualClassifier("instant", sys.argv[1], device="cpu", settings=settings).fit(texts, ["x", "y"])
except RepclError as error:
    print(str(error))
after = resource.getrusage(resource.RUSAGE_SELF)
print(int(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
print((after.ru_maxrss - before.ru_maxrss) // 1024)
"""


def limited(folder: Path, *options: str) -> str:
    """The sentence that learning ends with, in few seconds and little memory."""
    words = [sys.executable, "-c", LIMITED, str(folder), *options]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-2000:]
    *sentence, seconds, megabytes = ended.stdout.splitlines()
    assert int(seconds) < 20
    assert int(megabytes) < 1000
    (only,) = sentence
    return only


def sparse_weights(folder: Path) -> None:
    """A file that claims 400 GB and takes none."""
    header = json.dumps(
        {
            "embeddings.word_embeddings.weight": {
                "dtype": "F32",
                "shape": [10**6, 10**5],
                "data_offsets": [0, 4 * 10**11],
            }
        }
    ).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 4 * 10**11)


BOMBS: dict[str, tuple[Callable[[Path], object], str]] = {
    "layers": (lambda folder: configured(folder, num_hidden_layers=10**7), "num_hidden_layers"),
    "words": (lambda folder: configured(folder, vocab_size=2_000_000, hidden_size=65_536), "numbers"),
    "replacements": (
        lambda folder: change(folder / "tokenizer.json", lambda parts: parts.update(normalizer=doubling(34))),
        "times as long",
    ),
    "expression": (
        lambda folder: change(
            folder / "tokenizer.json", lambda parts: parts.update(pre_tokenizer=expression("(a+)+$"))
        ),
        "known expression",
    ),
    "weights": (sparse_weights, "GB of memory"),
}


@pytest.mark.parametrize(("how", "sentence"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_a_sentence_in_seconds_and_little_memory(
    folder: Path, how: Callable[[Path], object], sentence: str
) -> None:
    how(folder)
    assert sentence in limited(folder)


def test_settings_that_cannot_fit_are_a_sentence_in_seconds_and_little_memory(folder: Path) -> None:
    assert "The settings of 'instant' ask for" in limited(folder, "features=100000")


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("instant", {"features": 10**5}),
        ("instant", {"features": 10**12}),
        ("instant", {"features": 10**30}),
        ("crl", {"projection_size": 10**12}),
        ("kcn", {"feature_size": 10**12}),
    ],
)
def test_settings_that_cannot_fit_are_refused(method: str, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=f"settings of '{method}'|cannot be used: input should be"):
        build_method(method, "sentence", encoder=tiny_encoder(), settings=values, device="cpu")


def test_settings_are_measured_by_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"encoder": tiny_encoder(), "settings": {"features": 1000, "maps": 1}, "device": "cpu"}
    table = 8 * 1000 * 1001 // 2
    monkeypatch.setattr(machine_module, "memory_of_machine", lambda: 2 * table)
    build_method("instant", "sentence", **wanted)
    monkeypatch.setattr(machine_module, "memory_of_machine", lambda: table)
    with pytest.raises(InvalidSetting, match="make them smaller"):
        build_method("instant", "sentence", **wanted)


# ---- a damaged cache of embeddings -------------------------------------------------------------------

RAIN = [Example("rain in paris", "x"), Example("snow", "y")]


def cache(folder: Path) -> Path:
    Embedder(tiny_encoder(), folder)(RAIN * 3)
    return folder / "embeddings.sqlite"


def right_or_refused(folder: Path) -> None:
    """A cache gives vectors, or says in one sentence that it is damaged."""
    said = ""
    try:
        found = Embedder(tiny_encoder(), folder)(RAIN)
    except ResultMismatch as error:
        said = str(error)
    assert "delete it, or unset REPCL_EMBEDDINGS" in said or bool(found.isfinite().all())


@pytest.mark.parametrize("at", range(0, 8192, 256))
def test_a_cache_damaged_anywhere_is_right_or_one_sentence(tmp_path: Path, at: int) -> None:
    path = cache(tmp_path)
    data = bytearray(path.read_bytes())
    data[at : at + 64] = b"\xa5" * len(data[at : at + 64])
    path.write_bytes(data)
    right_or_refused(tmp_path)


@pytest.mark.parametrize("share", range(5, 100, 5))
def test_a_cache_that_was_cut_short_is_right_or_one_sentence(tmp_path: Path, share: int) -> None:
    path = cache(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * share // 100])
    right_or_refused(tmp_path)


@pytest.mark.parametrize(
    "value", ["text of 128 characters".ljust(128), 5, 1.5, None, b"short", b"\xff" * 128]
)
def test_rows_of_a_cache_that_are_none_are_computed_again(tmp_path: Path, value: Any) -> None:
    path = cache(tmp_path)
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE embeddings SET row = ?", [value])
    database.close()
    assert torch.equal(Embedder(tiny_encoder(), tmp_path)(RAIN), Embedder(tiny_encoder())(RAIN))


@pytest.mark.parametrize(
    "table", ["TABLE embeddings (a)", "VIEW embeddings AS SELECT 1 AS a", "TABLE embeddings (key)"]
)
def test_a_cache_with_another_table_is_one_sentence(tmp_path: Path, table: str) -> None:
    database = sqlite3.connect(tmp_path / "embeddings.sqlite")
    database.execute(f"CREATE {table}")
    database.close()
    with pytest.raises(ResultMismatch, match="delete it, or unset REPCL_EMBEDDINGS"):
        Embedder(tiny_encoder(), tmp_path)(RAIN)


def test_a_file_or_a_folder_in_the_way_of_a_cache_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "embeddings.sqlite").mkdir(parents=True)
    for name in ("file", "folder"):
        with pytest.raises(ResultMismatch, match="Expected stored embeddings"):
            Embedder(tiny_encoder(), tmp_path / name)(RAIN)


# ---- random changes of good files --------------------------------------------------------------------

LEAVES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 10**3, 10**7, 10**19, 10**400, 0.5, -0.5, 1e308,
    float("nan"), float("inf"),
    "", "a", "bert", "[PAD]", "x" * 3000, "\ud800", "\0", "../..", "evil/model", "(a+)+$",
    [], {}, [[]], [None], {"type": "Sequence"}, {"String": ""}, {"Regex": "("}, [1, 2], ["a", "b"],
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, with few of a long table."""
    items = list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    )
    chosen = [*items[:12], *items[-3:]] if len(items) > 15 else items
    return [path, *(place for key, item in chosen for place in places(item, (*path, key)))]


@st.composite
def changed(draw: st.DrawFn, good: dict[str, Any], donors: list[Any]) -> Any:
    """A good JSON value with one to four places replaced, removed, repeated, or given to another key."""
    value = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(places(value)))
        if not path:
            continue
        owner = value
        for key in path[:-1]:
            owner = owner[key]
        what = draw(st.sampled_from(["replace", "replace", "remove", "donate", "repeat", "add"]))
        if what == "remove":
            del owner[path[-1]]
        elif what == "repeat" and isinstance(owner, list):
            owner *= draw(st.integers(2, 50))
        elif what == "add" and isinstance(owner, dict):
            owner[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(LEAVES)))
        else:
            source = donors if what == "donate" else LEAVES
            owner[path[-1]] = copy.deepcopy(draw(st.sampled_from(source)))
    return value


KEYS = [
    "model_type", "auto_map", "_attn_implementation", "quantization_config", "backbone", "hidden_act",
    "is_decoder",
    "rope_parameters", "layer_types", "type", "dropout", "unk_id", "merges", "normalizers", "content",
    "pattern",
]  # fmt: skip
CONFIGS = [
    {"model_type": family, **SMALL, "vocab_size": 130, **SHAPES.get(family, {})} for family in FAMILIES
]
PARTS: list[Any] = [
    {"type": kind} for kinds in KINDS.values() for kind in kinds.split(", ")
] + [
    {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0]], "unk_id": 0},
    {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Precompiled", "precompiled_charsmap": "AAQAAA" + "A" * 1364},
    {"type": "Strip", "content": "a", "start": 9, "stop": 9},
    {"type": "Prepend", "prepend": "a"},
    {"type": "CharDelimiterSplit", "delimiter": "ab"},
    doubling(3),
    expression(" {2,}"),
]  # fmt: skip
TEXTS = ["a", "the rain in paris", "é 漢字 \u200b\U0001f697 '' 12", "a" * 600, " "]


def survive_config(values: Any) -> None:
    """A configuration becomes an empty encoder or one sentence."""
    said = ""
    try:
        empty_backbone(build_config(values))
    except Unusable as error:
        said = str(error)
    assert len(said) < 400


def survive_tokenizer(parts: Any, config: Any) -> None:
    """A tokenizer reads texts or is refused in one sentence."""
    encoder, said = tiny_encoder(), ""
    try:
        encoder.tokenizer = build_tokenizer(json.dumps(parts), config)
        encoder._tokenized = {}
        encoder.tokenize([Example(text, "x") for text in TEXTS])
    except (Unusable, RepclError) as error:
        said = str(error)
    assert len(said) < 500


fuzzed = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
fuzzed_long = settings(fuzzed, max_examples=5000)
any_config = st.sampled_from(CONFIGS).flatmap(lambda good: changed(good, CONFIGS))
any_parts = changed(backend(), PARTS)
any_settings = changed(
    {"model_max_length": 512, "pad_token": "[PAD]", "mask_token": {"content": "[MASK]"}}, PARTS
)


@pytest.mark.filterwarnings("ignore")
@fuzzed
@given(any_config)
def test_a_changed_configuration_is_used_or_refused(values: Any) -> None:
    survive_config(values)


@pytest.mark.filterwarnings("ignore")
@fuzzed
@given(any_parts, any_settings)
def test_a_changed_tokenizer_is_used_or_refused(parts: Any, config: Any) -> None:
    survive_tokenizer(parts, config)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@fuzzed_long
@given(any_config)
def test_thousands_of_changed_configurations_are_used_or_refused(values: Any) -> None:
    survive_config(values)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@fuzzed_long
@given(any_parts, any_settings)
def test_thousands_of_changed_tokenizers_are_used_or_refused(parts: Any, config: Any) -> None:
    survive_tokenizer(parts, config)


@pytest.mark.filterwarnings("ignore")
@settings(fuzzed, max_examples=60)
@given(st.data())
def test_a_changed_folder_is_loaded_or_refused(
    pristine: Path, tmp_path_factory: Any, data: st.DataObject
) -> None:
    folder = Path(shutil.copytree(pristine, tmp_path_factory.mktemp("fuzzed") / "encoder"))
    file = data.draw(st.sampled_from(["config.json", "tokenizer.json", "tokenizer_config.json"]))
    good = json.loads((folder / file).read_text())
    values = data.draw(changed(good, CONFIGS if file == "config.json" else PARTS))
    (folder / file).write_text(json.dumps(values))
    said = ""
    try:
        load(folder).tokenize([Example(text, "x") for text in TEXTS])
    except RepclError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 600
    shutil.rmtree(folder)
