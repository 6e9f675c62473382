"""Presets: named settings of methods, and the TOML files that are shipped."""

from repcl.presets.loader import PRESETS, Preset, load_preset, parse_overrides

__all__ = ["PRESETS", "Preset", "load_preset", "parse_overrides"]
