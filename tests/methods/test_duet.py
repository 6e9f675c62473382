"""A duet lets two learners learn as they would alone, and adds their votes."""

from typing import Any

import pytest
import torch

from repcl.data import Task
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods import build_method
from repcl.methods.duet import Duet
from repcl.methods.voting import standardized
from repcl.presets import load_preset, parse_overrides
from tests.conftest import tiny_encoder, toy_task

FAST = {"initial_epochs": 1, "replay_epochs": 1, "warmup_epochs": 0.0, "batch_size": 6, "memory_per_class": 2}
FIRST, SECOND = toy_task("sentence", "fruit", "vehicle"), toy_task("sentence", "weather", "place")


def duet(**settings: Any) -> Duet:
    made = build_method("duet", "sentence", encoder=tiny_encoder(), settings=FAST | settings, seed=3)
    assert isinstance(made, Duet)
    return made


@pytest.fixture(scope="module")
def learned() -> Duet:
    method = duet(trained="fea", frozen=("tower", "vote"), features=32, maps=2)
    method.learn(FIRST)
    method.learn(SECOND)
    return method


def test_scores_of_a_text_are_standardized_over_its_classes() -> None:
    scores = standardized(torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]))
    wide = (3 / 2) ** 0.5  # 1 / sqrt((1 + 0 + 1) / 3)
    torch.testing.assert_close(scores, torch.tensor([[-wide, 0.0, wide], [0.0, 0.0, 0.0]]).double())


def test_the_trained_part_learns_as_it_would_alone(learned: Duet) -> None:
    alone = build_method("fea", "sentence", encoder=tiny_encoder(), settings=FAST, seed=3)
    for task in (FIRST, SECOND):
        alone.learn(task)
    assert torch.equal(learned.trained.scores(SECOND.test), alone.scores(SECOND.test))
    assert list(learned.memory) == list(alone.memory)


def test_the_vote_learns_as_it_would_alone(learned: Duet) -> None:
    settings = {"vote": True, "features": 32, "maps": 2}
    alone = build_method("instant", "sentence", encoder=tiny_encoder(), settings=settings)
    for task in (FIRST, SECOND):
        alone.learn(task)
    assert torch.equal(learned.frozen_parts["vote"].scores(SECOND.test), alone.scores(SECOND.test))


def test_all_votes_are_added_with_equal_weights(learned: Duet) -> None:
    votes = learned.votes(SECOND.test)
    expected = standardized(votes["trained"]) + standardized(votes["tower"]) + standardized(votes["vote"])
    torch.testing.assert_close(learned.scores(SECOND.test), expected.float())


def test_the_frozen_encoder_stays_what_it_was_before_the_first_task(learned: Duet) -> None:
    before = tiny_encoder().state_dict()
    for part in learned.frozen_parts.values():
        now = part.encoder.state_dict()
        assert all(torch.equal(now[name], value) for name, value in before.items())
    assert any(not torch.equal(learned.encoder.state_dict()[name], value) for name, value in before.items())


def test_the_tower_learns_beside_the_exemplars_of_the_trained_part(monkeypatch: pytest.MonkeyPatch) -> None:
    method = duet(trained="fea")
    method.learn(FIRST)
    kept, embedded = set(method.memory), []
    tower = method.frozen_parts["tower"]
    embed = tower.embed
    monkeypatch.setattr(tower, "embed", lambda examples: embedded.extend(examples) or embed(examples))
    method.learn(SECOND)
    assert set(embedded) == kept | set(SECOND.train)


def test_no_weight_is_saved_twice(learned: Duet) -> None:
    places = [value.data_ptr() for value in learned.state_dict().values() if value.numel()]
    assert len(places) == len(set(places))


def test_merged_classes_are_merged_in_all_parts() -> None:
    method = duet(trained="fea", frozen=("tower", "vote"), features=32, maps=2)
    method.learn(FIRST)
    method.learn(SECOND)
    method.regroup_classes({"thing": ["fruit", "vehicle"], "place": ["place"]})
    assert [part.classes for part in method.parts] == [["thing", "place"]] * 3
    assert method.scores(SECOND.test).shape == (6, 2)
    assert set(method.memory.classes) == {"thing", "place"}
    method.learn(toy_task("sentence", "person"))
    assert method.scores(SECOND.test).shape == (6, 3)


def test_texts_that_are_taken_back_are_gone_from_memory_and_sums() -> None:
    method = duet(trained="fea", frozen=("vote",), features=32, maps=2)
    method.learn(FIRST)
    gone = list(method.memory.of("fruit"))
    method.take_back(gone)
    method.regroup_classes({name: [name] for name in method.classes})
    assert method.memory.of("fruit") == []
    assert method.frozen_parts["vote"].class_sizes() == {"fruit": 6 - len(gone), "vehicle": 6}


def test_statistics_are_those_of_the_frozen_part() -> None:
    strict, other = duet(trained="fea"), duet(trained="fea", frozen=("vote",), features=32, maps=2)
    for method in (strict, other):
        method.learn(FIRST)
    assert strict.statistics_bytes() == 0
    assert other.statistics_bytes() == other.frozen_parts["vote"].statistics_bytes() > 0


def test_settings_of_the_parts_stand_beside_those_of_the_duet() -> None:
    fields = Duet.settings_class({"trained": "fea", "frozen": "vote"}).model_fields
    assert {"trained", "frozen", "infomax_weight", "maps", "layers"} <= fields.keys()
    assert not {"contrast_weight", "old_pull", "vote"} & fields.keys()


def test_a_setting_of_another_part_is_refused() -> None:
    with pytest.raises(UnknownName, match="infomax_weight"):
        duet(trained="repcl", infomax_weight=0.1)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="trained"):
        duet(trained="joint")


def test_what_a_preset_says_of_the_trained_method_holds_in_a_duet() -> None:
    preset = load_preset("cpu")
    own = preset.settings_for("repcl", "tacred", "relation")
    found = preset.settings_for("duet", "tacred", "relation", {"trained": "repcl"})
    assert found == own
    assert found["temperature"] == 0.1


def test_a_typed_setting_of_the_chosen_trained_method_is_known() -> None:
    typed = parse_overrides(["trained=fea", "infomax_weight=0.1", "maps=5"], ["duet"], load_preset("cpu"))
    assert typed == {"duet": {"trained": "fea", "infomax_weight": 0.1, "maps": 5}}


def test_a_trained_part_that_cannot_take_the_input_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="relation input, not on sentence input"):
        duet(trained="aca")


def test_a_batch_is_refused(learned: Duet) -> None:
    with pytest.raises(NotImplementedError, match="call `scores`"):
        learned.for_all(SECOND.test, learned.class_scores)


def test_no_text_gives_no_score(learned: Duet) -> None:
    assert learned.predict([]) == []


def test_a_class_may_come_again() -> None:
    method = duet(trained="fea")
    method.learn(FIRST)
    more = toy_task("sentence", "fruit", start=20)
    method.learn(Task(("fruit",), more.train, []))
    assert method.classes == ["fruit", "vehicle"]
