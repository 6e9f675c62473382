"""Texts that are taught again, and texts that are forgotten."""

import json

import numpy as np
import pytest
import torch

from repcl import ContinualClassifier
from repcl.classifier import InvalidInput, ModelFolder
from repcl.classifier.known import unlabeled
from repcl.data import Example, Span
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods import METHODS
from tests.classifier.conftest import save_tiny_encoder, toy
from tests.classifier.test_hostile import forge, plant
from tests.conftest import toy_example

FROZEN = ["instant", "ncm", "lda", "refit"]
TRAINED = [name for name in METHODS if "sentence" in METHODS[name].kinds and name not in FROZEN]
frozen = pytest.mark.parametrize("name", FROZEN)
trained = pytest.mark.parametrize("name", TRAINED)
ASKED = toy("fruit", "vehicle", "weather", start=70)[0]
TEXTS, LABELS = toy("fruit", "vehicle")
FIRST = TEXTS[0]

pytestmark = pytest.mark.filterwarnings("ignore::repcl.classifier.ForgettingWarning")


def assert_same_bits(one: ContinualClassifier, other: ContinualClassifier) -> None:
    assert one.method_.classes == other.method_.classes
    ours, theirs = one.method_.state_dict(), other.method_.state_dict()
    assert ours.keys() == theirs.keys()
    for key, tensor in ours.items():
        assert torch.equal(tensor, theirs[key]), key
    np.testing.assert_array_equal(one.predict_proba(ASKED), other.predict_proba(ASKED))


def kept(classifier: ContinualClassifier) -> list[Example]:
    state = classifier.fitted_state()
    return [*state.method.memory, *state.held_out]


# ---- a text taught again under another label -------------------------------------------------------


@frozen
def test_a_corrected_text_leaves_no_trace_of_its_old_label(make, name):
    corrected = make(name).fit(TEXTS, LABELS).partial_fit([FIRST], ["vehicle"])
    never = make(name).fit(TEXTS[1:], LABELS[1:]).partial_fit([FIRST], ["vehicle"])
    assert_same_bits(corrected, never)
    update = corrected.last_update_
    assert (update.corrected, update.examples, update.is_exact) == (1, 1, True)


@pytest.mark.parametrize("name", ["instant", "lda"])
def test_a_text_is_corrected_exactly_without_any_embedding_kept(make, name):
    settings = {"keep_embeddings": False}
    corrected = make(name, settings=settings).fit(TEXTS, LABELS).partial_fit([FIRST], ["vehicle"])
    never = make(name, settings=settings).fit(TEXTS[1:], LABELS[1:]).partial_fit([FIRST], ["vehicle"])
    assert_same_bits(corrected, never)


@frozen
def test_correcting_after_save_and_load_gives_the_same_bits(make, tmp_path, name):
    classifier = make(name, holdout_per_class=2).fit(TEXTS, LABELS)
    classifier.save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    lesson = TEXTS[:4], ["vehicle"] * 4
    assert_same_bits(loaded.partial_fit(*lesson), classifier.partial_fit(*lesson))
    assert loaded.last_update_.corrected == classifier.last_update_.corrected == 4


@frozen
def test_a_text_that_was_learned_twice_is_corrected_as_a_whole(make, name):
    corrected = make(name).fit([*TEXTS, FIRST], [*LABELS, "fruit"]).partial_fit([FIRST], ["vehicle"])
    never = make(name).fit(TEXTS[1:], LABELS[1:]).partial_fit([FIRST], ["vehicle"])
    assert_same_bits(corrected, never)


def test_a_text_is_known_again_with_blanks_around_it_and_in_another_form_of_unicode(make):
    texts = ["a caf\u00e9 in paris", *TEXTS]
    corrected = (
        make("ncm").fit(texts, ["fruit", *LABELS]).partial_fit([" a cafe\u0301 in paris "], ["vehicle"])
    )
    assert corrected.last_update_.corrected == 1
    assert corrected.fitted_state().texts_of_classes()["fruit"] == 10
    assert corrected.fitted_state().texts_of_classes()["vehicle"] == 11


