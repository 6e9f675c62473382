"""Our BERT beside that of transformers, to the bit."""

import copy
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertConfig as TheirConfig
from transformers import BertModel

from repcl.model import products
from repcl.model.backbone import build_config, empty_backbone, fill_backbone
from repcl.model.bert import Bert
from repcl.model.untrusted import Unusable

SHAPE = {
    "model_type": "bert",
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
}
IDS = torch.randint(1, 50, (4, 9), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(9) < torch.tensor([9, 4, 9, 6])[:, None]).long()


@pytest.fixture(autouse=True)
def _one_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits are compared where both multiply by the same library."""
    monkeypatch.setattr(products, "prefers_onednn", lambda: False)


def both(attention: str = "eager", **more: Any) -> tuple[Bert, BertModel]:
    torch.manual_seed(0)
    theirs = BertModel(TheirConfig(**{**SHAPE, **more}))
    theirs.set_attn_implementation(attention)
    ours, unused = fill_backbone(build_config({**SHAPE, **more}), theirs.state_dict(), dtype=torch.float32)
    ours.set_attn_implementation(attention)
    assert isinstance(ours, Bert)
    assert unused == []
    return ours, theirs.eval()


def states(backbone: Any, **inputs: Tensor) -> tuple[Tensor, ...]:
    return backbone(attention_mask=MASK, output_hidden_states=True, **inputs).hidden_states  # type: ignore[no-any-return]


@pytest.mark.parametrize("activation", ["gelu", "relu", "silu"])
def test_every_layer_has_the_states_that_transformers_computes(activation: str) -> None:
    ours, theirs = both(hidden_act=activation)
    pairs = list(zip(states(ours, input_ids=IDS), states(theirs, input_ids=IDS), strict=True))
    assert len(pairs) == 4
    assert all(torch.equal(own, other) for own, other in pairs)


def test_attention_by_torch_itself_gives_the_same_states() -> None:
    ours, theirs = both("sdpa")
    seen = MASK.bool()
    own, other = (states(one, input_ids=IDS)[-1][seen] for one in (ours, theirs))
    torch.testing.assert_close(own, other)


def test_embeddings_and_segments_can_be_handed_in() -> None:
    ours, theirs = both()
    inputs = {"inputs_embeds": torch.randn(4, 9, 32), "token_type_ids": IDS % 2}
    assert torch.equal(states(ours, **inputs)[-1], states(theirs, **inputs)[-1])


def test_training_draws_and_learns_the_same() -> None:
    gradients = []
    for backbone in both():
        backbone.train()
        torch.manual_seed(1)
        states(backbone, input_ids=IDS)[-1].square().sum().backward()
        gradients.append({name: value.grad for name, value in backbone.named_parameters()})
    ours, theirs = gradients
    assert list(ours) == list(theirs)
    learned = [name for name, value in theirs.items() if value is not None]
    assert len(learned) == len(ours) - 2  # nobody uses the pooler
    assert all(torch.equal(ours[name], theirs[name]) for name in learned)  # type: ignore[arg-type]


def test_more_words_are_drawn_as_transformers_draws_them() -> None:
    tables = []
    for backbone in both():
        torch.manual_seed(2)
        backbone.resize_token_embeddings(53, mean_resizing=False)
        assert backbone.config.vocab_size == 53
        tables.append(backbone.get_input_embeddings().weight)
    assert torch.equal(*tables)


def test_weights_are_found_behind_a_prefix_and_under_old_names() -> None:
    ours, theirs = both()
    renamed = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in theirs.state_dict().items()
    }
    head = {"cls.predictions.bias": torch.zeros(50)}
    found, unused = fill_backbone(build_config(SHAPE), renamed | head, dtype=torch.float32)
    assert unused == []
    assert torch.equal(states(found, input_ids=IDS)[-1], states(ours, input_ids=IDS)[-1])


def test_a_weight_behind_the_prefix_that_has_no_place_is_named() -> None:
    weights = {f"bert.{name}": value for name, value in both()[1].state_dict().items()}
    _, unused = fill_backbone(
        build_config(SHAPE), weights | {"bert.odd": torch.zeros(1)}, dtype=torch.float32
    )
    assert unused == ["bert.odd"]


@pytest.mark.parametrize("name", ["embeddings.LayerNorm.bias", "encoder.layer.1.output.dense.weight"])
def test_a_missing_weight_is_refused_by_name(name: str) -> None:
    weights = {key: value for key, value in both()[1].state_dict().items() if key != name}
    with pytest.raises(Unusable, match=f"expected weights for {name}"):
        fill_backbone(build_config(SHAPE), weights, dtype=torch.float32)


def test_a_pooler_that_is_missing_is_zero() -> None:
    weights = {key: value for key, value in both()[1].state_dict().items() if "pooler" not in key}
    found, _ = fill_backbone(build_config(SHAPE), weights, dtype=torch.float32)
    assert not found.pooler.dense.weight.any()


def test_a_weight_of_another_shape_is_refused_with_both_shapes() -> None:
    weights = both()[1].state_dict() | {"embeddings.LayerNorm.bias": torch.zeros(31)}
    with pytest.raises(Unusable, match=r"LayerNorm.bias of shape \(32,\), found \(31,\)"):
        fill_backbone(build_config(SHAPE), weights, dtype=torch.float32)


def test_the_weights_that_were_handed_in_do_not_learn_along() -> None:
    weights = both()[1].state_dict()
    before = copy.deepcopy(weights)
    found, _ = fill_backbone(build_config(SHAPE), weights, dtype=torch.float32)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(weights[name], before[name]) for name in before)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("hidden_dropout_prob", 2, "a number from 0 to 1"),
        ("hidden_dropout_prob", "0.1", "a number from 0 to 1"),
        ("layer_norm_eps", None, "a number from 0 to 1"),
        ("pad_token_id", 0.5, "a whole number"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(key: str, value: object, kind: str) -> None:
    with pytest.raises(Unusable, match=f"expected {kind} as {key}"):
        build_config({**SHAPE, key: value})


def test_values_that_nobody_asks_for_are_written_down_again() -> None:
    config = build_config({**SHAPE, "position_embedding_type": "absolute", "hidden_dropout_prob": 0.0})
    written = config.to_dict()
    assert written["position_embedding_type"] == "absolute"
    assert build_config(written).to_dict() == written


def test_an_activation_that_only_transformers_knows_is_left_to_it() -> None:
    backbone = empty_backbone(build_config({**SHAPE, "hidden_act": "gelu_new"}))
    assert isinstance(backbone, BertModel)


def test_answering_with_a_bert_does_not_import_transformers() -> None:
    script = (
        "import sys; from repcl import ContinualClassifier;"
        "ContinualClassifier('ncm', device='cpu').fit(['a b', 'c d'], ['x', 'y']).predict(['a']);"
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
