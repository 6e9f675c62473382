"""The spectrum against hand-made and random matrices."""

import numpy as np
import pytest

from repcl.analysis.spectrum import effective_rank, eigenvalues, participation_ratio, spectrum

CROSS = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


def test_eigenvalues_divide_by_n_minus_1():
    assert eigenvalues(CROSS) == pytest.approx([8 / 3, 2 / 3])


def test_summaries_of_two_eigenvalues():
    values = np.array([4.0, 1.0])
    assert effective_rank(values) == pytest.approx(1.649385, abs=1e-6)
    assert participation_ratio(values) == pytest.approx(1.470588, abs=1e-6)


def test_equal_eigenvalues_count_themselves():
    assert effective_rank(np.full(7, 0.3)) == pytest.approx(7)
    assert participation_ratio(np.full(7, 0.3)) == pytest.approx(7)


def test_an_identity_covariance_has_equal_eigenvalues():
    rows = np.concatenate([np.eye(5), -np.eye(5)])
    assert eigenvalues(rows) == pytest.approx(np.full(5, 2 / 9))


def test_collapsed_classes_have_one_eigenvalue_less_than_classes():
    means = np.random.default_rng(0).normal(size=(8, 20))
    values = eigenvalues(np.repeat(means, 30, axis=0))
    assert (values > 1e-12).sum() == 7
    assert spectrum(np.repeat(means, 30, axis=0), classes=8).top_share == pytest.approx(1)


def test_white_data_spread_as_marchenko_and_pastur_say():
    rows, size = 1120, 768
    values = eigenvalues(np.random.default_rng(0).normal(size=(rows, size)))
    ratio = size / rows
    assert values.min() == pytest.approx((1 - ratio**0.5) ** 2, abs=0.01)  # 0.030
    assert values.max() == pytest.approx((1 + ratio**0.5) ** 2, abs=0.08)  # 3.342


def test_rotation_and_translation_change_nothing_and_scale_counts_squared():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(40, 6)) * np.arange(1, 7)
    rotation, _ = np.linalg.qr(generator.normal(size=(6, 6)))
    values = eigenvalues(rows)
    assert eigenvalues(rows @ rotation) == pytest.approx(values)
    assert eigenvalues(rows + 100) == pytest.approx(values)
    assert eigenvalues(3 * rows) == pytest.approx(9 * values)
    assert values.sum() == pytest.approx(rows.var(axis=0, ddof=1).sum())


def test_only_the_raw_spectrum_sees_the_scale():
    rows = np.random.default_rng(0).normal(size=(40, 6)) + 1
    one, large = spectrum(rows, classes=2), spectrum(10 * rows, classes=2)
    assert large.raw == pytest.approx([100 * value for value in one.raw])
    assert large.unit == pytest.approx(one.unit)
    assert large.shares == pytest.approx(one.shares)
    assert large.effective_rank == pytest.approx(one.effective_rank)


def test_no_more_eigenvalues_than_texts_minus_one_are_above_zero():
    values = eigenvalues(np.random.default_rng(0).normal(size=(10, 50)))
    assert (values > 1e-12).sum() == 9


def test_representations_without_any_spread_have_a_spectrum_too():
    flat = spectrum(np.ones((5, 3)), classes=2)
    assert flat.effective_rank == 1
    assert flat.participation_ratio == 1
    assert flat.top_share == 0


def test_a_single_representation_spreads_in_no_direction():
    found = spectrum(np.ones((1, 3)), classes=1)
    assert (found.raw, found.shares, found.top_share) == ([0.0], [0.0], 0.0)