def test_a_corrected_text_is_learned_and_never_held_out(make):
    classifier = make("ncm", holdout_per_class=5).fit(*toy("fruit", "vehicle", texts=20))
    before = classifier.fitted_state()
    learned = [text for text, label in zip(*toy("fruit", texts=20), strict=True)
               if Example(text, label) not in before.held_out]  # fmt: skip
    classifier.partial_fit(learned[:10], ["weather"] * 10)
    assert classifier.last_update_.examples == 10
    assert classifier.fitted_state().texts_of_classes()["weather"] == 10
    assert not any(example.label == "weather" for example in classifier.fitted_state().held_out)


def test_a_held_out_text_that_is_corrected_is_learned_under_its_new_label(make):
    classifier = make("ncm", holdout_per_class=2, settings={"keep_embeddings": False}).fit(TEXTS, LABELS)
    held = next(one for one in classifier.fitted_state().held_out if one.label == "fruit")
    classifier.partial_fit([held.text], ["vehicle"])
    state = classifier.fitted_state()
    assert classifier.last_update_.corrected == 1
    assert held.text not in {example.text for example in state.held_out}
    assert (state.texts_of_classes()["fruit"], state.texts_of_classes()["vehicle"]) == (8, 9)


def test_a_text_with_two_labels_in_one_lesson_has_both_until_it_comes_with_one(make):
    classifier = make("ncm").fit([*TEXTS, FIRST], [*LABELS, "vehicle"])
    state = classifier.fitted_state()
    assert (state.texts_of_classes()["fruit"], state.texts_of_classes()["vehicle"]) == (10, 11)
    classifier.partial_fit([FIRST, FIRST], ["fruit", "weather"])
    update = classifier.last_update_
    assert (update.corrected, update.repeated, update.new_classes) == (1, 1, ("weather",))
    assert [state.texts_of_classes()[one] for one in ("fruit", "vehicle", "weather")] == [10, 10, 1]


@pytest.mark.parametrize("name", ["ncm", "refit"])
def test_a_text_that_is_held_out_under_its_right_label_only_loses_the_wrong_one(make, name):
    right = make(name, holdout_per_class=2).fit(TEXTS, LABELS)
    held = [one for one in right.fitted_state().held_out if one.label == "vehicle"]
    learned = next(text for text in TEXTS[10:] if text not in {one.text for one in held})
    classifier = make(name, holdout_per_class=2).fit([*TEXTS, held[0].text], [*LABELS, "fruit"])
    state = classifier.fitted_state()
    assert held[0] in state.held_out
    assert Example(held[0].text, "fruit") in state.known
    classifier.partial_fit([held[0].text, learned], ["vehicle", "vehicle"])
    update = classifier.last_update_
    repeated = 1 if name == "refit" else 2  # one of them is held out there
    assert (update.corrected, update.repeated, update.examples) == (1, repeated, 0)
    assert_same_bits(classifier, right)


def test_the_order_of_texts_does_not_matter_for_corrections(make):
    lesson = [*TEXTS[:3], "a fresh text"], ["vehicle", "weather", "fruit", "fruit"]
    one = make("instant").fit(TEXTS, LABELS).partial_fit(*lesson)
    other = make("instant").fit(TEXTS, LABELS).partial_fit(*(list(reversed(part)) for part in lesson))
    assert_same_bits(one, other)


@frozen
def test_a_class_whose_last_text_is_corrected_is_gone(make, name):
    classifier = make(name).fit([*TEXTS, "the rain"], [*LABELS, "weather"])
    classifier.partial_fit(["the rain"], ["fruit"])
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]
    assert (classifier.last_update_.emptied, classifier.last_update_.corrected) == (1, 1)
    assert_same_bits(classifier, make(name).fit(TEXTS, LABELS).partial_fit(["the rain"], ["fruit"]))


@frozen
def test_a_class_that_gets_other_texts_in_the_same_lesson_stays(make, name):
    classifier = make(name).fit([*TEXTS, "the rain"], [*LABELS, "weather"])
    classifier.partial_fit(["the rain", "the snow"], ["fruit", "weather"])
    assert classifier.classes_.tolist() == ["fruit", "vehicle", "weather"]
    assert classifier.last_update_.emptied == 0


