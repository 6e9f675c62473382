"""The table of methods, and how one is put together with its encoder."""

from collections.abc import Mapping
from typing import Any

import torch

from repcl.data import InputKind
from repcl.errors import InvalidSetting, UnknownName
from repcl.methods.aca import ACA
from repcl.methods.base import BEFORE_THE_FIRST_TASK, Method, seeded
from repcl.methods.crecl import CRECL
from repcl.methods.crl import CRL
from repcl.methods.emar import EMAR
from repcl.methods.fea import FEA
from repcl.methods.idbr import IDBR
from repcl.methods.instant import Instant
from repcl.methods.joint import Joint
from repcl.methods.kcn import KCN
from repcl.methods.kdrk import KDRK
from repcl.methods.lda import LDA
from repcl.methods.ncm import NCM
from repcl.methods.refit import Refit
from repcl.methods.repcl import RepCL
from repcl.methods.rp_cre import RPCRE
from repcl.methods.sequential import Sequential
from repcl.methods.settings import make_settings
from repcl.model import Encoder, chosen_device, load_encoder

METHODS: dict[str, type[Method]] = {
    "repcl": RepCL,
    "fea": FEA,
    "emar": EMAR,
    "rp_cre": RPCRE,
    "crl": CRL,
    "crecl": CRECL,
    "idbr": IDBR,
    "kcn": KCN,
    "kdrk": KDRK,
    "aca": ACA,
    "sequential": Sequential,
    "joint": Joint,
    "instant": Instant,
    "ncm": NCM,
    "lda": LDA,
    "refit": Refit,
}


def method_class(name: str) -> type[Method]:
    """The class of a method by its name."""
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    return METHODS[name]


def build_method(
    name: str,
    kind: InputKind,
    *,
    encoder: str | Encoder,
    settings: Mapping[str, Any],
    seed: int = 0,
    expected_classes: int = 0,
    device: torch.device | str | None = None,
) -> Method:
    """A method that has learned nothing yet; its first weights depend on the seed only."""
    chosen = method_class(name)
    if kind not in chosen.kinds:
        raise InvalidSetting(
            f"Method {name!r} works on {', '.join(chosen.kinds)} input, not on {kind} input."
        )
    checked = make_settings(chosen.Settings, settings)
    place = chosen_device(device)
    with seeded(seed, BEFORE_THE_FIRST_TASK, place):
        if isinstance(encoder, str):
            encoder = load_encoder(encoder, chosen.readouts[kind](), device=place)
        method = chosen(encoder, checked, seed=seed, expected_classes=expected_classes)
    return method.eval()
