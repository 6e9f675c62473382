from collections import Counter

import torch

from repcl.methods.idbr.replay import SparseReplay, Step


def replay(
    new: int, exemplars: list[list[int]], *, batch_size: int = 8, every: int = 80, per_task: int = 8
) -> SparseReplay:
    return SparseReplay(
        [5] * new,
        exemplars,
        batch_size=batch_size,
        every=every,
        per_task=per_task,
        generator=torch.Generator().manual_seed(0),
    )


def old_tasks(tasks: int, each: int, *, start: int) -> list[list[int]]:
    return [list(range(start + task * each, start + (task + 1) * each)) for task in range(tasks)]


def test_without_exemplars_there_is_no_replay() -> None:
    steps = list(replay(200, []))
    assert len(steps) == 25
    assert not any(step.is_replay for step in steps)


def test_an_epoch_of_i_batches_makes_one_more_step_per_old_task_and_replay() -> None:
    steps = replay(200, old_tasks(3, 20, start=200))
    assert len(list(steps)) == len(steps) == 25 + 3 * (25 // 10)


def test_a_replay_has_eight_exemplars_of_each_old_task_beside_the_batch() -> None:
    steps = list(replay(80, old_tasks(2, 20, start=80)))
    numbers = [number for step in steps if step.is_replay for number in step.numbers]
    counted = Counter("new" if number < 80 else "first" if number < 100 else "second" for number in numbers)
    assert counted == {"new": 8, "first": 8, "second": 8}
    assert len(set(numbers)) == 24


def test_every_new_example_is_met_once_an_epoch() -> None:
    steps = replay(83, old_tasks(2, 20, start=83))
    for _ in range(2):
        met = [number for step in steps for number in step.numbers if number < 83]
        assert sorted(met) == list(range(83))


def test_an_old_task_with_few_exemplars_gives_all_it_has() -> None:
    steps = list(replay(80, [[80, 81, 82]]))
    replayed = [step for step in steps if step.is_replay]
    assert [len(step.numbers) for step in replayed] == [8, 3]
    assert {80, 81, 82} <= {number for step in replayed for number in step.numbers}


def test_the_period_counts_examples_whatever_the_batch_size() -> None:
    steps = list(replay(320, [[320]], batch_size=32))
    assert sum(320 in step.numbers for step in steps) == 320 // 80


def test_a_batch_longer_than_the_period_is_always_replayed() -> None:
    assert all(step.is_replay for step in replay(64, [[64]], batch_size=32, every=8))


def test_steps_are_drawn_anew_each_epoch() -> None:
    steps = replay(80, old_tasks(1, 20, start=80))
    assert list(steps) != list(steps)


def test_the_same_generator_gives_the_same_steps() -> None:
    one, other = (list(replay(80, old_tasks(1, 20, start=80))) for _ in range(2))
    assert one == other
    assert isinstance(one[0], Step)