def test_a_class_of_which_only_held_out_texts_are_left_is_learned_from_those(make):
    classifier = make("refit", holdout_per_class=2).fit(TEXTS, LABELS)
    state = classifier.fitted_state()
    held = [example for example in state.held_out if example.label == "fruit"]
    learned = [text for text in TEXTS[:10] if text not in {example.text for example in held}]
    classifier.partial_fit(learned, ["vehicle"] * 8)
    assert len(held) == state.texts_of_classes()["fruit"] == 2
    assert {example.label for example in state.held_out} == {"vehicle"}
    assert classifier.last_update_.emptied == 0


def test_a_class_that_was_announced_stays_announced_when_its_last_text_is_corrected(make):
    classifier = make("ncm").partial_fit(["an apple", "a car"], ["a", "b"], classes=["a", "b"])
    classifier.partial_fit(["an apple"], ["b"])
    assert classifier.classes_.tolist() == ["a", "b"]
    assert classifier.predict(["an apple"]).tolist() == ["b"]


@pytest.mark.parametrize(("kind", "spans"), [("relation", ("head", "tail")), ("event", ("trigger",))])
def test_a_text_with_other_spans_is_another_text(make, tmp_path, kind, spans):
    folder = save_tiny_encoder(tmp_path / "encoder", kind)
    examples = [toy_example(kind, topic, number) for topic in ("fruit", "vehicle") for number in range(4)]
    classifier = make("ncm", encoder=str(folder)).fit(examples, [one.label for one in examples])
    elsewhere = Example(examples[0].text, "", **{name: Span(0, 3) for name in spans})
    classifier.partial_fit([elsewhere], ["vehicle"])
    assert classifier.last_update_.corrected == 0
    classifier.partial_fit([examples[0]], ["vehicle"])
    assert classifier.last_update_.corrected == 1


@trained
def test_trained_methods_drop_a_corrected_text_from_what_they_keep(make, name):
    options = {"holdout_per_class": 2, "memory_per_class": 3}
    classifier = make(name, **options).fit(*toy("fruit", "vehicle", "weather"))
    wrong = [example for example in kept(classifier) if example.label == "fruit"]
    classifier.partial_fit([one.text for one in wrong], ["vehicle"] * len(wrong))
    assert classifier.last_update_.corrected == len(wrong) >= 2
    assert not {unlabeled(one) for one in wrong} & {
        unlabeled(one) for one in kept(classifier) if one.label == "fruit"
    }
    classifier.partial_fit(*toy("place", "weather", start=40))
    assert classifier.predict(ASKED).shape == (30,)


def test_the_weights_of_a_trained_method_are_said_to_carry_traces(make):
    classifier = make("fea").fit(TEXTS, LABELS)
    classifier.partial_fit([FIRST], ["vehicle"])
    assert not classifier.last_update_.is_exact
    classifier.partial_fit(["something new"], ["vehicle"])
    assert classifier.last_update_.is_exact


def test_a_method_that_starts_over_corrects_exactly(make):
    corrected = make("joint").fit(TEXTS, LABELS).partial_fit([FIRST], ["vehicle"])
    assert corrected.last_update_.is_exact
    assert Example(FIRST, "fruit") not in list(corrected.method_.memory)


def test_saving_after_a_correction_and_learning_on_gives_the_same_bits(make, tmp_path):
    classifier = make("fea", memory_per_class=2).fit(*toy("fruit", "vehicle", "weather"))
    wrong = [example.text for example in classifier.method_.memory.of("vehicle")]
    classifier.partial_fit(wrong, ["fruit"] * 2)
    classifier.save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    lesson = toy("vehicle", "place", start=30)
    assert_same_bits(loaded.partial_fit(*lesson), classifier.partial_fit(*lesson))


# ---- a text taught again under the same label ------------------------------------------------------


@frozen
def test_a_text_taught_again_is_not_counted_twice(make, name):
    once = make(name, holdout_per_class=2).fit(TEXTS, LABELS)
    again = make(name, holdout_per_class=2).fit(TEXTS, LABELS).partial_fit(TEXTS, LABELS)
    assert_same_bits(again, once)
    update = again.last_update_
    held_out = 4 if name == "refit" else 0  # the others learn from every text
    assert (update.repeated, update.examples, update.held_out) == (20 - held_out, 0, 0)


