"""repcl: a text classifier that keeps learning new classes and does not forget the old ones."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcl.classifier import ContinualClassifier as ContinualClassifier

__version__ = "0.1.0"
__all__ = ["ContinualClassifier", "__version__"]


def __getattr__(name: str) -> Any:
    # torch and transformers take seconds to import; `import repcl` alone does not need them
    if name == "ContinualClassifier":
        from repcl.classifier import ContinualClassifier

        return ContinualClassifier
    raise AttributeError(f"module 'repcl' has no attribute {name!r}")
