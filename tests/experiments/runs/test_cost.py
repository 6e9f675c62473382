"""How long a run takes, expected from one measured step and the method's relative cost."""

import pytest

from repcl.data import Example, Task, TaskStream
from repcl.experiments import plan_run
from repcl.experiments.runs.cost import expected_seconds, measure_step
from repcl.methods import relative_cost
from tests.conftest import save_encoder, tiny_encoder, toy_example


def test_a_variant_costs_what_its_method_costs_unless_it_is_listed():
    assert relative_cost("fea@memory-5") == relative_cost("fea") == 1.0
    assert relative_cost("repcl@no-xmlm") < relative_cost("repcl@mlm") == relative_cost("repcl")
    assert relative_cost("a method of your own") == 1.0


def test_expected_time_counts_training_memory_update_replay_and_evaluation():
    def task(name):
        return Task((name,), [Example(f"{n}", name) for n in range(30)], [Example("x", name)] * 3)

    stream = TaskStream("two", "sentence", (task("a"), task("b")))
    plan = plan_run("fea", stream, settings={"initial_epochs": 2, "replay_epochs": 3, "memory_per_class": 5})
    # 60 texts × (2 epochs + 1/3 for the memory), 5 and 10 exemplars × 3, (3 + 6 tests) / 3
    expected = 60 * (2 + 1 / 3) + 15 * 3 + 3
    assert expected_seconds(plan, plan, stream, 0.1) == pytest.approx(0.1 * expected)


def test_another_method_is_expected_to_take_its_part_of_feas_time():
    stream = TaskStream("one", "sentence", (Task(("a",), [Example("t", "a")] * 12, [Example("x", "a")] * 3),))
    fea = plan_run("fea", stream, settings={"initial_epochs": 2, "replay_epochs": 3, "memory_per_class": 5})
    sequential = plan_run("sequential", stream)
    # FEA: 12 texts × (2 epochs + 1/3), 5 exemplars × 3, 3 tests / 3
    expected = 12 * (2 + 1 / 3) + 15 + 1
    assert expected_seconds(fea, fea, stream, 1.0) == pytest.approx(expected)
    assert expected_seconds(sequential, fea, stream, 1.0) == pytest.approx(
        relative_cost("sequential") * expected
    )


def test_a_step_is_measured_with_the_encoder_itself(tmp_path):
    encoder = tiny_encoder()
    save_encoder(encoder, tmp_path)
    train = [toy_example("sentence", topic, n) for topic in ("fruit", "place") for n in range(8)]
    stream = TaskStream("toy", "sentence", (Task(("fruit", "place"), train, []),))
    plan = plan_run("fea", stream, encoder=str(tmp_path))
    assert 0 < measure_step(plan, stream, device="cpu") < 1
