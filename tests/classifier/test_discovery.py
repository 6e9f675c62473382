"""Finding new classes among texts that are not known."""

import numpy as np
import pytest

from repcl.classifier.discovery import discover
from repcl.classifier.grouping import group_vectors
from repcl.classifier.inputs import as_examples
from repcl.classifier.vectors import embed, of_last_layer
from repcl.errors import InvalidSetting
from tests.classifier.conftest import toy


def blobs(centers: int, each: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    means = 10 * np.eye(centers, 16)
    return np.concatenate([mean + draw.normal(size=(each, 16)) for mean in means])


def test_as_many_groups_are_suggested_as_there_are():
    labels, separation = group_vectors(blobs(5, 12))
    assert [len(set(labels[start : start + 12])) for start in range(0, 60, 12)] == [1] * 5
    assert len(set(labels)) == 5
    assert separation > 0.5


def test_many_vectors_join_the_groups_of_a_sample():
    labels, _ = group_vectors(blobs(3, 1000))
    assert len(set(labels)) == 3
    assert all(len(set(labels[start : start + 1000])) == 1 for start in range(0, 3000, 1000))


def test_a_wanted_number_of_groups_is_made():
    assert len(set(group_vectors(blobs(5, 12), 2)[0])) == 2
    assert set(group_vectors(blobs(5, 12), 1)[0]) == {0}


@pytest.mark.parametrize("count", [2, 5])
def test_as_many_groups_as_vectors_are_made_when_wanted(count):
    labels, separation = group_vectors(np.eye(5)[:count], count)
    assert len(set(labels.tolist())) == count
    assert separation is None


def test_more_groups_than_unknown_texts_are_refused(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    with pytest.raises(InvalidSetting, match="at most 3 groups for as many unknown texts, found 4"):
        discover(classifier, ["rain", "snow", "wind"], threshold=1.0, groups=4)


def test_very_few_vectors_are_one_group():
    for count in (0, 1, 2):
        labels, separation = group_vectors(blobs(1, 5)[:count])
        assert labels.tolist() == [0] * count
        assert separation is None


def test_equal_vectors_do_not_break_it():
    labels, _ = group_vectors(np.ones((10, 4)))
    assert len(labels) == 10


def test_only_unknown_texts_are_grouped_each_once_the_largest_group_first(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    texts, _ = toy("weather", "place", texts=8, start=40)
    found = discover(classifier, [*texts, texts[0]], threshold=1.0)
    assert found.asked == 17
    assert found.unknown == 17
    grouped = [text for group in found.groups for text in group.texts]
    assert sorted(grouped) == sorted(texts)
    sizes = [len(group.texts) for group in found.groups]
    assert sizes == sorted(sizes, reverse=True)
    assert found.groups[0].name == "group-1"


def test_texts_that_differ_in_blanks_and_forms_of_unicode_only_are_grouped_once(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    found = discover(classifier, ["a caf\u00e9", "a cafe\u0301 ", "the rain"], threshold=1.0)
    assert (found.unknown, found.repeated) == (3, 1)


def test_where_everything_is_known_there_is_no_group(make):
    classifier = make().fit(*toy("fruit", "vehicle"))
    found = discover(classifier, toy("weather")[0], threshold=0.0)
    assert (found.unknown, found.groups) == (0, ())


def test_sentences_are_grouped_by_the_last_layer(make):
    deep, last = (
        make("instant", settings={"layers": layers}).fit(*toy("fruit", "vehicle")).fitted_state()
        for layers in ((0.5, 1.0), (1.0,))
    )
    examples = as_examples(toy("weather")[0])
    found = of_last_layer(deep, embed(deep, examples))
    assert found == pytest.approx(embed(last, examples), abs=1e-4)  # the grid on which they lie


def test_vectors_of_a_single_layer_stay_as_they_are(make):
    state = make().fit(*toy("fruit", "vehicle")).fitted_state()
    vectors = embed(state, as_examples(toy("weather")[0]))
    assert of_last_layer(state, vectors) is vectors
