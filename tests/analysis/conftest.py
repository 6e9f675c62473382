"""A small run as the analysis gets it: three tasks, drawn representations."""

from collections.abc import Callable

import numpy as np
import pytest

from repcl.analysis.snapshots import Snapshot, Snapshots


def moment(test: np.ndarray, probe: np.ndarray, within: np.ndarray) -> Snapshot:
    return Snapshot(test.astype(np.float32), probe.astype(np.float32), within, np.zeros(0, dtype=np.float32))


@pytest.fixture
def make_snapshots() -> Callable[..., Snapshots]:
    """Six classes in three tasks, 20 test and 10 probe texts each; `noise` per moment blurs the classes."""

    def make(noise: list[float], *, is_frozen: bool = False) -> Snapshots:
        generator = np.random.default_rng(0)
        means = generator.normal(size=(6, 8))
        labels, probe_labels = np.repeat(np.arange(6), 20), np.repeat(np.arange(6), 10)
        start = [generator.normal(size=(len(which), 8)) for which in (labels, probe_labels)]
        after = {}
        for done, spread in enumerate(noise):
            blur = start if is_frozen else [generator.normal(size=part.shape) for part in start]
            within = np.where(labels // 2 < done, labels, -1)
            after[done] = moment(
                means[labels] + spread * blur[0], means[probe_labels] + spread * blur[1], within
            )
        return Snapshots(
            classes=tuple("abcdef"),
            tasks=3,
            inputs=after[0].test,
            test_labels=labels,
            test_tasks=labels // 2,
            probe_labels=probe_labels,
            probe_tasks=probe_labels // 2,
            after=after,
        )

    return make
