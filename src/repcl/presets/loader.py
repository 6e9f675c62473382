"""Presets: named settings per method, input kind and benchmark, shipped with the package or a user's file."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from repcl.analysis.estimator_settings import EstimatorSettings, make_estimator
from repcl.data import InputKind
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods import METHODS
from repcl.methods.build import method_class
from repcl.model import DEFAULT_ENCODER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = ("cpu", "paper", "smoke")
TOP_LEVEL = {
    "analysis",
    "encoder",
    "extends",
    "max_train_per_class",
    "max_test_per_class",
    "all",
    "kinds",
    "benchmarks",
    "methods",
}


@dataclass(frozen=True)
class Preset:
    """Settings in layers; `settings_for` flattens them for one method on one benchmark."""

    name: str
    encoder: str = DEFAULT_ENCODER
    max_train_per_class: int | None = None
    max_test_per_class: int | None = None
    layers: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)

    @property
    def analysis(self) -> dict[str, Any]:
        """What the preset says about the estimator; later layers win."""
        return {key: value for tables in self.layers for key, value in tables.get("analysis", {}).items()}

    @property
    def estimator(self) -> EstimatorSettings:
        """How mutual information is estimated."""
        return make_estimator(self.analysis)

    def settings_for(self, method: str, benchmark: str, kind: InputKind) -> dict[str, Any]:
        """What the preset says about a method's settings; later layers win."""
        known = method_class(method).Settings.model_fields
        settings: dict[str, Any] = {}
        for tables in self.layers:
            of_kind = tables.get("kinds", {}).get(kind, {})
            of_benchmark = tables.get("benchmarks", {}).get(benchmark, {})
            for shared in (tables.get("all", {}), of_kind.get("all", {}), of_benchmark.get("all", {})):
                settings |= {key: value for key, value in shared.items() if key in known}
            for own in (tables.get("methods", {}), of_kind, of_benchmark):
                settings |= own.get(method, {})
        return settings


def load_preset(name: str) -> Preset:
    """A shipped preset by its name, or a preset file by its path."""
    if name in PRESETS:
        text = resources.files("repcl.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    elif Path(name).is_file():
        text = Path(name).read_text(encoding="utf-8")
    else:
        raise UnknownName("preset", name, [*PRESETS, "or the path of a TOML file"])
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSetting(f"Preset {name!r} is not valid TOML: {error}.") from error
    _check_names(tables)
    base = load_preset(tables["extends"]) if "extends" in tables else Preset(name)
    preset = Preset(
        name=name,
        encoder=tables.get("encoder", base.encoder),
        max_train_per_class=tables.get("max_train_per_class", base.max_train_per_class),
        max_test_per_class=tables.get("max_test_per_class", base.max_test_per_class),
        layers=(*base.layers, tables),
    )
    make_estimator(preset.analysis)  # wrong values are refused before runs are made, not after
    return preset


def parse_overrides(pairs: Iterable[str], methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """`KEY=VALUE` for every method that has the key, `METHOD.KEY=VALUE` for one; by method."""
    chosen = list(methods)
    overrides: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals:
            raise InvalidSetting(f"Expected --set KEY=VALUE, found {pair!r}.")
        method, _, key = path.rpartition(".")
        if method and method not in overrides:
            raise UnknownName("chosen method", method, chosen)
        targets = [method] if method else [name for name in chosen if key in _fields(name)]
        if not targets or key not in _fields(targets[0]):
            raise UnknownName("setting", key, sorted({field for name in chosen for field in _fields(name)}))
        for target in targets:
            overrides[target][key] = _value(text)
    return overrides


def _fields(method: str) -> Iterable[str]:
    return method_class(method).Settings.model_fields


def _value(text: str) -> Any:
    """TOML's idea of the value; anything else is a plain word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _check_names(tables: Mapping[str, Any]) -> None:
    for name in tables:
        if name not in TOP_LEVEL:
            raise UnknownName("preset entry", name, sorted(TOP_LEVEL))
    _check_analysis(tables.get("analysis", {}))
    groups = [tables, *tables.get("kinds", {}).values(), *tables.get("benchmarks", {}).values()]
    anywhere = {field for method in METHODS for field in _fields(method)}
    for key in (key for group in groups for key in group.get("all", {})):
        if key not in anywhere:
            raise UnknownName("setting", key, sorted(anywhere))
    for group in (tables.get("methods", {}), *groups[1:]):
        for method, settings in group.items():
            if method != "all":
                _check_settings(method, settings)


def _check_settings(method: str, settings: Mapping[str, Any]) -> None:
    for key in settings:
        if key not in _fields(method):
            raise UnknownName("setting", key, _fields(method))


def _check_analysis(settings: Any) -> None:
    if not isinstance(settings, Mapping):
        raise InvalidSetting(f"Expected [analysis] to be a table of settings, found {settings!r}.")
    for key in settings:
        if key not in EstimatorSettings.__dataclass_fields__:
            raise UnknownName("setting of the analysis", key, EstimatorSettings.__dataclass_fields__)
