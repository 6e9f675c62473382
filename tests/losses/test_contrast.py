"""Contrastive losses against hand-worked numbers, plain loops and pytorch-metric-learning."""

from collections.abc import Callable
from math import acos, exp, log, sin, sqrt

import pytest
import torch
from pytorch_metric_learning.losses import NTXentLoss, SupConLoss
from torch import Tensor

from repcl.losses import info_nce, supervised_contrast, supervised_info_nce

Loss = Callable[..., Tensor]
both = pytest.mark.parametrize("loss", [supervised_info_nce, supervised_contrast])


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(0)


def vectors(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def random_case(seed: int, *, batch: int, queue: int, classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors_of = [torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in (batch, batch + queue)]
    labels = torch.randint(classes, (batch + queue,), generator=generator)
    return vectors_of[0], labels[:batch], vectors_of[1], labels


# One anchor (1, 0) of class 0; keys with cosines 1 and 0.5 (class 0) and 0 (class 1).
ANCHOR, LABEL = vectors((1, 0)), torch.tensor([0])
KEYS, KEY_LABELS = vectors((1, 0), (0.5, sqrt(0.75)), (0, 1)), torch.tensor([0, 0, 1])


def test_positives_do_not_compete_in_supervised_info_nce() -> None:
    loss = supervised_info_nce(ANCHOR, LABEL, KEYS, KEY_LABELS, temperature=1.0)
    assert loss.item() == pytest.approx(0.393669, abs=1e-6)


@pytest.mark.parametrize(("positive", "expected"), [(0, 0.313262), (1, 0.474077)])
def test_supervised_info_nce_of_each_single_positive(positive: int, expected: float) -> None:
    chosen = [positive, 2]
    loss = supervised_info_nce(ANCHOR, LABEL, KEYS[chosen], KEY_LABELS[chosen], temperature=1.0)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_other_positives_are_in_the_denominator_of_supervised_contrast() -> None:
    loss = supervised_contrast(ANCHOR, LABEL, KEYS, KEY_LABELS, temperature=1.0)
    assert loss.item() == pytest.approx((0.680270 + 1.180270) / 2, abs=1e-6)


def test_with_one_positive_all_forms_are_equal() -> None:
    own_key = torch.tensor([0])
    labels = torch.tensor([0, 1, 1])
    expected = info_nce(ANCHOR, KEYS, temperature=0.3, own_key=own_key)
    for loss in (supervised_info_nce, supervised_contrast):
        torch.testing.assert_close(loss(ANCHOR, LABEL, KEYS, labels, temperature=0.3), expected)


@pytest.mark.parametrize(
    ("temperature", "expected"), [(0.5, (2.060626, 0.729534)), (0.05, (16.009078, 0.018150))]
)
def test_supervised_info_nce_with_batch_keys_and_queue(
    temperature: float, expected: tuple[float, float]
) -> None:
    anchors = vectors((1, 0), (0, 1))
    keys = torch.cat([anchors, vectors((0.8, 0.6), (0.6, 0.8), (-1, 0))])
    labels, own_key = torch.tensor([0, 1, 0, 1, 0]), torch.tensor([0, 1])

    def loss(chosen: slice) -> float:
        mine = own_key[chosen]
        return supervised_info_nce(
            anchors[chosen], labels[:2][chosen], keys, labels, temperature=temperature, own_key=mine
        ).item()

    assert [loss(slice(0, 1)), loss(slice(1, 2))] == pytest.approx(expected, abs=1e-6)
    assert loss(slice(0, 2)) == pytest.approx(sum(expected) / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("loss", "first", "second"),
    [(supervised_contrast, 0.4503, -0.4527), (supervised_info_nce, -0.0012, -0.0237)],
)
def test_only_supervised_contrast_pushes_the_nearer_positive_away(
    loss: Loss, first: float, second: float
) -> None:
    temperature, cosines = 0.2, (0.6, 0.0, -0.6)  # logits 3 and 0 (positives), -3 (negative)
    angles = vectors(tuple(acos(cosine) for cosine in cosines))[0].requires_grad_()
    keys = torch.stack([angles.cos(), angles.sin()], dim=1)
    loss(ANCHOR, LABEL, keys, KEY_LABELS, temperature=temperature).backward()
    assert angles.grad is not None
    by_logit = [-angles.grad[i].item() * temperature / sin(acos(cosines[i])) for i in range(2)]
    assert by_logit == pytest.approx([first, second], abs=1e-4)


def test_supervised_info_nce_never_pushes_a_positive_away() -> None:
    # a step of a positive toward the anchor always raises their cosine
    anchors, labels, _, _ = random_case(0, batch=1, queue=0, classes=1)
    positives = torch.nn.functional.normalize(torch.randn(6, 5, dtype=torch.float64), dim=1).requires_grad_()
    negatives = torch.randn(4, 5, dtype=torch.float64)
    key_labels = torch.cat([labels.repeat(6), labels.repeat(4) + 1])
    supervised_info_nce(
        anchors, labels, torch.cat([positives, negatives]), key_labels, temperature=0.1
    ).backward()
    assert positives.grad is not None
    assert (positives.grad @ anchors[0] <= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_supervised_contrast_is_at_least_supervised_info_nce(seed: int) -> None:
    case = random_case(seed, batch=6, queue=9, classes=3)
    assert supervised_contrast(*case, temperature=0.1) >= supervised_info_nce(*case, temperature=0.1)


def plain_loop(
    case: tuple[Tensor, ...], own_key: Tensor | None, temperature: float, competing: bool
) -> float:
    anchors, labels, keys, key_labels = case
    means = []
    for i in range(len(anchors)):
        others = [k for k in range(len(keys)) if own_key is None or k != own_key[i]]
        e = {k: exp(torch.cosine_similarity(anchors[i], keys[k], dim=0).item() / temperature) for k in others}
        positives = [k for k in others if key_labels[k] == labels[i]]
        negatives = [k for k in others if key_labels[k] != labels[i]]
        rest = sum(e[n] for n in negatives)
        terms = [
            -log(e[p] / (rest + (sum(e[q] for q in positives) if competing else e[p]))) for p in positives
        ]
        if terms:
            means.append(sum(terms) / len(terms))
    return sum(means) / len(means)


@pytest.mark.parametrize("own", ["none", "all", "some"])
@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.05])
@pytest.mark.parametrize("competing", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_equals_a_plain_loop(own: str, temperature: float, competing: bool, seed: int) -> None:
    case = random_case(seed, batch=7, queue=5, classes=4)
    own_key = {"none": None, "all": torch.arange(7), "some": torch.tensor([0, -1, 2, -1, 4, -1, 6])}[own]
    loss = (supervised_contrast if competing else supervised_info_nce)(
        *case, temperature=temperature, own_key=own_key
    )
    assert loss.item() == pytest.approx(plain_loop(case, own_key, temperature, competing), rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_supervised_contrast_equals_pytorch_metric_learning(seed: int) -> None:
    anchors, labels, keys, key_labels = random_case(seed, batch=8, queue=24, classes=3)
    ours = supervised_contrast(anchors, labels, keys, key_labels, temperature=0.1)
    theirs = SupConLoss(temperature=0.1)(anchors, labels, ref_emb=keys, ref_labels=key_labels)
    torch.testing.assert_close(ours, theirs)


def test_leaving_the_own_key_out_equals_pytorch_metric_learning_within_a_batch() -> None:
    anchors, _, _, _ = random_case(0, batch=12, queue=0, classes=1)
    labels, itself = torch.arange(12) % 4, torch.arange(12)
    for ours, theirs in ((supervised_contrast, SupConLoss), (supervised_info_nce, NTXentLoss)):
        # NTXent averages over pairs: the same only because every anchor has two positives
        loss = ours(anchors, labels, anchors, labels, temperature=0.1, own_key=itself)
        torch.testing.assert_close(loss, theirs(temperature=0.1)(anchors, labels))


def test_info_nce_equals_pytorch_metric_learning() -> None:
    anchors, _, keys, _ = random_case(1, batch=6, queue=10, classes=1)
    own_key = torch.randperm(16)[:6]
    theirs = NTXentLoss(temperature=0.07)(anchors, own_key, ref_emb=keys, ref_labels=torch.arange(16))
    torch.testing.assert_close(info_nce(anchors, keys, temperature=0.07, own_key=own_key), theirs)


def test_info_nce_of_equal_similarities_is_the_log_of_their_number() -> None:
    anchors, keys = torch.ones(5, 3), torch.ones(32, 3)
    loss = info_nce(anchors, keys, temperature=0.05, own_key=torch.arange(5))
    assert loss.item() == pytest.approx(3.465736, abs=1e-5)


@pytest.mark.parametrize(
    ("size", "temperature", "expected"), [(2, 1.0, 0.313262), (4, 1.0, 0.743668), (4, 0.05, 6.1835e-9)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_info_nce_of_orthogonal_pairs(
    size: int, temperature: float, expected: float, dtype: torch.dtype
) -> None:
    pairs = torch.eye(size, dtype=dtype)
    loss = info_nce(pairs, pairs, temperature=temperature, own_key=torch.arange(size))
    assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_info_nce_is_never_negative_so_its_bound_never_exceeds_log_n() -> None:
    anchors, _, keys, _ = random_case(2, batch=8, queue=8, classes=1)
    assert info_nce(anchors, keys, temperature=0.01, own_key=torch.arange(8)) >= 0


def test_info_nce_skips_anchors_without_own_key() -> None:
    anchors, _, keys, _ = random_case(3, batch=2, queue=4, classes=1)
    one = info_nce(anchors[:1], keys, temperature=0.1, own_key=torch.tensor([0]))
    torch.testing.assert_close(info_nce(anchors, keys, temperature=0.1, own_key=torch.tensor([0, -1])), one)


@both
def test_the_own_key_takes_no_part(loss: Loss) -> None:
    anchors, labels, keys, key_labels = random_case(4, batch=1, queue=8, classes=2)
    whole = loss(anchors, labels, keys, key_labels, temperature=0.05, own_key=torch.tensor([0]))
    without = loss(anchors, labels, keys[1:], key_labels[1:], temperature=0.05)
    torch.testing.assert_close(whole, without)


@both
def test_the_own_key_takes_no_part_even_if_its_label_differs(loss: Loss) -> None:
    keys, key_labels = KEYS.flip(0), KEY_LABELS.flip(0)
    alone = loss(ANCHOR, LABEL, keys[1:], key_labels[1:], temperature=0.5)
    whole = loss(ANCHOR, LABEL, keys, key_labels, temperature=0.5, own_key=torch.tensor([0]))
    torch.testing.assert_close(whole, alone)


@both
def test_the_length_of_a_vector_does_not_matter(loss: Loss) -> None:
    anchors, labels, keys, key_labels = random_case(5, batch=6, queue=6, classes=3)
    scaled = loss(anchors * 7, labels, keys * (0.1 + torch.rand(12, 1)), key_labels, temperature=0.05)
    torch.testing.assert_close(scaled, loss(anchors, labels, keys, key_labels, temperature=0.05))


@both
def test_the_order_of_anchors_and_keys_does_not_matter(loss: Loss) -> None:
    anchors, labels, keys, key_labels = random_case(6, batch=6, queue=6, classes=3)
    rows, columns = torch.randperm(6), torch.randperm(12)
    own_key = columns.argsort()[:6]
    shuffled = loss(
        anchors[rows],
        labels[rows],
        keys[columns],
        key_labels[columns],
        temperature=0.1,
        own_key=own_key[rows],
    )
    plain = loss(anchors, labels, keys, key_labels, temperature=0.1, own_key=torch.arange(6))
    torch.testing.assert_close(shuffled, plain)


@both
def test_the_names_of_the_classes_do_not_matter(loss: Loss) -> None:
    anchors, labels, keys, key_labels = random_case(7, batch=6, queue=6, classes=3)
    renamed = loss(anchors, 100 - labels, keys, 100 - key_labels, temperature=0.1)
    torch.testing.assert_close(renamed, loss(anchors, labels, keys, key_labels, temperature=0.1))


@both
def test_an_anchor_without_positives_does_not_count(loss: Loss) -> None:
    anchors = torch.cat([ANCHOR, ANCHOR])
    pair = loss(anchors, torch.tensor([0, 9]), KEYS, KEY_LABELS, temperature=0.1)
    torch.testing.assert_close(pair, loss(ANCHOR, LABEL, KEYS, KEY_LABELS, temperature=0.1))


@both
@pytest.mark.parametrize("candidates", [0, 1, 8])
def test_without_any_positive_the_loss_is_a_zero_that_can_be_differentiated(
    loss: Loss, candidates: int
) -> None:
    anchors = torch.randn(3, 4, requires_grad=True)
    labels, key_labels = torch.zeros(3), torch.ones(candidates)
    result = loss(anchors, labels, torch.randn(candidates, 4), key_labels, temperature=0.01)
    result.backward()
    assert result.item() == 0
    assert anchors.grad is not None
    assert (anchors.grad == 0).all()


@both
def test_the_own_key_as_only_candidate_gives_zero(loss: Loss) -> None:
    anchors = torch.randn(1, 4, requires_grad=True)
    zero = torch.zeros(1, dtype=torch.long)
    result = loss(anchors, zero, torch.randn(1, 4), zero, temperature=0.01, own_key=zero)
    result.backward()
    assert result.item() == 0
    assert anchors.grad is not None
    assert (anchors.grad == 0).all()


@pytest.mark.parametrize(("loss", "expected"), [(supervised_info_nce, 0.0), (supervised_contrast, log(6))])
def test_with_a_single_class_there_is_nothing_to_contrast(loss: Loss, expected: float) -> None:
    anchors = torch.randn(3, 4, requires_grad=True)
    keys = torch.ones(6, 4)
    with torch.autograd.set_detect_anomaly(True):
        result = loss(anchors, torch.zeros(3), keys, torch.zeros(6), temperature=0.01)
        result.backward()
    assert result.item() == pytest.approx(expected, abs=1e-4)
    assert anchors.grad is not None
    assert anchors.grad.isfinite().all()


@both
def test_a_temperature_of_one_hundredth_is_safe_for_the_hardest_positive(loss: Loss) -> None:
    anchors = vectors((1, 1e-3)).float().requires_grad_()
    keys = vectors((-1, 0), (1, 0)).float()  # the positive opposite to the anchor, the negative on top of it
    result = loss(anchors, LABEL, keys, torch.tensor([0, 1]), temperature=0.01)
    result.backward()
    assert result.item() == pytest.approx(200, rel=1e-4)
    assert anchors.grad is not None
    assert anchors.grad.isfinite().all()
    assert anchors.grad.abs().max() > 0.1


@both
def test_gradients_reach_the_anchors_and_are_right(loss: Loss) -> None:
    anchors, labels, keys, key_labels = random_case(8, batch=4, queue=4, classes=2)
    own_key = torch.arange(4)
    assert torch.autograd.gradcheck(
        lambda anchor: loss(anchor, labels, keys, key_labels, temperature=0.2, own_key=own_key),
        anchors.requires_grad_(),
    )