def test_texts_that_stand_twice_in_one_lesson_count_twice(make):
    classifier = make("ncm").fit([FIRST, FIRST, "a car"], ["fruit", "fruit", "vehicle"])
    assert classifier.fitted_state().texts_of_classes()["fruit"] == 2


def test_trained_methods_learn_from_a_text_again(make):
    classifier = make("fea").fit(TEXTS, LABELS).partial_fit(TEXTS, LABELS)
    assert (classifier.last_update_.examples, classifier.last_update_.repeated) == (20, 0)


@pytest.mark.parametrize("name", ["fea", "ncm"])
def test_a_text_that_was_learned_is_never_held_out_later(make, name):
    classifier = make(name).fit(TEXTS, LABELS).set_params(holdout_per_class=5)
    classifier.partial_fit(TEXTS, LABELS)
    assert classifier.fitted_state().held_out == []


# ---- what is kept to recognize texts ---------------------------------------------------------------


def test_where_nothing_may_be_kept_no_hash_and_no_embedding_is(make):
    classifier = make("instant", memory_per_class=0, holdout_per_class=0).fit(TEXTS, LABELS)
    state = classifier.fitted_state()
    assert len(state.known) == 0
    assert len(state.method.ledger.kept.rows) == 0
    assert classifier.last_update_.recognized == "none"
    classifier.partial_fit([FIRST], ["vehicle"])
    assert classifier.last_update_.corrected == 0
    assert (state.texts_of_classes()["fruit"], state.texts_of_classes()["vehicle"]) == (10, 11)


def test_embeddings_are_kept_where_the_user_asks_for_them(make):
    settings = {"keep_embeddings": True}
    classifier = make("instant", memory_per_class=0, holdout_per_class=0, settings=settings).fit(
        TEXTS, LABELS
    )
    assert len(classifier.method_.ledger.kept.rows) == 20


def test_hashes_go_when_nothing_may_be_kept_any_more_and_come_when_it_may(make):
    classifier = make("ncm", memory_per_class=0, holdout_per_class=1).fit(TEXTS, LABELS)
    assert classifier.last_update_.recognized == "all"
    classifier.set_params(holdout_per_class=0).partial_fit(["the rain"], ["weather"])
    assert (len(classifier.fitted_state().known), classifier.last_update_.recognized) == (0, "none")
    classifier.set_params(holdout_per_class=1).partial_fit(["the snow"], ["weather"])
    assert (len(classifier.fitted_state().known), classifier.last_update_.recognized) == (1, "some")


HELD_OUT = {"memory_per_class": 0, "holdout_per_class": 2}


@pytest.mark.parametrize("name", ["instant", "refit", "sequential"])
def test_no_text_is_held_out_any_more_when_none_may_be(make, name):
    classifier = make(name, **HELD_OUT).fit(TEXTS, LABELS)
    assert len(kept(classifier)) == 4
    classifier.set_params(holdout_per_class=0).partial_fit(["the rain"], ["weather"])
    assert kept(classifier) == []


@pytest.mark.parametrize(("name", "settings"), [("refit", {}), ("instant", {"keep_embeddings": False})])
def test_a_frozen_learner_learns_the_texts_that_it_may_hold_out_no_more(make, name, settings):
    classifier = make(name, settings=settings, **HELD_OUT).fit(TEXTS, LABELS)
    assert classifier.fitted_state().texts_of_classes() == {"fruit": 8, "vehicle": 8}
    classifier.set_params(holdout_per_class=0).partial_fit(["the rain"], ["weather"])
    assert classifier.fitted_state().texts_of_classes() == {"fruit": 10, "vehicle": 10, "weather": 1}


def test_a_trained_learner_learns_held_out_texts_that_come_again_when_none_may_be_held_out(make):
    classifier = make("sequential", memory_per_class=0, holdout_per_class=2).fit(TEXTS, LABELS)
    classifier.set_params(holdout_per_class=0).partial_fit(TEXTS, LABELS)
    assert classifier.last_update_.examples == len(TEXTS)


