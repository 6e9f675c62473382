"""How much a packed file of some size may unpack to, so that a small file cannot fill the memory."""

from dataclasses import dataclass
from pathlib import Path

from repcl.errors import InvalidData

# Texts that differ take bytes: what unpacks to more than these sizes has to be in proportion to the file.
UNPACKED_IN_ANY_CASE = 256 << 20
MOST_TIMES_UNPACKED = 200
ROWS_IN_ANY_CASE = 1_000_000


@dataclass(frozen=True)
class Allowance:
    """How much a file of some size may hold."""

    path: Path
    size: int

    @property
    def rows(self) -> int:
        """At most one a byte, or a million."""
        return max(ROWS_IN_ANY_CASE, self.size)

    @property
    def unpacked(self) -> int:
        """Bytes of all texts and pages."""
        return max(UNPACKED_IN_ANY_CASE, MOST_TIMES_UNPACKED * self.size)

    def refusal(self, what: str) -> InvalidData:
        """The sentence about a file that exceeds it."""
        return InvalidData(
            f"{self.path} has {self.size:,} bytes but unpacks to {what}, as no texts of a data set do: "
            "write the file again, or convert it to CSV where you trust it."
        )
