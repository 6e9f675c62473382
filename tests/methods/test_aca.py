"""ACA against the numbers worked out by hand in its specification."""

from typing import Any

import pytest
import torch
from torch import Tensor

from repcl.data import Example, Span, Task, TokenizedExample
from repcl.methods.aca import ACA, RelationMixer
from repcl.methods.emar import EMAR
from repcl.methods.rp_cre import RPCRE
from repcl.model import GrowingLinear
from tests.conftest import library_tokenizer, toy_example, toy_task
from tests.methods.prototype_helpers import (
    FAST,
    Diary,
    count_updates,
    fewrel_sized,
    labeled,
    make,
    matrix,
    relation_task,
    same,
)

MARKERS = ("[E11]", "[E12]", "[E21]", "[E22]")
MIXER = RelationMixer(markers=(1, 2, 3, 4), frame=(1, 1), longest=60)
VOCABULARY = ["[PAD]", *MARKERS, "[CLS]", "[SEP]"]
FIRST = "w0 w1 w2 w3 w4 w5 w6 [E11] a [E12] w7 w8 [E21] b [E22] w9"
SECOND = "v0 [E11] c [E12] v1 v2 v3 v4 v5 v6 v7 [E21] d [E22] v8"
NO_ACA: dict[str, Any] = {"hybrid_classes": False, "reversed_classes": False, "spare_rows": 0}


def row(text: str) -> TokenizedExample:
    """A tokenized example of words, between [CLS] and [SEP]."""
    words = ["[CLS]", *text.split(), "[SEP]"]
    VOCABULARY.extend(word for word in words if word not in VOCABULARY)
    spans = tuple((words.index(marker), words.index(marker) + 1) for marker in ("[E11]", "[E21]"))
    return TokenizedExample(tuple(VOCABULARY.index(word) for word in words), spans)


def words(example: TokenizedExample | None) -> str:
    assert example is not None
    return " ".join(VOCABULARY[token] for token in example.ids)


def tail_first(example: Example) -> Example:
    return Example(example.text, example.label, head=example.tail, tail=example.head)


def test_hybrid_has_the_head_of_one_and_the_tail_of_the_other() -> None:
    mixed = MIXER.hybrid(row(FIRST), row(SECOND))
    expected = "w2 w3 w4 w5 w6 [E11] a [E12] w7 w8 v3 v4 v5 v6 v7 [E21] d [E22] v8"
    assert words(mixed) == f"[CLS] {expected} [SEP]"
    assert mixed == row(expected)


def test_adjacent_entities_bring_no_context_of_the_other() -> None:
    adjacent = row("[E11] a [E12] [E21] b [E22]")
    assert words(MIXER.hybrid(adjacent, adjacent)) == "[CLS] [E11] a [E12] [E21] b [E22] [SEP]"
    assert words(MIXER.hybrid(adjacent, row(SECOND))).startswith("[CLS] [E11] a [E12] v3")
    assert words(MIXER.hybrid(row(FIRST), adjacent)).endswith("w8 [E21] b [E22] [SEP]")


@pytest.mark.parametrize(
    "unusable",
    [
        "[E21] b [E22] w0 [E11] a [E12]",  # the tail comes first
        "[E11] a [E21] b [E22] c [E12]",  # an entity in the other
        "[E11] a [E21] b [E12] c [E22]",  # overlapping entities
    ],
)
def test_no_hybrid_is_made_of_entities_out_of_order(unusable: str) -> None:
    assert MIXER.hybrid(row(unusable), row(SECOND)) is None
    assert MIXER.hybrid(row(FIRST), row(unusable)) is None
    assert MIXER.reverse(row(unusable)) != row(unusable)


def test_no_hybrid_is_made_of_a_text_that_lost_a_marker_to_truncation() -> None:
    cut = TokenizedExample(tuple(token for token in row(FIRST).ids if token != 4), row(FIRST).spans)
    assert MIXER.hybrid(cut, row(SECOND)) is None
    assert MIXER.hybrid(row(SECOND), cut) is None


def test_a_hybrid_longer_than_the_encoder_takes_is_not_made() -> None:
    short = RelationMixer(markers=MIXER.markers, frame=MIXER.frame, longest=20)
    assert short.hybrid(row(FIRST), row(SECOND)) is None


