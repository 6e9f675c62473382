"""The command line: words typed become calls of the layers below; no tensors here."""

from repcl.cli.main import app, main

__all__ = ["app", "main"]
