"""The estimator against variables whose mutual information is known."""

from dataclasses import replace
from math import log

import pytest
import torch
from torch import Tensor

from repcl.analysis import mutual_information
from repcl.analysis.critic import Critic, new_critic
from repcl.analysis.estimator_settings import AUTHORS, EstimatorSettings
from repcl.analysis.fitting import bound, fit_critic, group_bound, independent_pairs
from repcl.analysis.mutual_information import (
    class_information,
    estimate,
    input_information,
    pair_information,
)
from repcl.analysis.pairs import Paired, same_class

SMALL = EstimatorSettings(hidden=(32, 32), learning_rate=1e-3, batch_size=128, look_every=50)


def fitted_on_fresh_samples(size: int, correlation: float, steps: int) -> float:
    settings, generator = replace(SMALL, steps=steps), torch.Generator().manual_seed(0)

    def sample(rows: int) -> Paired:
        left = torch.randn(rows, size, generator=generator)
        noise = torch.randn(rows, size, generator=generator)
        return Paired(left, correlation * left + (1 - correlation**2) ** 0.5 * noise)

    critic = new_critic(size, size, settings.hidden, seed=0)
    fit_critic(critic, lambda: sample(128).draw(128, generator), settings, generator)
    return bound(critic, sample(20_000), generator, budget=100_000)


@pytest.mark.parametrize(("correlation", "truth"), [(0.5, 0.14384), (0.9, 0.83037)])
def test_one_pair_of_normal_variables_is_measured_within_a_twentieth(correlation, truth):
    assert fitted_on_fresh_samples(1, correlation, steps=1500) == pytest.approx(truth, abs=0.05)


def test_five_pairs_of_normal_variables_are_measured_to_85_percent():
    truth = -2.5 * log(1 - 0.7**2)
    assert 0.85 * truth < fitted_on_fresh_samples(5, 0.7, steps=2500) < 1.02 * truth


def test_independent_variables_share_nothing():
    assert abs(fitted_on_fresh_samples(1, 0.0, steps=1000)) < 0.02


def clusters(rows: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Eight well separated classes: one-hot times 6 plus unit noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(8, (rows,), generator=generator)
    return 6 * torch.eye(8)[labels] + torch.randn(rows, 8, generator=generator), labels


def test_what_clusters_say_about_their_class_is_found_and_stays_below_its_ceiling():
    found = class_information(*clusters(4000), replace(SMALL, critics=1, steps=1000))
    assert found.class_ceiling == pytest.approx(2.0794, abs=1e-4)
    assert found.value is not None
    assert 1.75 < found.value < log(8)
    assert found.info_nce is not None
    assert 1.75 < found.info_nce < log(8)


def test_what_two_texts_of_a_cluster_share_stays_below_the_same_ceiling():
    found = pair_information(*clusters(4000), replace(SMALL, critics=1, steps=1000))
    assert found.value is not None
    assert 1.6 < found.value < log(8)


def unrelated(rows: int) -> Paired:
    generator = torch.Generator().manual_seed(0)
    return Paired(torch.randn(rows, 10, generator=generator), torch.randn(rows, 10, generator=generator))


def test_a_fit_on_200_texts_finds_much_where_nothing_is_and_the_other_half_shows_it():
    settings = replace(SMALL, hidden=(64, 64), critics=1, steps=500)
    in_sample = estimate(unrelated(200), replace(settings, is_held_out=False, patience=None))
    held_out = estimate(unrelated(400), replace(settings, patience=None))
    assert in_sample.value is not None
    assert held_out.value is not None
    assert in_sample.value > 0.5
    assert held_out.value < 0
    assert held_out.fitted_curve[-1] > 0.5 > held_out.curve[-1]


def test_stopping_where_unseen_texts_say_so_finds_nothing_where_nothing_is():
    found = estimate(unrelated(400), replace(SMALL, hidden=(64, 64), critics=2, patience=100))
    assert found.value is not None
    assert abs(found.value) < 0.05
    assert found.steps[-1] < 1000


def test_the_authors_variant_reports_more_than_the_held_out_estimate():
    rows, labels = clusters(400)
    noisy = rows + 3 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(1))
    ours = class_information(noisy, labels, replace(SMALL, critics=1, steps=500))
    theirs = class_information(noisy, labels, replace(AUTHORS, learning_rate=1e-3, steps=800))
    assert ours.value is not None
    assert theirs.value is not None
    assert theirs.value > ours.value


def test_too_few_texts_give_a_note_instead_of_a_number():
    found = input_information(torch.randn(199, 4), torch.randn(199, 4), SMALL)
    assert found.value is None
    assert found.note == "too few texts: 199, an estimate needs 200"


def test_ceilings_stand_beside_the_value():
    found = estimate(unrelated(400), replace(SMALL, critics=1, steps=25))
    assert found.texts == 200
    assert found.text_ceiling == pytest.approx(log(200))
    assert found.info_nce_ceiling == pytest.approx(log(128))
    assert found.class_ceiling is None


def test_the_same_texts_give_the_same_value_and_nothing_global_changes():
    settings = replace(SMALL, critics=1, steps=50)
    before = torch.random.get_rng_state()
    first, second = (estimate(unrelated(200), settings) for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.random.get_rng_state())


