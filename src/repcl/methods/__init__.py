"""Ways to learn tasks one after another. `METHODS` is the explicit table of them.

Importing the package loads no method and no torch: names other than the table's are looked up when used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from repcl.methods.table import METHODS, TABLE, MethodEntry, method_entry, relative_cost

if TYPE_CHECKING:
    from repcl.methods.base import Method
    from repcl.methods.build import build_method, method_class
    from repcl.methods.settings import MethodSettings, make_settings
    from repcl.methods.state import load_method, save_method

__all__ = [
    "METHODS",
    "TABLE",
    "Method",
    "MethodEntry",
    "MethodSettings",
    "build_method",
    "load_method",
    "make_settings",
    "method_class",
    "method_entry",
    "relative_cost",
    "save_method",
]

_MODULES = {
    "Method": "base",
    "MethodSettings": "settings",
    "build_method": "build",
    "load_method": "state",
    "make_settings": "settings",
    "method_class": "build",
    "save_method": "state",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
