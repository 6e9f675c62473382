"""Presets: named settings per method, input kind and benchmark, shipped with the package or a user's file."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from repcl.analysis.estimator_settings import EstimatorSettings, make_estimator
from repcl.data import InputKind
from repcl.errors import InvalidSetting, UnknownName, listed, shortened
from repcl.methods import METHODS
from repcl.methods.build import method_class
from repcl.model import DEFAULT_ENCODER
from repcl.presets.toml_file import parse_toml, read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = ("cpu", "paper", "smoke")
LONGEST_OVERRIDE = 1000
LONGEST_CHAIN = 10
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

    def settings_for(
        self, method: str, benchmark: str, kind: InputKind, chosen: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What the preset says about a method's settings, and those of its parts; later layers win.

        Args:
            method: its name.
            benchmark: the name of the data.
            kind: of input.
            chosen: settings that were chosen already; on a method's parts they have the last word.
        """
        own_class = method_class(method)
        decided = {**self._said_of([method], benchmark, kind), **(chosen or {})}
        known = own_class.settings_class(decided).model_fields
        said = self._said_of([*own_class.parts_of(decided), method], benchmark, kind)
        return {key: value for key, value in said.items() if key in known}

    def known_settings(self, method: str) -> Collection[str]:
        """The settings that a method has with any of the parts that the preset chooses for it."""
        return _known_settings(method, self.layers)

    def _said_of(self, methods: Iterable[str], benchmark: str, kind: InputKind) -> dict[str, Any]:
        """All that is said about methods, whether they know it or not; later layers and methods win."""
        names = list(methods)
        settings: dict[str, Any] = {}
        for tables in self.layers:
            of_kind = tables.get("kinds", {}).get(kind, {})
            of_benchmark = tables.get("benchmarks", {}).get(benchmark, {})
            for shared in (tables.get("all", {}), of_kind.get("all", {}), of_benchmark.get("all", {})):
                settings |= shared
            for own in (tables.get("methods", {}), of_kind, of_benchmark):
                for name in names:
                    settings |= own.get(name, {})
        return settings


def load_preset(name: str) -> Preset:
    """A shipped preset by its name, or a preset file by its path."""
    return _load(name, ())


def _load(name: str, extended_by: tuple[str, ...]) -> Preset:
    tables = parse_toml(_text(name), f"Preset {shortened(name)}")
    _check_tables(tables)
    chain = (*extended_by, name)
    base = _base(tables["extends"], chain) if "extends" in tables else Preset(name)
    _check_names(tables, base)
    preset = Preset(
        name=name,
        encoder=tables.get("encoder", base.encoder),
        max_train_per_class=tables.get("max_train_per_class", base.max_train_per_class),
        max_test_per_class=tables.get("max_test_per_class", base.max_test_per_class),
        layers=(*base.layers, tables),
    )
    make_estimator(preset.analysis)  # wrong values are refused before runs are made, not after
    return preset


def _base(name: str, chain: tuple[str, ...]) -> Preset:
    """The preset that another one extends; a chain that never ends is shown."""
    if _place(name) in map(_place, chain) or len(chain) >= LONGEST_CHAIN:
        what = "itself" if len(chain) == 1 else "each other in a circle, or too many of them"
        raise InvalidSetting(
            f"Presets extend {what} ({listed(map(shortened, (*chain, name)))}): remove one `extends`."
        )
    return _load(name, chain)


def _place(name: str) -> object:
    return name if name in PRESETS else Path(os.path.realpath(name))