def test_representations_that_are_all_the_same_give_zero():
    found = class_information(torch.ones(200, 4), torch.arange(200) % 4, replace(SMALL, critics=1, steps=100))
    assert found.value == pytest.approx(0, abs=0.05)


def numbered(rows: int) -> Paired:
    """Pairs whose halves both say which text they are."""
    numbers = torch.arange(rows, dtype=torch.float32)[:, None]
    return Paired(numbers, numbers)


def test_an_independent_pair_is_never_a_true_one_unless_drawn_as_the_authors_do():
    generator = torch.Generator().manual_seed(0)
    shifted = independent_pairs(numbered(9).draw(9, generator), "shifted", generator)
    assert torch.equal(shifted[1], (torch.arange(9) + 1) % 9)
    hits = 0
    for _ in range(200):
        left, right = independent_pairs(numbered(100).draw(100, generator), "drawn", generator)
        hits += int((left == right).sum())
    assert 0.7 < hits / 200 < 1.3  # one true pair on average


def test_an_independent_pair_of_two_texts_is_never_a_text_with_itself():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4).repeat_interleave(10)
    drawn = replace(numbered(40), labels=labels).draw(40, generator)
    met = [independent_pairs(drawn, "shifted", generator, offset=offset) for offset in range(1, 40)]
    assert all((drawn.left[left] != drawn.right[right]).all() for left, right in met)
    # of 40 · 39 combinations each text meets itself once, for as its own partner it was never drawn
    assert sum(len(left) for left, _ in met) == 40 * 39 - 40


class SaysWhetherSame(Critic):
    """Scores 5 where both halves are the same number, else 0."""

    def halves(self, left, right):
        return left, right

    def score(self, left_half, right_half):
        return 5.0 * (left_half == right_half).all(dim=-1).float()


def test_a_critic_that_knows_texts_again_learns_nothing_about_classes():
    labels = torch.arange(4).repeat_interleave(32)
    pairs, critic = replace(numbered(128), labels=labels), SaysWhetherSame(1, 1, (2,))
    generator = torch.Generator().manual_seed(0)
    assert bound(critic, pairs, generator, budget=128 * 127) == 0
    assert group_bound(critic, pairs, generator) == (pytest.approx(0, abs=1e-6), log(128))


def test_classes_too_small_for_pairs_are_left_out_and_counted():
    rows, labels = torch.randn(210, 3), torch.arange(210) // 2
    found = pair_information(rows, labels, SMALL)
    assert found.value is None
    assert found.note == "too few texts: 0, an estimate needs 200 in classes of at least 20"


def test_all_steps_are_made_and_looked_at_whatever_their_number():
    found = estimate(unrelated(200), replace(SMALL, critics=1, steps=60, patience=None))
    assert found.steps == [50, 60]
    assert len(found.curve) == 2


def test_a_same_class_partner_is_another_row_of_the_class():
    labels = torch.tensor([2, 0, 2, 5, 0, 2, 0])
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(50):
        rows, others = same_class(labels, generator)
        assert (rows != others).all()
        assert torch.equal(labels[rows], labels[others])
        assert sorted(rows.tolist()) == [0, 1, 2, 4, 5, 6]  # row 3 is the only one of its class
        seen |= set(zip(rows.tolist(), others.tolist(), strict=True))
    assert len(seen) == 12  # every ordered pair within the two classes


def test_independent_partners_are_of_the_same_class_as_often_as_by_chance():
    labels = torch.arange(8).repeat_interleave(50)
    rows = torch.nn.functional.one_hot(labels).float()
    right = Paired(rows, rows, labels).draw(400, torch.Generator().manual_seed(0)).right
    same = sum(int((right * right.roll(shift, dims=0)).sum()) for shift in range(1, 101))
    assert same / (100 * 400) == pytest.approx(49 / 399, abs=0.01)


def test_standardizing_uses_the_fitting_half_and_silences_constant_coordinates():
    fitted = Paired(torch.tensor([[0.0, 7.0], [2.0, 7.0]]), torch.tensor([[1.0], [3.0]]))
    other = Paired(torch.tensor([[5.0, 8.0]]), torch.tensor([[2.0]])).standardized(fitted)
    assert other.left.tolist() == [[4.0, 0.0]]
    assert other.right.tolist() == [[0.0]]


def test_a_critic_scores_pairs_as_one_network_on_both_halves_side_by_side():
    critic = Critic(3, 2, (5, 4))
    left, right = torch.randn(6, 3), torch.randn(6, 2)
    whole = critic.rest(critic.first(torch.cat([left, right], dim=1))).squeeze(1)
    assert torch.allclose(critic(left, right), whole, atol=1e-6)


def test_a_fit_that_falls_far_below_the_others_does_not_move_the_value(monkeypatch):
    values = iter([2.0, 2.2, -3.0, 2.1])

    def fitted(*_: object, seed: int) -> object:
        value = next(values)
        return mutual_information._Fit(value, 1.0, 4.0, [25], [value], [value])

    monkeypatch.setattr(mutual_information, "_fit", fitted)
    found = estimate(Paired(torch.randn(200, 2), torch.randn(200, 2)), replace(SMALL, critics=2))
    assert found.value == pytest.approx(2.05)  # between 2.0 and 2.1, the two in the middle
    assert found.curve == pytest.approx([2.05])
    assert found.spread is not None
    assert found.spread > 2  # and the outlier is not hidden
