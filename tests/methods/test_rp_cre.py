"""RP-CRE against the numbers worked out by hand in its specification."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from repcl.data import Example, Task
from repcl.methods.emar import EMAR
from repcl.methods.rp_cre import RPCRE, MemoryNetwork
from tests.conftest import toy_example, toy_task
from tests.methods.prototype_helpers import (
    FAST,
    Diary,
    copied,
    count_updates,
    fewrel_sized,
    longest_moves,
    make,
    matrix,
    same,
)

FEATURE = matrix((1, 2, 3, 4))
PROTOTYPES = matrix((4, 3, 2, 1), (1, -1, 1, -1))


def plain_network(*, heads: int) -> MemoryNetwork:
    """A network of size 4 whose linear maps are identities without bias."""
    size = 4 // heads
    network = MemoryNetwork(4, heads=heads, key_size=size, value_size=size)
    for layer in (network.query, network.key_value, network.merge, network.output):
        nn.init.zeros_(layer.bias)
    for layer in (network.query, network.merge, network.output):
        nn.init.eye_(layer.weight)
    # each head has its keys first, then its values
    per_head = torch.eye(4).split(size)
    network.key_value.weight.data = torch.cat([part for own in per_head for part in (own, own)])
    return network


def random_network(heads: int = 3) -> MemoryNetwork:
    torch.manual_seed(0)
    return MemoryNetwork(6, heads=heads, key_size=5, value_size=7)


@pytest.mark.parametrize(
    ("heads", "attention", "refined"),
    [
        (1, (0.017060, 0.051536, 0.931404), (-1.165440, -0.624253, 0.324522, 1.465171)),
        (2, (0.049742, 0.108701, 0.841557), (-1.158456, -0.663727, 0.383239, 1.438943)),
    ],
)
def test_refined_feature_of_a_network_of_identities(
    heads: int, attention: tuple[float, ...], refined: tuple[float, ...]
) -> None:
    network = plain_network(heads=heads)
    own_keys, keys = (network._keys_and_values(rows)[0] for rows in (FEATURE, PROTOTYPES))
    weights = network.attention(FEATURE, own_keys, keys)[0]
    torch.testing.assert_close(weights, matrix(*[attention] * heads), atol=1e-6, rtol=0)
    torch.testing.assert_close(network(FEATURE, PROTOTYPES), matrix(refined), atol=2e-6, rtol=0)


def test_layer_norms_inside_a_network_of_identities() -> None:
    network, seen = plain_network(heads=1), []
    for norm in (network.merge_norm, network.attention_norm):
        norm.register_forward_hook(lambda module, inputs, output: seen.append(output))
    network(FEATURE, PROTOTYPES)
    expected = (
        (-1.316744, -0.515907, 0.515907, 1.316744),
        (-1.330331, -0.479807, 0.479807, 1.330331),
    )
    torch.testing.assert_close(torch.cat(seen), matrix(*expected), atol=1e-6, rtol=0)


def test_queries_are_normalized_over_all_heads_together() -> None:
    network = plain_network(heads=2)
    normed = network.query_norm(FEATURE.unflatten(1, (2, 2))).flatten()
    torch.testing.assert_close(normed, matrix((-1.3416, -0.4472, 0.4472, 1.3416))[0], atol=1e-4, rtol=0)


def test_the_order_of_prototypes_does_not_matter() -> None:
    network = random_network()
    features, prototypes = torch.randn(2, 6), torch.randn(5, 6)
    shuffled = prototypes[torch.tensor([3, 0, 4, 1, 2])]
    torch.testing.assert_close(network(features, shuffled), network(features, prototypes))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_prototypes_equal_to_the_feature_change_nothing_however_many(count: int) -> None:
    refined = plain_network(heads=1)(FEATURE, FEATURE.repeat(count, 1))
    expected = matrix((-1.169502, -0.597515, 0.285993, 1.481024))
    torch.testing.assert_close(refined, expected, atol=2e-6, rtol=0)


def test_without_its_last_maps_the_network_only_normalizes() -> None:
    network = random_network()
    for layer in (network.merge, network.output):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    features = torch.randn(3, 6)
    norm = nn.LayerNorm(6)
    torch.testing.assert_close(network(features, torch.randn(4, 6)), norm(norm(features)))


def full_self_attention(network: MemoryNetwork, feature: Tensor, prototypes: Tensor) -> Tensor:
    """All rows attend to all rows, as the specification writes it down; the last row is the result."""
    rows = torch.cat([prototypes, feature[None]])
    heads, key_size = network.query_norm.normalized_shape
    queries = network.query_norm(network.query(rows).view(len(rows), heads, key_size)) / key_size**0.5
    both = network.key_value(rows).view(len(rows), heads, -1)
    keys, values = network.key_norm(both[..., :key_size]), network.value_norm(both[..., key_size:])
    attended = [
        (queries[:, head] @ keys[:, head].T).softmax(dim=1) @ values[:, head] for head in range(heads)
    ]
    mixed = network.attention_norm(network.merge_norm(network.merge(torch.cat(attended, dim=1))) + rows)
    return network.output_norm(nn.functional.gelu(network.output(mixed)) + mixed)[-1]


def test_computing_one_row_agrees_with_full_self_attention() -> None:
    network = random_network()
    features, prototypes = torch.randn(4, 6), torch.randn(5, 6)
    expected = torch.stack([full_self_attention(network, feature, prototypes) for feature in features])
    torch.testing.assert_close(network(features, prototypes), expected, atol=1e-6, rtol=0)


def test_each_feature_is_refined_by_itself() -> None:
    network = random_network()
    features, prototypes = torch.randn(4, 6), torch.randn(5, 6)
    one_by_one = torch.cat([network(feature[None], prototypes) for feature in features])
    torch.testing.assert_close(network(features, prototypes), one_by_one)


def test_number_of_parameters_at_the_size_of_bert() -> None:
    assert sum(parameter.numel() for parameter in MemoryNetwork(768).parameters()) == 6_902_784


def network_state(method: Any) -> dict[str, Tensor]:
    return copied(method.network.state_dict())


def trained_state(method: Any) -> dict[str, Tensor]:
    return {
        f"{part}.{key}": value
        for part in ("encoder", "head")
        for key, value in copied(getattr(method, part).state_dict()).items()
    }


def test_the_network_is_untouched_by_initial_learning_and_all_parts_learn_in_replay() -> None:
    method = make(RPCRE, **FAST)
    method.observer = diary = Diary(lambda: (trained_state(method), network_state(method)))
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    begins, ends = dict(diary.begins), dict(diary.ends)
    assert same(begins["initial learning"][1], ends["initial learning"][1])
    moved = longest_moves(begins["replay"][0], ends["replay"][0])
    assert moved["head.output.weight"] > 0
    assert moved["encoder.backbone.encoder.layer.0.output.dense.weight"] > 0
    assert not same(begins["replay"][1], ends["replay"][1])


def test_every_part_has_its_own_learning_rate() -> None:
    method = make(RPCRE, batch_size=64, initial_epochs=1, replay_epochs=1)
    method.observer = diary = Diary(lambda: (trained_state(method), network_state(method)))
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    (before, network_before), (after, network_after) = (
        dict(diary.begins)["replay"],
        dict(diary.ends)["replay"],
    )
    moved = longest_moves(before, after)
    # one batch, one epoch: the first step of Adam is as long as the learning rate
    assert moved["head.output.weight"] == pytest.approx(1e-3, rel=0.02)
    assert moved["head.hidden.1.weight"] == pytest.approx(1e-5, rel=0.02)
    assert max(longest_moves(network_before, network_after).values()) == pytest.approx(1e-4, rel=0.02)


def test_encoder_classifier_and_network_are_clipped_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    groups: dict[str, list[Any]] = {}
    monkeypatch.setattr(
        "repcl.methods.prototypical.run_stage", lambda *parts, groups: found(parts[1], groups)
    )

    def found(stage: str, chosen: list[Any]) -> None:
        groups[stage] = chosen

    method = make(RPCRE, **FAST)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    assert [group.is_clipped_alone for group in groups["initial learning"]] == [True, True]
    assert [group.is_clipped_alone for group in groups["replay"]] == [True, True, True]
    assert groups["replay"][1].parts == (method.head.output,)
    assert groups["replay"][2].parts == (method.network,)


def test_each_task_has_a_new_network_and_keeps_encoder_and_classifier() -> None:
    method = make(RPCRE, **FAST)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    old_network, old = network_state(method), trained_state(method)
    method.observer = diary = Diary(lambda: (trained_state(method), network_state(method)))
    method.learn(toy_task("sentence", "weather"))
    begins = dict(diary.begins)
    assert not torch.equal(begins["replay"][1]["query.weight"], old_network["query.weight"])
    at_start = begins["initial learning"][0]
    assert torch.equal(at_start["head.output.weight"][:2], old.pop("head.output.weight"))
    assert all(torch.equal(at_start[key], value) for key, value in old.items())


@pytest.mark.parametrize("refresh", [False, True])
def test_prototypes_in_training_and_in_testing(refresh: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(RPCRE, refresh_prototypes=refresh, **FAST)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    before = method.exemplar_prototypes(["fruit", "vehicle"])
    used: list[Tensor] = []
    after_initial: list[Tensor] = []
    plain = method.balance

    def watched(prototypes: Tensor) -> None:
        used.append(prototypes)
        after_initial.append(method.exemplar_prototypes(["fruit", "vehicle", "weather"]))
        plain(prototypes)

    monkeypatch.setattr(method, "balance", watched)
    method.observer = diary = Diary()
    method.learn(toy_task("sentence", "weather"))
    assert diary.stages == ["initial learning", "memory update", "replay", "memory update"]
    expected_old = after_initial[0][:2] if refresh else before
    # padding differs between batches, so the last bits may
    torch.testing.assert_close(used[0], torch.cat([expected_old, after_initial[0][2:]]))
    assert not torch.allclose(before, after_initial[0][:2])
    assert not used[0].requires_grad
    assert torch.equal(method.prototypes, method.exemplar_prototypes(method.classes))


def test_replay_sees_every_exemplar_once_per_epoch_and_each_epoch_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = make(RPCRE, memory_per_class=10, batch_size=8)
    method.learn(toy_task("sentence", "fruit", "vehicle", train=12))
    seen: list[Any] = []
    plain = method.run

    def watched(name: str, batches: Any, *rest: Any, **more: Any) -> None:
        if name == "replay":
            seen.append([[batch.labels.tolist() for batch in batches] for _ in range(2)])
        plain(name, batches, *rest, **more)

    monkeypatch.setattr(method, "run", watched)
    method.learn(toy_task("sentence", "weather", train=12))
    first, second = seen[0]
    assert first == second
    assert Counter(label for batch in first for label in batch) == {0: 10, 1: 10, 2: 10}


def test_initial_learning_of_the_first_task_is_plain_fine_tuning() -> None:
    ends = []
    for chosen in (RPCRE, EMAR):
        method = make(chosen, **FAST, initial_epochs=2, clip_norm=1e9)
        method.observer = diary = Diary(lambda method=method: trained_state(method))
        method.learn(toy_task("sentence", "fruit", "vehicle"))
        ends.append(dict(diary.ends)["initial learning"])
    assert same(*ends)


def test_final_exemplars_are_chosen_among_all_examples_again(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(RPCRE, **FAST)
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    kept = method.memory.of("fruit")
    fresh = toy_task("sentence", "fruit", "weather", start=30)
    candidates: list[list[Example]] = []
    plain = method.remember

    def watched(task: Task) -> None:
        candidates.append(method.memory.of("fruit"))
        plain(task)

    monkeypatch.setattr(method, "remember", watched)
    method.learn(fresh)
    assert candidates == [kept, kept]
    assert method.memory.counts() == {"fruit": 3, "vehicle": 3, "weather": 3}


def test_updates_of_a_fewrel_run(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = count_updates(make(RPCRE, "relation"), fewrel_sized(), monkeypatch)
    assert (steps[0], steps[9], sum(steps)) == (1080, 1300, 11_900)


def test_an_unseen_class_is_never_predicted() -> None:
    method = make(RPCRE, reserved=True, expected_classes=6, **FAST)
    task = toy_task("sentence", "fruit", "vehicle")
    method.learn(task)
    method.head.output.weight.data[2:] = 100 * method.head.output.weight.data[:1]
    assert method.refined_scores(next(iter(method.batches(task.test, 8))), method.prototypes).shape == (6, 6)
    assert method.scores(task.test).shape == (6, 2)


@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_every_input_kind_can_be_learned(kind: Any) -> None:
    method = make(RPCRE, kind, **FAST, initial_epochs=1, replay_epochs=1)
    method.learn(toy_task(kind, "fruit", "vehicle"))
    assert method.scores(toy_task(kind, "fruit").test).shape == (3, 2)


def test_a_class_of_one_example_a_batch_of_one_class_and_no_memory_give_no_nan() -> None:
    few = FAST | {"initial_epochs": 2, "replay_epochs": 2}
    for settings in (few, few | {"memory_total": 1}, few | {"batch_size": 1}):
        method = make(RPCRE, **settings)
        method.learn(Task(("fruit",), [toy_example("sentence", "fruit", 0)], []))
        method.learn(toy_task("sentence", "vehicle"))
        assert method.scores(toy_task("sentence", "fruit", "vehicle").test).isfinite().all()
        assert all(value.isfinite().all() for value in method.state_dict().values())
