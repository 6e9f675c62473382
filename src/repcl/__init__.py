"""repcl: a text classifier that keeps learning new classes and does not forget the old ones."""

__version__ = "0.1.0"
