"""scikit-learn's own checks of estimators.

They feed matrices of numbers, so the classifier is put behind a door that writes numbers as words; what a
check then finds out about labels, parameters, copies and repeated fits is about the classifier itself.
"""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from repcl import ContinualClassifier
from tests.classifier.conftest import cheap_settings


class OnNumbers(ContinualClassifier):
    """The classifier with a door that takes matrices."""

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        return super().fit(_words(X), _labels(y))

    def partial_fit(self, X, y, classes=None):
        X, y = validate_data(self, X, y, reset=not hasattr(self, "n_features_in_"))
        return super().partial_fit(_words(X), _labels(y), classes)

    def predict_proba(self, X):
        self.fitted_state()
        return super().predict_proba(_words(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.string = tags.input_tags.one_d_array = False
        return tags


def _words(matrix):
    return [" ".join("ab" if value < 0 else "cd" for value in row) + f" {row[0]:.1f}" for row in matrix]


def _labels(labels):
    """Whole numbers that came as floats."""
    return labels.astype(int) if labels.dtype.kind == "f" and (labels % 1 == 0).all() else labels


WHY_NOT = {
    "check_classifiers_train": "asks for 83 % accuracy, out of reach for one epoch of a random encoder",
}


@pytest.fixture(autouse=True)
def _beside_the_encoder(encoder_folder, monkeypatch):
    """Estimators are made before fixtures are: they name the folder without knowing where it is."""
    monkeypatch.chdir(encoder_folder.parent)


@parametrize_with_checks(
    [
        OnNumbers(
            "sequential",
            encoder="tiny-encoder0",
            memory_per_class=0,
            holdout_per_class=0,
            settings=cheap_settings("sequential"),
            device="cpu",
        )
    ],
    expected_failed_checks=lambda _: WHY_NOT,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_the_tags_say_that_it_takes_texts():
    tags = ContinualClassifier().__sklearn_tags__()
    assert tags.input_tags.string
    assert tags.input_tags.one_d_array
    assert not tags.input_tags.two_d_array
    assert tags.estimator_type == "classifier"
    assert np.isscalar(tags.target_tags.required)