def test_reversing_twice_gives_the_example_back() -> None:
    original = row(FIRST)
    reversed_row = MIXER.reverse(original)
    assert words(reversed_row) == "[CLS] " + "w0 w1 w2 w3 w4 w5 w6 [E21] a [E22] w7 w8 [E11] b [E12] w9 [SEP]"
    assert reversed_row == row("w0 w1 w2 w3 w4 w5 w6 [E21] a [E22] w7 w8 [E11] b [E12] w9")
    assert MIXER.reverse(reversed_row) == original
    assert sorted(reversed_row.ids) == sorted(original.ids)
    assert sum(new != old for new, old in zip(reversed_row.ids, original.ids, strict=True)) == 4


@pytest.mark.parametrize(("count", "pairs"), [(8, "15 26 37 48"), (4, "13 24"), (5, "13 24"), (1, "")])
def test_classes_of_the_first_half_are_paired_with_those_of_the_second(count: int, pairs: str) -> None:
    classes = [[row(f"[E11] h{index} [E12] [E21] t{index} [E22]")] for index in range(1, count + 1)]
    found = [words(mixed[0]).split() for mixed in MIXER.hybrid_classes(classes)]
    assert " ".join(text[2][1:] + text[5][1:] for text in found) == pairs


def test_examples_are_paired_by_position_up_to_the_shorter_class() -> None:
    first = [row(f"[E11] h{index} [E12] [E21] x [E22]") for index in range(3)]
    second = [row(f"[E11] x [E12] [E21] t{index} [E22]") for index in range(2)]
    mixed = MIXER.hybrid_classes([first, second])[0]
    assert [(words(text).split()[2], words(text).split()[5]) for text in mixed] == [
        ("h0", "t0"),
        ("h1", "t1"),
    ]


def names(count: int, *named: str) -> list[str]:
    return [*named, *(f"class {index}" for index in range(count - len(named)))]


@pytest.mark.parametrize(
    ("classes", "hybrids", "synthetic"),
    [(names(8), 4, 12), (names(8, "P26"), 4, 11), (names(4), 2, 6), (names(4, "per:spouse"), 2, 5)],
)
def test_number_of_synthetic_classes(classes: list[str], hybrids: int, synthetic: int) -> None:
    method = make(ACA, "relation")
    found = method.synthetic_classes(relation_task(*classes, each=2))
    assert len(found) == synthetic
    reversed_ones = [
        mixer_of(method).reverse(text)
        for text in method.encoder.tokenize(relation_task(*classes, each=1).train)
    ]
    assert all(text in reversed_ones for rows in found[hybrids:] for text in rows)
    assert not any(text in reversed_ones for rows in found[:hybrids] for text in rows)


def mixer_of(method: Any) -> RelationMixer:
    vocabulary = method.encoder.tokenizer.get_vocab()
    return RelationMixer(tuple(vocabulary[marker] for marker in MARKERS), (1, 1), method.encoder.max_length)


def test_the_list_of_symmetric_classes_is_a_setting() -> None:
    task = relation_task("per:spouse", "per:siblings", each=1)
    as_intended = make(ACA, "relation").synthetic_classes(task)
    as_in_the_code = make(ACA, "relation", symmetric_classes=("per:siblings",)).synthetic_classes(task)
    assert (len(as_intended), len(as_in_the_code)) == (1, 2)


def test_number_of_synthetic_examples_of_a_fewrel_task() -> None:
    method = make(ACA, "relation")
    found = method.synthetic_classes(relation_task(*names(8), each=420))
    assert [len(rows) for rows in found] == [420] * 12
    assert sum(len(rows) for rows in found) == 5040


def test_examples_with_the_tail_first_are_reversed_but_not_mixed() -> None:
    task = toy_task("relation", "fruit", "vehicle")
    turned = Task(task.classes, [tail_first(example) for example in task.train], [])
    found = make(ACA, "relation").synthetic_classes(turned)
    assert [len(rows) for rows in found] == [0, 6, 6]


