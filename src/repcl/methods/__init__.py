"""Ways to learn tasks one after another. `METHODS` is the explicit table of them."""

from repcl.methods.base import Method
from repcl.methods.build import METHODS, build_method
from repcl.methods.settings import MethodSettings, make_settings
from repcl.methods.state import load_method, save_method

__all__ = [
    "METHODS",
    "Method",
    "MethodSettings",
    "build_method",
    "load_method",
    "make_settings",
    "save_method",
]