def _text(name: str) -> str:
    if name in PRESETS:
        return resources.files("repcl.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    path = Path(name)
    # what looks like no file is a mistyped name
    if path.suffix != ".toml" and len(path.parts) < 2 and not os.path.isfile(path):
        raise UnknownName("preset", name, [*PRESETS, "or the path of a TOML file"])
    return read_text(path, f"Preset {shortened(name)}")


def parse_overrides(
    pairs: Iterable[str], methods: Iterable[str], preset: Preset
) -> dict[str, dict[str, Any]]:
    """`KEY=VALUE` for every method that has the key, `METHOD.KEY=VALUE` for one; by method.

    Args:
        pairs: as they were typed.
        methods: those that were chosen.
        preset: may choose the parts of a method, whose settings it then has.
    """
    chosen = list(methods)
    overrides: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    given = [_parsed_pair(pair) for pair in pairs]
    fields: dict[str, dict[str, None]] = {}
    for name in chosen:
        typed = _fields(name, {key: value for method, key, value in given if method in ("", name)})
        fields[name] = dict.fromkeys([*typed, *preset.known_settings(name)])
    for method, key, value in given:
        if method and method not in overrides:
            raise UnknownName("chosen method", method, chosen)
        targets = [method] if method else [name for name in chosen if key in fields[name]]
        if not targets or key not in fields[targets[0]]:
            raise UnknownName("setting", key, sorted({field for name in chosen for field in fields[name]}))
        for target in targets:
            overrides[target][key] = value
    return overrides


def _parsed_pair(pair: str) -> tuple[str, str, Any]:
    """`METHOD.KEY=VALUE` in three parts; the first is empty where it is left out."""
    path, equals, text = pair.partition("=")
    if not equals:
        raise InvalidSetting(f"Expected --set KEY=VALUE, found {shortened(pair)}.")
    method, _, key = path.rpartition(".")
    return method, key, _value(text)


def _fields(method: str, chosen: Mapping[str, Any] | None = None) -> Collection[str]:
    return method_class(method).known_settings(chosen or {})


def _value(text: str) -> Any:
    """TOML's idea of the value; anything else is a plain word."""
    if len(text) > LONGEST_OVERRIDE:
        raise InvalidSetting(
            f"Expected --set KEY=VALUE with at most {LONGEST_OVERRIDE} characters, found {shortened(text)}."
        )
    try:
        found = tomllib.loads(f"value = {text}")
    except RecursionError as error:
        raise InvalidSetting(
            f"Expected a plain value, found {shortened(text)}: it is nested too deep."
        ) from error
    except ValueError:
        return text
    return found["value"] if len(found) == 1 else text  # more than one line would be more than one setting


def _check_tables(tables: Mapping[str, Any]) -> None:
    """Refuse what is of another type than the rest of this file takes it for."""
    for key in ("encoder", "extends"):
        if not isinstance(tables.get(key, ""), str):
            raise _wrong_type(key, "a text", tables[key])
    for key in ("max_train_per_class", "max_test_per_class"):
        limit = tables.get(key, 1)
        if type(limit) is not int or limit < 1:
            raise _wrong_type(key, "a whole number from 1", limit)
    for key in ("analysis", "all", "methods", "kinds", "benchmarks"):
        _require_table(f"[{key}]", tables.get(key, {}))
    for key in ("methods", "kinds", "benchmarks"):
        for name, inner in tables.get(key, {}).items():
            _require_table(f"[{key}.{name}]", inner)
    for group in _groups(tables):
        for method, settings in group.items():
            _require_table(f"{method} of an input kind or benchmark", settings)


def _groups(tables: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tables of each input kind and each benchmark."""
    return [*tables.get("kinds", {}).values(), *tables.get("benchmarks", {}).values()]


def _require_table(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise _wrong_type(name, "a table of settings", value)


def _wrong_type(name: str, expected: str, found: Any) -> InvalidSetting:
    return InvalidSetting(
        f"Expected {shortened(name)[1:-1]} to be {expected}, found {shortened(found)}: correct the preset."
    )


def _check_names(tables: Mapping[str, Any], base: Preset) -> None:
    _require_known("preset entry", tables, sorted(TOP_LEVEL))
    _require_known("input kind", tables.get("kinds", {}), get_args(InputKind))
    _require_known(
        "setting of the analysis", tables.get("analysis", {}), EstimatorSettings.__dataclass_fields__
    )
    anywhere = sorted({field for method in METHODS for field in _fields(method)})
    for group in (tables, *_groups(tables)):
        _require_known("setting", group.get("all", {}), anywhere)
    for group in (tables.get("methods", {}), *_groups(tables)):
        for method, settings in group.items():
            if method != "all":
                known = _known_settings(method, (*base.layers, tables))
                _require_known("setting", settings, known)


def _known_settings(method: str, layers: Iterable[Mapping[str, Any]]) -> Collection[str]:
    """The settings that a method has by itself, or with the parts that any of these tables chooses for it."""
    groups = [group for tables in layers for group in (tables.get("methods", {}), tables, *_groups(tables))]
    chosen = [group[name] for group in groups for name in ("all", method) if name in group]
    return dict.fromkeys(field for values in ({}, *chosen) for field in _fields(method, values))


def _require_known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)