def without_hashes_but_with_held_out_texts(make) -> tuple[ContinualClassifier, Example]:
    """A learner that leaves texts out and has dropped its hashes, and a text of fruit that it keeps."""
    classifier = make("instant", **HELD_OUT).fit(TEXTS, LABELS)
    held = next(one for one in classifier.fitted_state().held_out if one.label == "fruit")
    classifier.set_params(holdout_per_class=0).forget_texts(TEXTS[-1:])
    assert len(classifier.fitted_state().known) == 0
    return classifier, held


def test_a_kept_text_that_was_learned_is_forgotten_exactly_though_hashes_were_dropped(make):
    classifier, held = without_hashes_but_with_held_out_texts(make)
    classifier.forget_texts([held.text])
    assert classifier.last_update_.is_exact
    rest = [one for one in zip(TEXTS[:-1], LABELS[:-1], strict=True) if one[0] != held.text]
    assert_same_bits(classifier, make("instant", **HELD_OUT).fit(*map(list, zip(*rest, strict=True))))


def test_a_kept_text_that_was_learned_is_corrected_exactly_though_hashes_were_dropped(make):
    classifier, held = without_hashes_but_with_held_out_texts(make)
    classifier.partial_fit([held.text], ["vehicle"])
    assert (classifier.last_update_.corrected, classifier.last_update_.is_exact) == (1, True)
    assert classifier.fitted_state().texts_of_classes() == {"fruit": 9, "vehicle": 10}


def test_a_kept_text_of_which_nobody_knows_whether_it_was_learned_is_not_said_to_leave_no_trace(make):
    classifier, _ = without_hashes_but_with_held_out_texts(make)
    state = classifier.fitted_state()
    state.held_out.append(Example("never learned", "fruit"))
    classifier.forget_texts(["never learned"])
    assert not classifier.last_update_.is_exact
    assert state.texts_of_classes() == {"fruit": 10, "vehicle": 9}


def without_hashes(folder) -> None:
    """Make the revision look as it did before there were hashes."""
    forge(folder, lambda record: record["contents"].pop("known"))


@pytest.mark.parametrize("name", ["fea", "instant"])
def test_a_folder_from_before_there_were_hashes_opens_and_knows_the_texts_it_keeps(make, tmp_path, name):
    path = tmp_path / "model"
    make(name, holdout_per_class=2, memory_per_class=3).fit(TEXTS, LABELS).save(path)
    without_hashes(path)
    loaded = ContinualClassifier.load(path, device="cpu")
    wrong = [example for example in kept(loaded) if example.label == "fruit"]
    lost = next(text for text in TEXTS[:10] if text not in {one.text for one in wrong})
    loaded.partial_fit([*(one.text for one in wrong), lost], ["vehicle"] * (len(wrong) + 1))
    assert loaded.last_update_.corrected == len(wrong) == (5 if name == "fea" else 2)
    assert loaded.last_update_.recognized == "some"
    assert not any(one.label == "fruit" for one in kept(loaded))
    assert "fruit" in loaded.classes_


def hashes_of(folder: ModelFolder, number: int) -> set[bytes]:
    from repcl.classifier.store.files import BlobFolder
    from repcl.classifier.store.snapshot import get_known

    known = get_known(folder.revision(number).contents, BlobFolder(folder.path / "blobs"))
    assert known is not None
    return {
        row[:4].tobytes()
        for row in known.to_table([one.name for one in folder.revision(number).contents.classes])
    }


@pytest.mark.parametrize("name", ["fea", "instant"])
def test_hashes_of_a_removed_class_are_not_in_the_revision_and_after_a_purge_in_none(make, tmp_path, name):
    classifier = make(name).fit(*toy("fruit", "vehicle", "weather"))
    classifier.save(tmp_path / "model")
    folder = ModelFolder(tmp_path / "model")
    key = classifier.fitted_state().known.keys[0]
    texts = toy("fruit", "vehicle", "weather")[0][10:20]
    own = {classifier.fitted_state().known._hash(key, Example(text, "")) for text in texts}
    classifier.remove_class("vehicle").save(tmp_path / "model")
    assert (len(hashes_of(folder, 1)), len(hashes_of(folder, 2))) == (30, 20)
    assert own <= hashes_of(folder, 1)
    assert not own & hashes_of(folder, 2)
    with folder.lock("testing"):
        folder.purge([1])
    data = b"".join(path.read_bytes() for path in (tmp_path / "model").rglob("*") if path.is_file())
    assert not any(one in data for one in own)