def test_every_synthetic_example_is_framed_and_has_each_marker_once() -> None:
    method = make(ACA, "relation")
    tokenizer = library_tokenizer(method.encoder)
    markers = [tokenizer.get_vocab()[marker] for marker in MARKERS]
    for text in (
        text
        for rows in method.synthetic_classes(toy_task("relation", "fruit", "place", "person"))
        for text in rows
    ):
        assert [text.ids.count(marker) for marker in markers] == [1, 1, 1, 1]
        assert (text.ids[0], text.ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        assert [text.ids[start] for start, _ in text.spans] == [markers[0], markers[2]]
        assert len(text.ids) <= 2 + 2 * (1 + 2 + 10)  # every entity of these is one token


@pytest.mark.parametrize(("setting", "left"), [("hybrid_classes", 2), ("reversed_classes", 1)])
def test_either_augmentation_can_be_switched_off(setting: str, left: int) -> None:
    method = make(ACA, "relation", **{setting: False})
    assert len(method.synthetic_classes(toy_task("relation", "fruit", "vehicle"))) == left


def test_window_decides_how_much_context_a_hybrid_has() -> None:
    task = toy_task("relation", "fruit", "vehicle")
    lengths = [
        len(make(ACA, "relation", window=window).synthetic_classes(task)[0][0].ids) for window in (0, 1, 2)
    ]
    assert lengths == [8, 11, 13]  # only one token stands before the head, none after the tail


def test_the_task_is_not_changed_by_the_augmentation() -> None:
    task = toy_task("relation", "fruit", "vehicle")
    examples, method = list(task.train), make(ACA, "relation")
    rows = list(method.encoder.tokenize(task.train))
    method.synthetic_classes(task)
    assert task.train == examples
    assert method.encoder.tokenize(task.train) == rows


def labels_in_initial_learning(method: Any, task: Task, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    plain = method.run

    def watched(name: str, batches: Any, *rest: Any, **more: Any) -> None:
        if name == "initial learning":
            found.extend(batches.labels)
        plain(name, batches, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(method, "run", watched)
        method.learn(task)
    return found


def test_labels_of_synthetic_classes_follow_those_of_all_real_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(ACA, "relation", reserved=True, expected_classes=80, **FAST)
    for classes in (("fruit", "vehicle"), ("weather", "place")):
        labels = labels_in_initial_learning(method, toy_task("relation", *classes, train=2), monkeypatch)
        assert sorted({label for label in labels if label >= 80}) == [80, 81, 82]
    assert len(method.head.output.weight) == 80


def test_with_a_growing_head_synthetic_labels_begin_after_the_seen_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = make(ACA, "relation", **FAST)
    for count, classes in ((2, ("fruit", "vehicle")), (3, ("weather",))):
        labels = labels_in_initial_learning(method, toy_task("relation", *classes, train=2), monkeypatch)
        assert max(labels) == count + 3 * len(classes) // 2 - 1
        assert len(method.head.output.weight) == count


@pytest.mark.parametrize(("spare_rows", "expected"), [(3, 6), (0, 3), (9, 18)])
def test_spare_rows_are_three_per_class_and_never_too_few(
    spare_rows: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = make(ACA, "relation", spare_rows=spare_rows, **FAST)
    made: list[int] = []
    plain = method.new_spare_rows
    monkeypatch.setattr(method, "new_spare_rows", lambda count: (made.append(count), plain(count))[1])
    method.learn(toy_task("relation", "fruit", "vehicle", train=2))
    assert made == [expected]


def test_real_rows_are_kept_to_the_bit_when_synthetic_classes_are_dropped() -> None:
    method = make(ACA, "relation", **FAST)
    method.observer = diary = Diary(lambda: method.head.output.weight.detach().clone())
    method.learn(toy_task("relation", "fruit", "vehicle"))
    assert torch.equal(dict(diary.ends)["initial learning"], dict(diary.begins)["memory update"])
    first, second = method.new_spare_rows(6), method.new_spare_rows(6)
    assert first.weight.shape == (6, 32)
    assert not torch.equal(first.weight, second.weight)


def test_spare_rows_start_uniform_as_real_ones_do() -> None:
    rows = make(ACA, "relation", **FAST).new_spare_rows(6).weight.detach()
    assert 0.9 * 32**-0.5 < rows.abs().max().item() <= 32**-0.5


def test_synthetic_examples_reach_neither_memory_nor_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(ACA, "relation", **FAST)
    task = toy_task("relation", "fruit", "vehicle")
    sizes: dict[str, int] = {}
    plain = method.run

    def watched(name: str, batches: Any, *rest: Any, **more: Any) -> None:
        sizes[name] = len(batches.rows)
        plain(name, batches, *rest, **more)

    monkeypatch.setattr(method, "run", watched)
    method.learn(task)
    assert sizes == {"initial learning": 12 + 6 + 12, "activation": 6 + 12, "reconsolidation": 6}
    assert all(example in task.train for example in method.memory)
    assert set(method.predict(task.test)) <= {"fruit", "vehicle"}


@pytest.mark.parametrize(("host", "chosen"), [("emar", EMAR), ("rp_cre", RPCRE)])
def test_without_augmentation_and_spare_rows_it_is_its_host_to_the_bit(host: Any, chosen: Any) -> None:
    # no clipping: an empty tensor more in a norm may change its last bit
    settings = FAST | {"initial_epochs": 2, "replay_epochs": 2, "clip_norm": 1e6}
    plain = make(chosen, "relation", **settings)
    augmented = make(ACA, "relation", host=host, rp_cre_epochs=2, **settings, **NO_ACA)
    for method in (plain, augmented):
        method.learn(toy_task("relation", "fruit", "vehicle"))
        method.learn(toy_task("relation", "weather"))
    assert same(plain.state_dict(), augmented.state_dict())
    assert list(plain.memory) == list(augmented.memory)


@pytest.mark.parametrize(("spare_rows", "expected"), [(1, 1.407606), (0, 0.313262)])
def test_spare_rows_take_part_in_the_softmax(
    spare_rows: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = make(ACA, "relation")
    method.head.output.weight = torch.nn.Parameter(matrix((1, 0), (0, 1), width=32))
    spare = GrowingLinear(32)
    spare.weight = torch.nn.Parameter(matrix((1, 1), width=32)[:spare_rows])
    monkeypatch.setattr(method, "exemplar_features", lambda batch: matrix((1, 2), width=32))
    assert method.classify_beside(spare)(labeled(1))["ce"].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("keep", [False, True])
def test_spare_rows_enter_activation_only_on_request(keep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(ACA, "relation", keep_spare_rows_in_activation=keep, **FAST)
    trained: dict[str, list[Tensor]] = {}
    plain = method.run

    def watched(name: str, *rest: Any, also_train: Any = (), **more: Any) -> None:
        trained[name] = [part.weight for part in also_train]
        plain(name, *rest, also_train=also_train, **more)

    monkeypatch.setattr(method, "run", watched)
    method.learn(toy_task("relation", "fruit", "vehicle"))
    assert [len(rows) for rows in trained["activation"]] == ([6] if keep else [])
    assert [len(rows) for rows in trained["initial learning"]] == [6]


@pytest.mark.parametrize(("host", "total"), [("emar", 7920), ("rp_cre", 27_700)])
def test_updates_of_a_fewrel_run(host: Any, total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(ACA, "relation", **ACA.variants.get(host, {}))
    assert sum(count_updates(method, fewrel_sized(), monkeypatch)) == total


def test_only_the_variant_on_rp_cre_has_a_memory_network() -> None:
    assert not hasattr(make(ACA, "relation"), "network")
    assert hasattr(make(ACA, "relation", **ACA.variants["rp_cre"]), "network")


@pytest.mark.parametrize("host", ["emar", "rp_cre"])
def test_a_class_of_one_example_a_batch_of_one_class_and_no_memory_give_no_nan(host: Any) -> None:
    few = FAST | {"host": host, "rp_cre_epochs": 2}
    for settings in (
        few,
        few | {"memory_total": 1},
        few | {"batch_size": 1, "symmetric_classes": ("fruit",)},
    ):
        method = make(ACA, "relation", **settings)
        method.learn(Task(("fruit",), [toy_example("relation", "fruit", 0)], []))
        method.learn(toy_task("relation", "vehicle"))
        assert method.scores(toy_task("relation", "fruit", "vehicle").test).isfinite().all()
        assert all(value.isfinite().all() for value in method.state_dict().values())


def test_a_text_that_is_one_entity_twice_can_be_learned() -> None:
    entity = Span(0, 4)
    method = make(ACA, "relation", **FAST)
    method.learn(Task(("same",), [Example("anna", "same", head=entity, tail=entity)], []))
    assert method.predict([Example("anna", "same", head=entity, tail=entity)]) == ["same"]
