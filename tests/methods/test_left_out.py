"""Leave-one-out answers, compared with learners that really never saw the text."""

from typing import Any

import pytest
import torch

from repcl.data import Example, Task
from repcl.methods.base import seeded
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.kept_rows import KeptRows
from repcl.methods.frozen.lda import LDA
from repcl.methods.frozen.left_out import (
    nearest_others,
    next_of_classes,
    row_keys,
    spread_sample,
    without_itself,
)
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.frozen.ncm import NCM
from repcl.methods.frozen.refit import Refit
from repcl.methods.frozen.strangers import whole_classes, without_their_classes
from tests.conftest import tiny_encoder, toy_task

TASK = toy_task("sentence", "fruit", "vehicle", "weather")


def learned(chosen: type[FrozenMethod], examples: list[Example], **settings: Any) -> Any:
    encoder = tiny_encoder()
    with seeded(7, 0, encoder.device):
        method = chosen(encoder, chosen.Settings(**settings), seed=7).eval()
    method.learn(Task(tuple(dict.fromkeys(one.label for one in examples)), examples, []))
    return method


def without(examples: list[Example], index: int) -> list[Example]:
    return [*examples[:index], *examples[index + 1 :]]


@pytest.mark.parametrize(
    ("chosen", "settings", "within"),
    [
        (Instant, {"features": 40, "maps": 2, "ridge": 0.5}, 1e-4),
        (Instant, {"features": 40, "maps": 2, "ridge": 0.5, "balanced": True}, 0.02),
        (NCM, {}, 1e-6),
    ],
)
def test_answers_are_those_of_a_learner_that_never_saw_the_text(
    chosen: type[FrozenMethod], settings: dict[str, Any], within: float
) -> None:
    method = learned(chosen, TASK.train, **settings)
    found = method.left_out()
    for index, label, scores in zip(found.indices.tolist(), found.labels, found.scores, strict=True):
        other = learned(chosen, without(TASK.train, index), **settings)
        assert method.classes[label] == TASK.train[index].label
        expected = other.scores([TASK.train[index]])[0].double()
        order = [other.classes.index(name) for name in method.classes]
        torch.testing.assert_close(scores, expected[order], rtol=0.0, atol=within)