@frozen
def test_the_texts_of_a_removed_class_are_news_when_they_come_again(make, name):
    classifier = make(name).fit(*toy("fruit", "vehicle", "weather")).remove_class("weather")
    lesson = [part[20:] for part in toy("fruit", "vehicle", "weather")]
    classifier.partial_fit(*lesson)
    update = classifier.last_update_
    assert (update.examples, update.repeated, update.new_classes) == (10, 0, ("weather",))
    assert_same_bits(classifier, make(name).fit(*toy("fruit", "vehicle", "weather")))


def test_texts_are_recognized_under_the_new_name_of_their_class(make):
    classifier = make("ncm").fit(TEXTS, LABELS).rename_class("fruit", "food")
    classifier.partial_fit([FIRST], ["vehicle"])
    assert classifier.last_update_.corrected == 1
    assert classifier.fitted_state().texts_of_classes()["food"] == 9


def test_texts_of_merged_classes_are_corrected_exactly(make):
    merged = (
        make("instant").fit(*toy("fruit", "vehicle", "weather")).merge_classes(["fruit", "weather"], "both")
    )
    merged.partial_fit([FIRST], ["vehicle"])
    assert merged.last_update_.corrected == 1
    assert merged.fitted_state().texts_of_classes()["both"] == 19


def test_texts_that_another_classifier_learned_are_recognized_after_it_was_taken_over(make, tmp_path):
    first, second = make("instant").fit(TEXTS, LABELS), make("instant").fit(*toy("weather", start=30))
    first.absorb(second).save(tmp_path / "model")
    loaded = ContinualClassifier.load(tmp_path / "model", device="cpu")
    loaded.partial_fit([FIRST, toy("weather", start=30)[0][0]], ["vehicle", "vehicle"])
    assert loaded.last_update_.corrected == 2


def test_a_text_has_another_hash_in_every_folder(make, tmp_path):
    for name in ("a", "b"):
        make("ncm").fit(TEXTS, LABELS).save(tmp_path / name)
    one, other = (hashes_of(ModelFolder(tmp_path / name), 1) for name in ("a", "b"))
    assert len(one) == len(other) == 20
    assert not one & other


def test_hashes_have_a_file_of_their_own_with_24_bytes_a_text(make, tmp_path):
    make("ncm").fit(TEXTS, LABELS).save(tmp_path / "model")
    record = ModelFolder(tmp_path / "model").revision(1).contents.known
    assert record is not None
    assert record.table in ModelFolder(tmp_path / "model").revision(1).contents.blobs()
    assert 20 * 24 <= record.table.bytes < 20 * 24 + 200


@pytest.mark.parametrize("change", [
    lambda known: known.update(keys=[]),
    lambda known: known.update(keys=["xy"]),
    lambda known: known.update(unlisted=["nobody"]),
    lambda known: known["table"].update(file="f" * 64 + ".safetensors"),
])  # fmt: skip
def test_a_forged_list_of_hashes_is_refused(make, tmp_path, change):
    from repcl.classifier.store.records import DamagedModel

    make("ncm").fit(TEXTS, LABELS).save(tmp_path / "model")
    forge(tmp_path / "model", lambda record: change(record["contents"]["known"]))
    with pytest.raises(DamagedModel):
        ContinualClassifier.load(tmp_path / "model")


def test_a_table_of_hashes_that_is_another_tensor_is_refused(make, tmp_path):
    from safetensors.torch import save

    from repcl.classifier.store.records import DamagedModel

    make("ncm").fit(TEXTS, LABELS).save(tmp_path / "model")
    blob = plant(tmp_path / "model", save({"tensor": torch.zeros(3, 7)}), "safetensors")
    forge(tmp_path / "model", lambda record: record["contents"]["known"].update(table=blob))
    with pytest.raises(DamagedModel, match="is no list of hashes"):
        ContinualClassifier.load(tmp_path / "model")


