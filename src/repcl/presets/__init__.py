"""Shipped presets, as package data."""
