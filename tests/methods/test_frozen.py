"""What the learners on a frozen encoder share, and the simple ones: `ncm`, `lda`, `refit`."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from repcl.data import Example, InputKind, Task
from repcl.errors import InvalidData, InvalidSetting, UnknownName
from repcl.methods.base import seeded
from repcl.methods.frozen.instant import Instant
from repcl.methods.frozen.lda import LDA, shrunk, within_class_covariance
from repcl.methods.frozen.method import FrozenMethod
from repcl.methods.frozen.ncm import NCM
from repcl.methods.frozen.random_features import REPRESENTATION_STEPS, on_grid
from repcl.methods.frozen.refit import Refit
from repcl.methods.frozen.sums import ClassSums, Moments
from repcl.methods.state import grow_to_shapes
from repcl.model import FROZEN_DEPTHS
from repcl.model.layered import frozen_readout
from tests.conftest import tiny_encoder, toy_task
from tests.methods.frozen_helpers import forget

SETTINGS: dict[type[FrozenMethod], dict[str, Any]] = {
    Instant: {"features": 40, "maps": 2},
    NCM: {},
    LDA: {},
    Refit: {},
}
every_method = pytest.mark.parametrize("chosen", list(SETTINGS), ids=lambda chosen: chosen.__name__)
exact_methods = pytest.mark.parametrize("chosen", [Instant, NCM, LDA], ids=lambda chosen: chosen.__name__)
TOPICS = ("fruit", "vehicle", "weather", "place", "person", "conflict")


def make(chosen: type[FrozenMethod], kind: InputKind = "sentence", **settings: Any) -> Any:
    encoder = tiny_encoder(kind, readout=frozen_readout(kind, FROZEN_DEPTHS[kind]))
    with seeded(7, 0, encoder.device):
        return chosen(encoder, chosen.Settings(**{**SETTINGS[chosen], **settings}), seed=7).eval()


def learned(chosen: type[FrozenMethod], *tasks: Task, **settings: Any) -> Any:
    method = make(chosen, **settings)
    for task in tasks:
        method.learn(task)
    return method


def unseen(*topics: str) -> list[Example]:
    return toy_task("sentence", *topics).test


def scores_by_name(method: FrozenMethod, examples: list[Example]) -> dict[str, Tensor]:
    return dict(zip(method.classes, method.scores(examples).T, strict=True))


def assert_same_scores(one: FrozenMethod, other: FrozenMethod, *, within: float = 1e-6) -> None:
    examples = unseen(*TOPICS)
    ours, theirs = scores_by_name(one, examples), scores_by_name(other, examples)
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0.0, atol=within)


def assert_same_statistics(one: FrozenMethod, other: FrozenMethod) -> None:
    assert one.classes == other.classes
    for ours, theirs in zip(one.ledger.parts(), other.ledger.parts(), strict=True):
        for name, value in ours.state_dict().items():
            assert torch.equal(value, theirs.state_dict()[name]), name


def unit(method: FrozenMethod, examples: list[Example]) -> np.ndarray[Any, Any]:
    rows: np.ndarray[Any, Any] = (method.embed(examples).double() / REPRESENTATION_STEPS).numpy()
    return rows


# ---- representations -------------------------------------------------------------------------------


def test_rows_have_unit_length_up_to_the_grid() -> None:
    rows = on_grid(torch.randn(50, 32)).double() / REPRESENTATION_STEPS
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(50, dtype=torch.float64), rtol=0, atol=1e-4)


def test_a_vector_along_an_axis_fits_into_sixteen_bits() -> None:
    assert on_grid(torch.tensor([[5.0, 0.0], [-5.0, 0.0], [0.0, 0.0]])).tolist() == [
        [32767, 0],
        [-32768, 0],
        [0, 0],
    ]


@every_method
def test_the_encoder_is_never_trained(chosen: type[FrozenMethod]) -> None:
    method = make(chosen)
    before = {name: value.clone() for name, value in method.encoder.state_dict().items()}
    method.learn(toy_task("sentence", "fruit", "vehicle"))
    assert not any(parameter.requires_grad for parameter in method.encoder.parameters())
    assert all(torch.equal(value, before[name]) for name, value in method.encoder.state_dict().items())


@every_method
def test_scores_of_a_batch_are_those_of_its_examples(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", "fruit", "vehicle"))
    examples = unseen("fruit", "vehicle")
    torch.testing.assert_close(
        method.for_all(examples, method.class_scores), method.scores(examples), rtol=1e-3, atol=1e-3
    )


# ---- order -----------------------------------------------------------------------------------------


@exact_methods
def test_scores_do_not_depend_on_the_order_or_size_of_tasks(chosen: type[FrozenMethod]) -> None:
    one_by_one = learned(chosen, *(toy_task("sentence", topic) for topic in TOPICS))
    at_once = learned(chosen, toy_task("sentence", *reversed(TOPICS)))
    in_pieces = learned(
        chosen,
        toy_task("sentence", "place", "fruit", train=2),
        toy_task("sentence", "conflict", "vehicle", "person", "weather"),
        toy_task("sentence", "fruit", "place", train=4, start=2),
    )
    assert_same_scores(one_by_one, at_once)
    assert_same_scores(one_by_one, in_pieces)


def test_refitting_depends_on_the_order_of_tasks_by_the_solvers_tolerance_only() -> None:
    one_by_one = learned(Refit, *(toy_task("sentence", topic) for topic in TOPICS))
    assert_same_scores(one_by_one, learned(Refit, toy_task("sentence", *reversed(TOPICS))), within=1e-2)


# ---- forgetting and union --------------------------------------------------------------------------


@exact_methods
def test_a_forgotten_class_leaves_no_trace(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", *TOPICS[:4]))
    method.forget_class("vehicle")
    never = learned(chosen, toy_task("sentence", "fruit", "weather", "place"))
    assert_same_statistics(method, never)
    assert torch.equal(method.scores(unseen(*TOPICS)), never.scores(unseen(*TOPICS)))


def test_refitting_after_a_class_was_forgotten_is_fitting_without_it() -> None:
    method = learned(Refit, toy_task("sentence", *TOPICS[:4]))
    method.forget_class("vehicle")
    never = learned(Refit, toy_task("sentence", "fruit", "weather", "place"))
    assert torch.equal(method.scores(unseen(*TOPICS)), never.scores(unseen(*TOPICS)))


@every_method
def test_forgotten_examples_leave_no_trace(chosen: type[FrozenMethod]) -> None:
    task = toy_task("sentence", "fruit", "vehicle", train=6)
    method = learned(chosen, task)
    forget(method, task.train[4:6])
    never = learned(chosen, Task(task.classes, task.train[:4] + task.train[6:], []))
    assert_same_statistics(method, never)
    assert torch.equal(method.scores(unseen(*TOPICS)), never.scores(unseen(*TOPICS)))


@every_method
def test_a_class_whose_last_example_is_forgotten_vanishes(chosen: type[FrozenMethod]) -> None:
    method = learned(
        chosen, toy_task("sentence", "fruit", "vehicle"), toy_task("sentence", "weather", train=1)
    )
    forget(method, toy_task("sentence", "weather", train=1).train)
    assert method.classes == ["fruit", "vehicle"]
    assert_same_statistics(method, learned(chosen, toy_task("sentence", "fruit", "vehicle")))


@pytest.mark.parametrize("chosen", [Instant, LDA], ids=lambda chosen: chosen.__name__)
def test_examples_can_be_forgotten_without_any_embedding_kept(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", "fruit", "vehicle", "weather"), keep_embeddings=False)
    forget(method, toy_task("sentence", "weather").train)
    assert_same_statistics(method, learned(chosen, toy_task("sentence", "fruit", "vehicle")))


@pytest.mark.parametrize("chosen", [Instant, LDA], ids=lambda chosen: chosen.__name__)
def test_a_class_cannot_be_forgotten_without_embeddings_or_texts(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", "fruit", "vehicle"), keep_embeddings=False)
    before = method.scores(unseen(*TOPICS))
    with pytest.raises(InvalidSetting, match="keep_embeddings = true"):
        method.forget_class("fruit")
    assert torch.equal(method.scores(unseen(*TOPICS)), before)


def test_class_means_need_no_embeddings_to_forget() -> None:
    method = learned(NCM, toy_task("sentence", "fruit", "vehicle"), keep_embeddings=False)
    assert len(method.ledger.kept.rows) == 0
    method.forget_class("fruit")
    assert method.classes == ["vehicle"]


@every_method
def test_what_was_never_learned_cannot_be_forgotten(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", "fruit", "vehicle", train=2))
    with pytest.raises(UnknownName, match="No class 'weather'"):
        forget(method, toy_task("sentence", "weather").train)
    with pytest.raises(InvalidData, match="More examples of 'fruit'"):
        forget(method, toy_task("sentence", "fruit", train=3).train)
    if method.keeps_rows:
        with pytest.raises(InvalidData, match="never learned"):
            forget(method, [Example("bob won the war", "fruit")])


def test_an_example_learned_twice_is_forgotten_once() -> None:
    task = toy_task("sentence", "fruit", "vehicle", train=3)
    method = learned(Instant, task, toy_task("sentence", "fruit", train=1))
    forget(method, task.train[:1])
    assert_same_statistics(method, learned(Instant, task))


@exact_methods
def test_two_learners_united_know_what_one_would(chosen: type[FrozenMethod]) -> None:
    one = learned(chosen, toy_task("sentence", "fruit", "vehicle", train=3))
    other = learned(
        chosen, toy_task("sentence", "weather"), toy_task("sentence", "vehicle", train=3, start=3)
    )
    one.absorb(other)
    alone = learned(
        chosen, toy_task("sentence", "fruit", train=3), toy_task("sentence", "vehicle", "weather")
    )
    assert one.classes == ["fruit", "vehicle", "weather"]
    assert one.tasks_learned == 3
    assert_same_statistics(one, alone)
    assert_same_scores(one, alone)


def test_refitting_a_union_is_fitting_everything() -> None:
    one = learned(Refit, toy_task("sentence", "fruit", "vehicle"))
    one.absorb(learned(Refit, toy_task("sentence", "weather")))
    alone = learned(Refit, toy_task("sentence", "fruit", "vehicle", "weather"))
    assert torch.equal(one.scores(unseen(*TOPICS)), alone.scores(unseen(*TOPICS)))


def test_only_learners_of_one_kind_and_encoder_can_be_united() -> None:
    method = learned(Instant, toy_task("sentence", "fruit"))
    with pytest.raises(InvalidSetting, match="same settings"):
        method.absorb(learned(Instant, toy_task("sentence", "vehicle"), map_seed=1))
    with pytest.raises(InvalidSetting, match="one method"):
        method.absorb(learned(NCM, toy_task("sentence", "vehicle")))
    other = learned(Instant, toy_task("sentence", "vehicle"))
    with torch.no_grad():
        next(other.encoder.parameters()).add_(0.1)
    with pytest.raises(InvalidSetting, match="one encoder"):
        method.absorb(other)


@exact_methods
def test_merged_classes_are_as_if_they_had_been_one(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", "fruit", "vehicle", "weather"))
    method.regroup_classes({"weather": ["weather"], "thing": ["fruit", "vehicle"]})
    task = toy_task("sentence", "fruit", "vehicle", "weather")
    renamed = [
        Example(example.text, "weather" if example.label == "weather" else "thing") for example in task.train
    ]
    assert_same_statistics(method, learned(chosen, Task(("weather", "thing"), renamed, [])))


def test_a_learner_that_forgot_everything_can_learn_again() -> None:
    method = learned(Instant, toy_task("sentence", "fruit"))
    method.forget_class("fruit")
    assert not method.can_predict
    method.learn(toy_task("sentence", "vehicle", "weather"))
    assert_same_scores(method, learned(Instant, toy_task("sentence", "vehicle", "weather")))


# ---- sums ------------------------------------------------------------------------------------------


def test_the_gram_matrix_is_the_sum_of_outer_products() -> None:
    moments = Moments(3)
    moments.grow_to(2)
    features = torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0], [2.0, 0.0, 0.0]], dtype=torch.float64)
    moments.add(features, torch.tensor([0, 1, 0]))
    assert moments.gram().tolist() == [[5, 2, 3], [2, 5, 5], [3, 5, 10]]
    assert moments.sums.tolist() == [[3, 2, 3], [0, 1, -1]]
    assert moments.means().tolist() == [[1.5, 1, 1.5], [0, 1, -1]]
    moments.add(features[:2], torch.tensor([0, 1]), sign=-1)
    assert moments.gram().tolist() == [[4, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert moments.counts.tolist() == [1, 0]


def test_sums_take_four_bytes_on_disk_until_they_need_eight() -> None:
    sums = full_sums()
    assert sums.state_dict()["sums"].dtype == torch.int32
    sums.add(torch.tensor([[2.0**15]], dtype=torch.float64), torch.tensor([0]))
    assert sums.state_dict()["sums"].dtype == torch.int64
    assert sums.state_dict()["sums"].tolist() == [[2**31]]


def full_sums() -> ClassSums:
    """As many examples of one class as surely fit in 32 bits, the largest there are."""
    sums = ClassSums(1)
    sums.grow_to(1)
    sums.add(torch.full((2**16 - 1, 1), 2.0**15, dtype=torch.float64), torch.zeros(2**16 - 1).long())
    return sums


def test_sums_of_many_examples_are_exact_in_memory_too() -> None:
    sums = full_sums()
    assert sums.sums.dtype == torch.int32
    sums.add(torch.tensor([[2.0**15]], dtype=torch.float64), torch.tensor([0]))
    assert sums.sums.tolist() == [[2**31]]
    sums.add(torch.tensor([[2.0**15]], dtype=torch.float64), torch.tensor([0]), sign=-1)
    assert sums.sums.tolist() == [[2**31 - 2**15]]


def test_sums_that_are_united_or_merged_are_exact() -> None:
    one, other = full_sums(), full_sums()
    one.absorb(other, [0])
    assert one.sums.tolist() == [[2**32 - 2**16]]
    other.grow_to(2)
    other.absorb(full_sums(), [1])
    other.regroup_rows([[0, 1]], 2)
    assert other.sums.tolist() == [[2**32 - 2**16]]


@pytest.mark.parametrize("number", [5, 2**31])
def test_sums_are_loaded_as_wide_as_they_were_saved(number: int) -> None:
    saved = torch.tensor([[number]], dtype=torch.int64 if number > 5 else torch.int32)
    sums = ClassSums(1)
    sums.grow_to(1)
    sums.load_state_dict({"sums": saved, "counts": torch.tensor([1])})
    assert sums.sums.tolist() == [[number]]
    assert sums.sums.dtype == saved.dtype


@pytest.mark.parametrize("size", [1, 2, 513])
def test_gram_matrices_of_any_size_are_exact(size: int) -> None:
    moments = Moments(size)
    moments.grow_to(1)
    features = torch.randint(-(2**15), 2**15, (20, size), generator=torch.Generator().manual_seed(0)).double()
    moments.add(features, torch.zeros(20, dtype=torch.long))
    assert torch.equal(moments.gram().long(), features.long().T @ features.long())


# ---- nearest class mean ----------------------------------------------------------------------------


def test_nearest_class_mean_scores_by_cosine_to_the_mean() -> None:
    method = make(NCM)
    method.classes = ["x", "y"]
    method.ledger.grow_to(2)
    rows = torch.zeros(3, 96, dtype=torch.int16)
    rows[0, :2] = torch.tensor([300, 400])
    rows[1, :2] = torch.tensor([300, -400])
    rows[2, 1] = 500
    method.ledger.book_in(rows, torch.tensor([0, 0, 1]), method.features)
    asked = torch.zeros(1, 96, dtype=torch.int16)
    asked[0, :2] = torch.tensor([60, 80])
    # the mean of x points along the first axis, that of y along the second
    torch.testing.assert_close(method._scores(asked), torch.tensor([[0.6, 0.8]]))


# ---- linear discriminant analysis ------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [0.01, 0.3, 1.0])
def test_discriminant_analysis_agrees_with_scikit_learn(shrinkage: float) -> None:
    task = toy_task("sentence", *TOPICS[:4], train=8)
    method = learned(LDA, task, shrinkage=shrinkage)
    rows, labels = unit(method, task.train), [example.label for example in task.train]
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=[0.25] * 4).fit(
        rows, labels
    )
    asked = unseen(*TOPICS)
    # scikit-learn divides the scatter by n, this by n - C; the scores differ by that factor only
    expected = (model.decision_function(unit(method, asked)) - np.log(0.25)) * (32 - 4) / 32
    found = torch.stack([scores_by_name(method, asked)[name] for name in model.classes_], dim=1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-3)


def test_the_covariance_is_that_around_class_means() -> None:
    moments = Moments(2)
    moments.grow_to(2)
    step = float(REPRESENTATION_STEPS)
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, 1.0]], dtype=torch.float64) * step
    moments.add(rows, torch.tensor([0, 0, 1, 1]))
    assert within_class_covariance(moments).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_shrinkage_moves_the_covariance_toward_an_even_spread() -> None:
    found = shrunk(torch.tensor([[3.0, 1.0], [1.0, 1.0]], dtype=torch.float64), 0.5)
    assert found.tolist() == [[2.5, 0.5], [0.5, 1.5]]


def test_classes_of_one_example_each_are_told_by_distance() -> None:
    method = learned(LDA, toy_task("sentence", "fruit", "vehicle", "weather", train=1))
    examples = toy_task("sentence", "fruit", "vehicle", "weather", train=1).train
    assert method.predict(examples) == ["fruit", "vehicle", "weather"]


# ---- refit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("topics", [TOPICS[:2], TOPICS[:4]])
def test_refit_is_plain_logistic_regression_on_the_embeddings(topics: tuple[str, ...]) -> None:
    task = toy_task("sentence", *topics)
    method = learned(Refit, task, inverse_penalty=3.0)
    labels = [topics.index(example.label) for example in task.train]
    model = LogisticRegression(C=3.0, max_iter=1000).fit(unit(method, task.train), labels)
    asked = unseen(*TOPICS)
    probabilities = method.scores(asked).double().softmax(dim=1)
    np.testing.assert_allclose(probabilities.numpy(), model.predict_proba(unit(method, asked)), atol=1e-6)


def test_a_loaded_refit_does_not_fit_again(monkeypatch: pytest.MonkeyPatch) -> None:
    method = learned(Refit, toy_task("sentence", "fruit", "vehicle"))
    copy = make(Refit)
    copy.classes = list(method.classes)
    grow_to_shapes(copy, method.state_dict())
    copy.load_state_dict(method.state_dict())
    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", None)
    assert torch.equal(copy.scores(unseen("fruit")), method.scores(unseen("fruit")))


# ---- numerical safety ------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("kind", ["sentence", "relation", "event"])
def test_single_examples_and_empty_classes_give_finite_scores(
    chosen: type[FrozenMethod], kind: InputKind
) -> None:
    method = make(chosen, kind)
    method.learn(toy_task(kind, "fruit", train=1))
    assert bool(method.scores(toy_task(kind, "place").test).isfinite().all())
    method.learn(Task(("vehicle", "weather"), toy_task(kind, "vehicle", train=1).train, []))
    scores = method.scores(toy_task(kind, "place").test)
    assert scores.shape == (3, 3)
    assert bool(scores.isfinite().all())
    assert "weather" not in method.predict(toy_task(kind, *TOPICS).test)  # it was named without examples


@every_method
def test_equal_texts_in_two_classes_give_finite_scores(chosen: type[FrozenMethod]) -> None:
    task = Task(("x", "y"), [Example("rain", "x"), Example("rain", "y"), Example("rain", "x")], [])
    assert bool(learned(chosen, task).scores([Example("rain", "?")]).isfinite().all())


@every_method
def test_no_examples_have_no_scores(chosen: type[FrozenMethod]) -> None:
    method = learned(chosen, toy_task("sentence", "fruit", "vehicle"))
    assert method.scores([]).shape == (0, 2)
    assert method.predict([]) == []


def test_the_bytes_kept_are_counted_as_saved() -> None:
    method = learned(NCM, toy_task("sentence", "fruit", "vehicle"), keep_embeddings=False)
    assert method.statistics_bytes() == 2 * 96 * 4 + 2 * 4  # sums and counts


# ---- taking back what is known to have been learned ------------------------------------------------


def test_a_known_text_is_taken_out_by_its_kept_row_though_another_machine_computed_it() -> None:
    task = toy_task("sentence", "fruit", "vehicle", train=4)
    method = learned(Instant, task)
    elsewhere = learned(Instant, Task(task.classes, task.train[1:], []))
    row = (method.ledger.kept.rows[:1].int() + 9).short()
    elsewhere.ledger.book_in(row, torch.tensor([0]), elsewhere.features)
    with pytest.raises(InvalidData, match="never learned with that label"):
        elsewhere.take_back(task.train[:1], are_known=False)
    elsewhere.take_back(task.train[:1])
    assert_same_statistics(elsewhere, learned(Instant, Task(task.classes, task.train[1:], [])))
    sizes = elsewhere.class_sizes()
    assert (sizes["fruit"], sizes["vehicle"]) == (3, 4)


@every_method
def test_a_class_stays_until_it_is_left_out_when_its_last_example_is_taken_back(
    chosen: type[FrozenMethod],
) -> None:
    task = toy_task("sentence", "fruit", "vehicle", train=2)
    method = learned(chosen, task)
    method.take_back(task.train[:2])
    assert method.classes == ["fruit", "vehicle"]
    method.learn(Task(("fruit",), task.train[:2], []))
    torch.testing.assert_close(
        method.scores(unseen(*TOPICS)), learned(chosen, task).scores(unseen(*TOPICS)), rtol=0, atol=1e-4
    )


def test_kept_rows_tell_which_examples_were_learned_and_none_is_counted_twice() -> None:
    task = toy_task("sentence", "fruit", "vehicle", train=2)
    asked = [task.train[0], task.train[0], Example("bob won the war", "fruit"), task.train[3]]
    assert learned(Instant, task).may_have_learned(asked) == [True, False, False, True]
    assert learned(NCM, task, keep_embeddings=False).may_have_learned(asked) == [True] * 4


class Counted(str):
    """A name that counts how often it was compared with another one."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_of_many_classes_are_looked_up_and_not_searched_one_by_one(monkeypatch) -> None:
    def counted(start: int) -> Any:
        names = tuple(Counted(f"class {number}") for number in range(start, start + 200))
        return learned(NCM, Task(names, [Example(f"red {name}", name) for name in names], []))

    monkeypatch.setattr(Counted, "compared", 0)
    first = counted(0)
    first.absorb(counted(100))
    first.regroup_classes({name: [name] for name in first.classes})
    assert len(first.classes) == 300
    assert Counted.compared < 20 * 300  # one by one would be 200 * 200 / 2 times, several times over


def test_refit_takes_over_a_saved_fit_as_it_is() -> None:
    method = learned(Refit, toy_task("sentence", "fruit", "vehicle"))
    found = {"weights": method.weights + 1.0, "offsets": method.offsets + 2.0}
    method.take_derived(found)
    assert (method.weights is found["weights"], method.offsets is found["offsets"]) == (True, True)


def test_refit_computes_a_fit_again_of_which_only_half_was_saved() -> None:
    method = learned(Refit, toy_task("sentence", "fruit", "vehicle"))
    own = method.weights
    method.take_derived({"weights": own + 1.0})
    assert method.weights is own
