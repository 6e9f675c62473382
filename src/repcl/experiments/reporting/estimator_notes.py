"""What readers must know about how the values of a table were estimated."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from repcl.analysis.estimator_settings import EstimatorSettings

BySettings = Mapping[str, Sequence[EstimatorSettings]]
"""The settings that the analyzed rounds of each row were estimated with."""


def estimator_notes(rows: BySettings) -> list[str]:
    """How the values were estimated, where that is the same for all; else how they differ."""
    used = _distinct(rows)
    return [f"Estimated with {estimator_text(used[0])}."] if len(used) == 1 else caution_notes(rows)


def caution_notes(rows: BySettings) -> list[str]:
    """Where values cannot be compared with each other, or with what is read off unseen texts."""
    used = _distinct(rows)
    notes = []
    if len(used) > 1:
        ways = "; ".join(f"{_differing(one, used)} ({', '.join(_rows_with(one, rows))})" for one in used)
        notes.append(
            f"Not estimated alike, which alone makes values differ: {ways}. "
            "`repcl analyze OUT` with one set of options makes them alike."
        )
    in_sample = [name for name, settings in rows.items() if not all(one.is_held_out for one in settings)]
    if in_sample:
        notes.append(f"Judged by the texts that were fitted on, so too high: {', '.join(in_sample)}.")
    return notes


def estimator_text(settings: EstimatorSettings) -> str:
    """Critics, steps, and which texts they are judged by."""
    critics = f"{settings.critics} critic{'s' * (settings.critics > 1)}"
    steps = f"{'at most ' * (settings.patience is not None)}{settings.steps:,} steps"
    if settings.is_held_out:
        return f"{critics}, {steps}, fitted on one half of the texts and read off the other"
    return f"{critics}, {steps}, in-sample: read off the texts that were fitted on, so too high"


def _distinct(rows: BySettings) -> list[EstimatorSettings]:
    return list(dict.fromkeys(one for settings in rows.values() for one in settings))


def _differing(settings: EstimatorSettings, used: Sequence[EstimatorSettings]) -> str:
    """The settings whose values are not the same for all."""
    names = [one.name for one in fields(EstimatorSettings)]
    differing = [name for name in names if len({getattr(other, name) for other in used}) > 1]
    return ", ".join(f"{name} = {getattr(settings, name)}" for name in differing)


def _rows_with(settings: EstimatorSettings, rows: BySettings) -> list[str]:
    return [name for name, used in rows.items() if settings in used]