# ---- forgetting ------------------------------------------------------------------------------------


@frozen
def test_forgotten_texts_leave_no_trace(make, name):
    forgot = make(name).fit(TEXTS, LABELS).forget_texts(TEXTS[3:6])
    assert_same_bits(forgot, make(name).fit(TEXTS[:3] + TEXTS[6:], LABELS[:3] + LABELS[6:]))
    update = forgot.last_update_
    assert (update.action, update.forgotten, update.is_exact, update.not_found) == ("forget", 3, True, 0)
    assert len(forgot.fitted_state().known) == 17


def test_a_forgotten_text_can_be_learned_again(make):
    classifier = make("ncm").fit(TEXTS, LABELS)
    before = classifier.predict_proba(ASKED)
    classifier.forget_texts([FIRST]).partial_fit([FIRST], ["fruit"])
    assert (classifier.last_update_.repeated, classifier.last_update_.corrected) == (0, 0)
    np.testing.assert_array_equal(classifier.predict_proba(ASKED), before)


def test_a_text_is_forgotten_under_the_label_given_only(make):
    classifier = make("ncm").fit([*TEXTS, FIRST], [*LABELS, "vehicle"])
    classifier.forget_texts([FIRST], ["vehicle"])
    state = classifier.fitted_state()
    assert (state.texts_of_classes()["fruit"], state.texts_of_classes()["vehicle"]) == (10, 10)
    classifier.partial_fit([FIRST], ["vehicle"])
    classifier.forget_texts([FIRST])
    assert (state.texts_of_classes()["fruit"], state.texts_of_classes()["vehicle"]) == (9, 10)


def test_texts_that_are_not_known_are_counted(make):
    classifier = make("ncm").fit(TEXTS, LABELS).forget_texts([FIRST, FIRST, "never seen", "nor this"])
    assert (classifier.last_update_.forgotten, classifier.last_update_.not_found) == (1, 2)


@pytest.mark.parametrize("name", ["ncm", "fea"])
def test_where_no_text_is_known_nothing_is_changed(make, name):
    classifier = make(name).fit(TEXTS, LABELS)
    before = classifier.predict_proba(ASKED)
    with pytest.raises(InvalidInput, match="None of the 1 texts to forget is known"):
        classifier.forget_texts(["never seen"])
    with pytest.raises(
        InvalidInput, match="None of the 1 texts to forget is known: check the texts and labels"
    ):
        classifier.forget_texts([FIRST], ["vehicle"])
    with pytest.raises(UnknownName, match="No class 'fruits'"):
        classifier.forget_texts([FIRST], ["fruits"])
    with pytest.raises(InvalidInput, match="at least one text to forget"):
        classifier.forget_texts([])
    np.testing.assert_array_equal(classifier.predict_proba(ASKED), before)
    assert classifier.last_update_.action == "learn"


@pytest.mark.parametrize("name", ["ncm", "instant", "fea"])
def test_a_class_whose_texts_are_all_forgotten_is_removed(make, tmp_path, name):
    classifier = make(name, holdout_per_class=2).fit(*toy("fruit", "vehicle", "weather"))
    classifier.forget_texts(toy("fruit", "vehicle", "weather")[0][10:20])
    assert classifier.classes_.tolist() == ["fruit", "weather"]
    assert (classifier.last_update_.emptied, classifier.last_update_.forgotten) == (1, 10)
    classifier.save(tmp_path / "model")
    record = (tmp_path / "model" / "revisions" / "000001.json").read_text()
    assert "vehicle" not in json.dumps(json.loads(record)["record"]["contents"])


def test_all_texts_cannot_be_forgotten(make):
    classifier = make("ncm", holdout_per_class=2).fit(TEXTS, LABELS)
    with pytest.raises(InvalidInput, match="delete the model instead"):
        classifier.forget_texts(TEXTS)
    assert classifier.predict(ASKED).shape == (30,)


