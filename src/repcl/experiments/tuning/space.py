"""Which settings of a method are searched: between its own ranges, or those of a user's file."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args

from repcl.data import InputKind
from repcl.errors import InvalidSetting, UnknownName, shortened
from repcl.methods import METHODS, Method, make_settings
from repcl.methods.build import method_class
from repcl.methods.search_ranges import Choices, Dimension, Range
from repcl.methods.settings import ClassifierSettings
from repcl.model import READOUTS
from repcl.presets.toml_file import parse_toml, read_text

Space = Mapping[str, Dimension]


def load_space(method: str, path: Path | None = None, settings: Mapping[str, Any] | None = None) -> Space:
    """The settings of a method to search, from a file or as the method itself names them.

    In a file the table `all` holds for every method that has the setting, `methods.M` for one.

    Args:
        method: its name.
        path: of the file.
        settings: the method's own; they decide which parts it has, and so what can be searched.
    """
    searched = method_class(method).settings_class(settings or {})
    if path is None:
        return searched.search
    source, fields = str(path), searched.model_fields
    tables = parse_toml(read_text(path, source), source)
    known = {name: one.Settings.model_fields for name, one in METHODS.items()}
    _check_names(tables, source, known | {method: fields})
    entries = {key: entry for key, entry in tables.get("all", {}).items() if key in fields}
    entries |= tables.get("methods", {}).get(method, {})
    space = {
        key: _dimension(entry, f"{key} in {source}", fields[key].annotation) for key, entry in entries.items()
    }
    for dimension in space.values():
        for key in dimension.unless if isinstance(dimension, Range) else ():
            if key not in fields:
                raise UnknownName(f"setting of {method}", key, fields)
    return space


def fit_space(
    space: Space, method: str, settings: Mapping[str, Any], *, kind: InputKind, fixed: Collection[str]
) -> Space:
    """The space without what is fixed or idle, holding the preset's own values, with every end checked.

    Args:
        space: what could be searched.
        method: whose settings they are.
        settings: the preset's own settings of the method.
        kind: of input.
        fixed: settings that keep their value.
    """
    checked = method_class(method).settings_class(settings)
    fitted: dict[str, Dimension] = {}
    for key, dimension in space.items():
        if key in fixed or (isinstance(dimension, Range) and dimension.is_idle(settings)):
            continue
        if key == "head_dropout" and not _has_head_dropout(method, settings, kind):
            continue
        for value in dimension.ends:
            make_settings(checked, {**settings, key: value})
        if isinstance(dimension, Range) and not _is_number(settings[key]):
            raise InvalidSetting(
                f"{key} is {settings[key]!r} in the preset and cannot start a range: give it a number there, "
                "or name a list of values."
            )
        fitted[key] = dimension.including(settings[key])
    if not fitted:
        raise InvalidSetting(
            f"Nothing to search for {method}: choose another method, name settings in a --space file, "
            "or fix fewer of them."
        )
    return fitted


def _has_head_dropout(method: str, settings: Mapping[str, Any], kind: InputKind) -> bool:
    """Whether the classifier has a hidden layer for its dropout; the shared one has none for some kinds."""
    parts = [method, *method_class(method).parts_of(settings)]
    trained = method_class(parts[-1])  # of several parts, the last one has the classifier
    has_shared_head = issubclass(trained.Settings, ClassifierSettings) and trained.new_head is Method.new_head
    return not has_shared_head or READOUTS[kind].head_has_hidden_layer


def _check_names(tables: Mapping[str, Any], source: str, known: Mapping[str, Collection[str]]) -> None:
    for name, table in tables.items():
        if name not in ("all", "methods"):
            raise UnknownName(f"table of {source}", name, ["all", "methods"])
        for inner in [table, *(table.values() if name == "methods" and isinstance(table, dict) else ())]:
            if not isinstance(inner, dict):
                found = shortened(inner)
                raise InvalidSetting(f"{name} in {source} must be a table of settings, found {found}.")
    anywhere = {field for fields in known.values() for field in fields}
    for key in tables.get("all", {}):
        if key not in anywhere:
            raise UnknownName("setting", key, sorted(anywhere))
    for method, entries in tables.get("methods", {}).items():
        method_class(method)  # an unknown one is refused
        for key in entries:
            if key not in known[method]:
                raise UnknownName(f"setting of {method}", key, known[method])


def _dimension(entry: Any, where: str, annotation: Any) -> Dimension:
    """A list of values, or a table with the ends of a range."""
    if isinstance(entry, list) and entry and not any(isinstance(value, list | dict) for value in entry):
        return Choices(tuple(entry))
    known = {"low", "high", "log", "unless"}
    if not isinstance(entry, dict) or not {"low", "high"} <= entry.keys() <= known:
        raise InvalidSetting(
            f"{where} must be a list of values or {{ low, high, log, unless }}, found {entry!r}."
        )
    low, high, is_log, unless = entry["low"], entry["high"], entry.get("log", False), entry.get("unless", {})
    if not isinstance(unless, dict):
        raise InvalidSetting(f"{where} needs settings with a value as unless, found {unless!r}.")
    if not _is_number(low) or not _is_number(high) or not isinstance(is_log, bool):
        raise InvalidSetting(
            f"{where} needs numbers as low and high and true or false as log, found {entry!r}."
        )
    if low >= high or (is_log and low <= 0):
        raise InvalidSetting(f"{where} needs low < high, and low above 0 with log, found {entry!r}.")
    return Range(low, high, is_log, int in (annotation, *get_args(annotation)), unless)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
