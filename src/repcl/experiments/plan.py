"""What a run will be: method, variant, encoder and settings, settled before anything starts."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from repcl.data import TaskStream
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods import make_settings
from repcl.methods.build import method_class
from repcl.model.processes import processes
from repcl.presets import load_preset


@dataclass(frozen=True)
class RunPlan:
    """Everything that decides the numbers of a run."""

    method: str
    variant: str | None
    encoder: str
    preset: str
    settings: Mapping[str, Any]
    round: int

    @property
    def row(self) -> str:
        """The name of the run's folder: `method` or `method@variant`."""
        return f"{self.method}@{self.variant}" if self.variant else self.method

    def fingerprint(self, stream: TaskStream) -> str:
        """A hash of settings, data and mixed precision: equal hashes give equal numbers."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode())
        if processes().precision != "no":
            digest.update(processes().precision.encode())
        for task in stream.tasks:
            digest.update(json.dumps(task.classes).encode())
            for example in (*task.train, *task.test):
                digest.update(repr(example).encode())
        return digest.hexdigest()


def plan_run(
    method: str,
    stream: TaskStream,
    *,
    encoder: str | None = None,
    preset: str = "cpu",
    settings: Mapping[str, Any] | None = None,
) -> RunPlan:
    """Settle all settings of a run: defaults < preset < variant < the settings given here."""
    name, variant = split_variant(method)
    chosen = load_preset(preset)
    if stream.kind not in method_class(name).kinds:
        raise InvalidSetting(f"Method {name!r} does not take {stream.kind} input.")
    values = chosen.settings_for(name, stream.name, stream.kind)
    meant = variant_settings(name, variant)
    _refuse_contradictions(method, meant, settings or {})
    values |= meant
    values |= settings or {}
    checked = make_settings(method_class(name).Settings, values)
    return RunPlan(name, variant, encoder or chosen.encoder, preset, checked.model_dump(), stream.round)


def split_variant(method: str) -> tuple[str, str | None]:
    """`repcl@no-xmlm` -> (`repcl`, `no-xmlm`)."""
    name, _, variant = method.partition("@")
    return name, variant or None


def variant_settings(name: str, variant: str | None) -> Mapping[str, Any]:
    """What a variant changes; `memory-N` exists for every method with a memory."""
    known = method_class(name).variants
    if variant is None:
        return {}
    if variant in known:
        return known[variant]
    prefix, _, number = variant.rpartition("-")
    if (
        prefix == "memory"
        and number.isdigit()
        and "memory_per_class" in method_class(name).Settings.model_fields
    ):
        return {"memory_per_class": int(number)}
    raise UnknownName(f"variant of {name}", variant, [*known, "memory-N"])


def _refuse_contradictions(method: str, meant: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """A run bears the name of its variant, so it must have what makes the variant."""
    for key, value in meant.items():
        if given.get(key, value) != value:
            raise InvalidSetting(
                f"{method} means {key} = {value!r}, found {key} = {given[key]!r}: leave out the setting, "
                "or the variant."
            )