def test_lda_without_a_text_keeps_only_the_even_spread() -> None:
    """A plain computation of mean and covariance without the text, shrunk toward the spread with it."""
    method = learned(LDA, TASK.train, shrinkage=0.3)
    rows = method.embed(TASK.train).double() / 2**15
    labels = torch.tensor([method.classes.index(example.label) for example in TASK.train])

    def scatter(rows: Any, labels: Any) -> Any:
        away = rows - torch.stack([rows[labels == c].mean(dim=0) for c in range(3)])[labels]
        return away.T @ away

    freedom = len(rows) - 3
    spread = (scatter(rows, labels) / freedom).diagonal().mean()
    found = method.left_out()
    for index, scores in zip(found.indices.tolist(), found.scores, strict=True):
        rest = torch.arange(len(rows)) != index
        means = torch.stack([rows[rest & (labels == c)].mean(dim=0) for c in range(3)])
        shrunk = 0.7 * scatter(rows[rest], labels[rest]) / freedom
        shrunk += 0.3 * spread * torch.eye(len(shrunk), dtype=torch.float64)
        inverse = torch.linalg.inv(shrunk) * (freedom - 1) / freedom
        expected = means @ inverse @ rows[index] - 0.5 * (means @ inverse * means).sum(dim=1)
        torch.testing.assert_close(scores, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("chosen", [Instant, NCM, LDA])
def test_the_only_text_of_a_class_is_never_given_it(chosen: type[FrozenMethod]) -> None:
    alone = next(example for example in TASK.train if example.label == "fruit")
    examples = [alone, *(example for example in TASK.train if example.label != "fruit")]
    method = learned(chosen, examples, **({"features": 40} if chosen is Instant else {}))
    found = method.left_out()
    fruit = method.classes.index("fruit")
    (scores,) = found.scores[found.labels == fruit]
    assert int(scores.argmax()) != fruit


def test_a_learner_without_its_rows_or_without_a_closed_form_leaves_nothing_out() -> None:
    assert learned(Instant, TASK.train, features=40).leaves_out
    assert not learned(Instant, TASK.train, features=40, keep_embeddings=False).leaves_out
    assert not learned(Refit, TASK.train).leaves_out


def test_texts_asked_are_spread_evenly_over_the_classes() -> None:
    labels = torch.tensor([0] * 10 + [1] * 2 + [2] * 5)
    keys = torch.arange(17)
    asked = spread_sample(labels, keys, 8)
    assert torch.bincount(labels[asked]).tolist() == [3, 2, 3]


def test_of_some_classes_as_many_again_come_next_as_far_as_there_are() -> None:
    labels = torch.tensor([0] * 10 + [1] * 2 + [2] * 5)
    keys = torch.arange(17)
    assert next_of_classes(labels, keys, torch.tensor([0, 1]), 8).tolist() == [3, 4, 5]
    assert next_of_classes(labels, keys, torch.tensor([2]), 8).tolist() == [15, 16]


def test_which_texts_are_asked_does_not_depend_on_their_order() -> None:
    rows = torch.randint(-100, 100, (30, 4), generator=torch.Generator().manual_seed(1)).short()
    labels = torch.arange(30) % 3
    turned = torch.arange(29, -1, -1)
    asked = spread_sample(labels, row_keys(rows), 7)
    other = spread_sample(labels[turned], row_keys(rows[turned]), 7)
    assert {tuple(row.tolist()) for row in rows[asked]} == {
        tuple(row.tolist()) for row in rows[turned][other]
    }


def test_a_text_that_decides_a_quarter_of_its_fit_loses_that_quarter() -> None:
    fitted = torch.tensor([[0.7, 0.1]], dtype=torch.float64)
    found = without_itself(fitted, torch.tensor([0.25], dtype=torch.float64), torch.tensor([0]))
    assert found.tolist() == [[pytest.approx(0.6), pytest.approx(0.1 / 0.75)]]


def test_nearest_others_leave_the_text_and_its_copies_out() -> None:
    kept = KeptRows(2)
    kept.add(torch.tensor([[100, 0], [100, 0], [0, 100], [200, 1]]).short(), torch.tensor([0, 0, 1, 0]))
    nearest, stranger = nearest_others(kept, row_keys(kept.rows), torch.tensor([0, 2]))
    assert nearest.tolist() == [pytest.approx(200 / 40001**0.5), pytest.approx(1 / 40001**0.5)]
    assert stranger.tolist() == [pytest.approx(0.0), pytest.approx(1 / 40001**0.5)]


def test_classes_are_balanced_where_left_out_texts_gain_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    recall = {False: 0.50, True: 0.52}
    monkeypatch.setattr(Instant, "_left_out_recall", lambda *_, balanced: recall[balanced])
    uneven = [example for example in TASK.train if example.label == "fruit"] + TASK.train[-1:]
    assert learned(Instant, uneven, features=40).is_balanced
    recall[True] = 0.505
    assert not learned(Instant, uneven, features=40).is_balanced


@pytest.mark.parametrize(("fruits", "is_asked"), [(2, False), (3, True)])
def test_recall_is_asked_where_a_class_is_three_times_as_large_as_another(
    fruits: int, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(Instant, "_left_out_recall", lambda *_, balanced: float(asked.append(balanced) or 0))
    fruit = [example for example in TASK.train if example.label == "fruit"]
    learned(Instant, [*fruit[:fruits], TASK.train[-1]], features=40)
    assert asked == ([False, True] if is_asked else [])


def test_recall_is_averaged_over_classes() -> None:
    method = learned(Instant, TASK.train, features=40, ridge=0.5)
    found, once = method.left_out(), torch.ones(len(TASK.train), dtype=torch.float64)
    (scores,) = [method._left_out_by(0, method._factors[0], method._solution[0], method.ledger.kept.rows,
                                     found.labels, once, balanced=False)]  # fmt: skip
    is_right = scores.argmax(dim=1) == found.labels
    by_class = [is_right[found.labels == label].double().mean() for label in range(3)]
    recall = method._left_out_recall(method.ledger.kept.rows, found.labels, once, balanced=False)
    assert recall == pytest.approx(float(sum(by_class) / 3))


def test_classes_of_similar_size_are_left_as_they_are() -> None:
    assert not learned(Instant, TASK.train, features=40).is_balanced


NINE = [
    Example(f"the {word} is in a {other} {word}", word)
    for word in ("apple", "pear", "car", "bike", "rain", "sun", "paris", "london", "anna")
    for other in ("plum", "boat", "snow", "city")
]


@pytest.mark.parametrize("balanced", [False, True])
def test_strangers_look_as_they_do_to_a_learner_that_never_saw_their_class(balanced: bool) -> None:
    settings = {"features": 40, "maps": 2, "ridge": 0.5, "balanced": balanced}
    method = learned(Instant, NINE, **settings)
    found = method.strangers()
    assert len(found.scores) == len(NINE)
    for index, name in enumerate(method.classes):
        own = [one for one in NINE if one.label == name]
        rest = learned(Instant, [one for one in NINE if one.label != name], **settings)
        is_own = found.scores[:, index].isneginf()
        scores = torch.cat([found.scores[is_own, :index], found.scores[is_own, index + 1 :]], dim=1)
        order = [rest.classes.index(other) for other in method.classes if other != name]
        expected = torch.cat([rest.scores(own)[:, order], rest.nearness(own)[:, None]], dim=1)
        seen = torch.cat([scores, found.nearest[is_own, None]], dim=1)
        torch.testing.assert_close(
            torch.tensor(sorted(seen.tolist())), torch.tensor(sorted(expected.tolist())), rtol=0.0, atol=1e-4
        )


def test_few_classes_are_no_sample_of_others() -> None:
    assert learned(Instant, TASK.train, features=40).strangers() is None
    assert learned(NCM, NINE).strangers() is None


def test_classes_are_left_out_whole_in_an_order_of_their_texts() -> None:
    labels = torch.tensor([8, 8, *range(8), 9, 9, 9])
    keys = torch.tensor([50, 3, *range(10, 18), 1, 2, 4])
    found = [sorted(part.tolist()) for part in whole_classes(labels, keys, 23)]
    assert found == [[0, 1], *([row] for row in range(2, 10))]  # 9 has more than an eighth of 23 texts
    assert [part.tolist() for part in whole_classes(labels, keys, 8)] == [[row] for row in range(2, 10)]


@pytest.mark.parametrize(("classes", "most", "found"), [(7, 100, 0), (8, 100, 8), (30, 16, 8), (30, 40, 20)])
def test_eight_classes_or_half_the_texts_are_left_out(classes: int, most: int, found: int) -> None:
    assert len(whole_classes(torch.arange(classes), torch.arange(classes), most)) == found


def test_a_direction_that_only_a_class_has_stays_within_bounds() -> None:
    """Its leverage would be 1 without a ridge; what is left of it must be a number."""
    solved = torch.tensor([[1.0, 0.0]])
    found = without_their_classes(solved, torch.tensor([[0.5, 0.0]], dtype=torch.float64), [1])
    assert bool(found.isfinite().all())
