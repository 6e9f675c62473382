"""Ways to learn tasks one after another. `METHODS` is the explicit table of them.

Importing the package loads no method and no torch: names other than the table's are looked up when used.
"""

from typing import TYPE_CHECKING

from repcl.lazy import lazy_names
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

__getattr__ = lazy_names(
    __name__,
    {
        "base": ["Method"],
        "build": ["build_method", "method_class"],
        "settings": ["MethodSettings", "make_settings"],
        "state": ["load_method", "save_method"],
    },
)
