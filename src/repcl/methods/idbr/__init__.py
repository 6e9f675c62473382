"""IDBR: the method, its head, texts in two halves, and its sparse replay."""

from repcl.methods.idbr.method import IDBR

__all__ = ["IDBR"]