def test_a_held_out_text_is_forgotten(make):
    classifier = make("fea", holdout_per_class=2).fit(TEXTS, LABELS)
    held = classifier.fitted_state().held_out[0]
    classifier.forget_texts([held.text])
    assert held not in classifier.fitted_state().held_out
    assert classifier.last_update_.is_exact  # it was never learned from


def test_a_class_with_only_held_out_texts_left_is_learned_from_those_when_others_are_forgotten(make):
    classifier = make("instant", holdout_per_class=2).fit(TEXTS, LABELS)
    state = classifier.fitted_state()
    held = {example.text for example in state.held_out if example.label == "fruit"}
    classifier.forget_texts([text for text in TEXTS[:10] if text not in held])
    assert state.texts_of_classes()["fruit"] == 2
    assert classifier.classes_.tolist() == ["fruit", "vehicle"]
    assert Example(held.pop(), "fruit") in state.known


@trained
def test_trained_methods_forget_texts_in_what_they_keep_and_say_that_weights_stay(make, name):
    options = {"holdout_per_class": 2, "memory_per_class": 3}
    texts, labels = toy("fruit", "vehicle", "weather")
    classifier = make(name, **options).fit(texts, labels).forget_texts(texts[:9])
    assert not {one.text for one in kept(classifier)} & set(texts[:9])
    assert (classifier.last_update_.forgotten, classifier.last_update_.is_exact) == (9, False)
    assert classifier.classes_.tolist() == ["fruit", "vehicle", "weather"]
    assert classifier.partial_fit(*toy("place", start=40)).predict(ASKED).shape == (30,)


@pytest.mark.parametrize("name", ["instant", "ncm", "lda"])
def test_where_nothing_is_kept_texts_are_forgotten_by_their_labels_on_the_users_word(make, name):
    options = {"memory_per_class": 0, "holdout_per_class": 0}
    classifier = make(name, **options).fit(TEXTS, LABELS)
    with pytest.raises(InvalidInput, match="find texts by their labels"):
        classifier.forget_texts(TEXTS[:2])
    classifier.forget_texts(TEXTS[:2], LABELS[:2])
    assert_same_bits(classifier, make(name, **options).fit(TEXTS[2:], LABELS[2:]))
    update = classifier.last_update_
    assert (update.forgotten, update.unchecked, update.recognized) == (2, 2, "none")
    with pytest.raises(InvalidInput, match="More texts of 'fruit' are to be forgotten than were learned"):
        classifier.forget_texts([f"text {number}" for number in range(9)], ["fruit"] * 9)
    classifier.forget_texts(TEXTS[2:10], LABELS[2:10])
    assert classifier.classes_.tolist() == ["vehicle"]


def test_a_class_is_removed_by_its_texts_where_no_embedding_is_kept(make):
    classifier = make("instant", memory_per_class=0, holdout_per_class=0).fit(TEXTS, LABELS)
    with pytest.raises(InvalidSetting, match="repcl forget MODEL DATA"):
        classifier.remove_class("fruit")
    classifier.forget_texts(TEXTS[:10], LABELS[:10])
    assert classifier.classes_.tolist() == ["vehicle"]


def test_in_a_folder_without_hashes_texts_are_found_by_their_embeddings_and_labels(make, tmp_path):
    path = tmp_path / "model"
    make("instant").fit(TEXTS, LABELS).save(path)
    without_hashes(path)
    loaded = ContinualClassifier.load(path, device="cpu").forget_texts(
        [*TEXTS[:2], "never seen"], [*LABELS[:2], "fruit"]
    )
    update = loaded.last_update_
    assert (update.forgotten, update.not_found, update.unchecked) == (2, 1, 0)
    assert_same_bits(loaded, make("instant").fit(TEXTS[2:], LABELS[2:]))


def test_forgetting_is_compared_on_held_out_texts(make):
    classifier = make("ncm", holdout_per_class=2, settings={"keep_embeddings": False}).fit(TEXTS, LABELS)
    held = [one for one in classifier.fitted_state().held_out if one.label == "fruit"]
    learned = [text for text in TEXTS[:10] if text not in {one.text for one in held}]
    classifier.forget_texts(learned[:7])
    assert classifier.last_update_.compared == 4
    assert classifier.last_update_.accuracy_before is not None
