"""Variants: `name@variant` is a method with settings that make it another row of a table."""

import re
from collections.abc import Mapping
from typing import Any

from repcl.errors import UnknownName
from repcl.methods.build import method_class


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
    has_memory = "memory_per_class" in method_class(name).Settings.model_fields
    if prefix == "memory" and re.fullmatch("0|[1-9][0-9]{0,8}", number) and has_memory:
        return {"memory_per_class": int(number)}
    raise UnknownName(f"variant of {name}", variant, [*known, "memory-N"])
