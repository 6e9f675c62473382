"""Frozen teachers and momentum copies."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from repcl.methods.repcl import follow, momentum_copy
from repcl.methods.retention import frozen_copy


def constant(value: float) -> nn.Linear:
    layer = nn.Linear(2, 3)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(value)
    return layer


def values(layer: nn.Module) -> list[float]:
    return sorted({value for parameter in layer.parameters() for value in parameter.flatten().tolist()})


def test_a_momentum_copy_moves_by_one_percent_of_the_way() -> None:
    momentum, source = momentum_copy(constant(1.0)), constant(0.0)
    follow(momentum, source, decay=0.99)
    assert values(momentum) == pytest.approx([0.99])
    follow(momentum, source, decay=0.99)
    assert values(momentum) == pytest.approx([0.9801])


def test_after_n_steps_a_copy_has_come_one_minus_decay_to_the_n() -> None:
    momentum, source = momentum_copy(constant(0.0)), constant(1.0)
    for _ in range(100):
        follow(momentum, source, decay=0.99)
    assert values(momentum) == pytest.approx([0.63397], abs=1e-5)


@pytest.mark.parametrize(("decay", "expected"), [(0.0, 5.0), (1.0, 1.0)])
def test_the_extremes_are_to_jump_and_to_stand_still(decay: float, expected: float) -> None:
    momentum = momentum_copy(constant(1.0))
    follow(momentum, constant(5.0), decay=decay)
    assert values(momentum) == [expected]


def test_following_leaves_the_source_alone() -> None:
    source = constant(1.0)
    follow(momentum_copy(constant(0.0)), source, decay=0.5)
    assert values(source) == [1.0]


@pytest.mark.parametrize("make", [frozen_copy, momentum_copy])
def test_a_copy_takes_no_gradient(make: Callable[[nn.Module], nn.Module]) -> None:
    copied = make(constant(1.0))
    assert not any(parameter.requires_grad for parameter in copied.parameters())
    assert not copied(torch.ones(1, 2)).requires_grad


@pytest.mark.parametrize("make", [frozen_copy, momentum_copy])
def test_a_copy_has_weights_of_its_own(make: Callable[[nn.Module], nn.Module]) -> None:
    source = constant(1.0)
    copied = make(source)
    with torch.no_grad():
        source.weight.fill_(7.0)
    assert values(copied) == [1.0]


@pytest.mark.parametrize("make", [frozen_copy, momentum_copy])
def test_copying_leaves_the_source_trainable(make: Callable[[nn.Module], nn.Module]) -> None:
    source = constant(1.0)
    make(source)
    assert all(parameter.requires_grad for parameter in source.parameters())


def test_a_teacher_is_in_evaluation_mode_and_a_momentum_copy_keeps_dropout() -> None:
    source = nn.Dropout()
    assert not frozen_copy(source.train()).training
    assert momentum_copy(source.eval()).training
