"""A run to be made: which method, on which stream, with which options; and what it resolves to."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from repcl.benchmarks import StreamSpec, load_stream
from repcl.data import InputKind, TaskStream
from repcl.errors import InvalidSetting, require_whole
from repcl.experiments.runs.result import Result
from repcl.experiments.runs.store import RunFolder, RunStore
from repcl.experiments.runs.tracking import check_trackers
from repcl.methods import MethodSettings, make_settings
from repcl.methods.build import method_class
from repcl.methods.variants import split_variant, variant_settings
from repcl.model import ALONE, Encoder, Processes, check_encoder
from repcl.presets import load_preset

_load_once = lru_cache(maxsize=2)(load_stream)  # runs on the same data stand together


class InputNotTaken(InvalidSetting):
    """A method does not work on the kind of input that the stream holds."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is made.

    Attributes:
        encoder: a name, folder, Hugging Face id or a ready encoder; the preset's if not given.
        preset: where settings come from.
        settings: what to change about them.
        out: folder for results; nothing is written without.
        fresh: start over even if there is something to resume.
        save_representations: for `repcl analyze`.
        device: the best one present if not given.
        threads: of torch; one gives the same bits everywhere.
        report_to: names of trackers.
        command: what the user typed, for the record.
        processes: those that make the run together, with the precision and the parts they encode in.
        with_parts: whether a duet also writes the rows that come out of its training at no further cost.
    """

    encoder: str | Encoder | None = None
    preset: str = "cpu"
    settings: Mapping[str, Any] = field(default_factory=dict)
    out: Path | None = None
    fresh: bool = False
    save_representations: bool = False
    device: torch.device | str | None = None
    threads: int = 1
    report_to: tuple[str, ...] = ()
    command: str | None = None
    processes: Processes = ALONE
    with_parts: bool = False

    def __post_init__(self) -> None:
        require_whole("threads", self.threads, least=1)


@dataclass(frozen=True)
class RunPlan:
    """Everything but the data that decides the numbers of a run."""

    method: str
    variant: str | None
    encoder: str
    preset: str
    settings: Mapping[str, Any]
    round: int

    @property
    def row(self) -> str:
        """The name of the run's row in tables: `method` or `method@variant`."""
        return f"{self.method}@{self.variant}" if self.variant else self.method


@dataclass(frozen=True)
class RunSpec:
    """One run to be made.

    Attributes:
        method: its name, with `@variant` if wanted.
        stream: what it learns; a loaded stream is taken as it is.
        options: how it is made.
    """

    method: str
    stream: StreamSpec | TaskStream
    options: RunOptions = field(default_factory=RunOptions)

    def load_stream(self) -> TaskStream:
        """What is learned; the last streams loaded in this process are not read again."""
        return self.stream if isinstance(self.stream, TaskStream) else _load_once(self.stream)

    def resolve(self) -> "ResolvedRun":
        """Settle all that decides the run; what is wrong with it is found here, before it starts."""
        stream, options = self.load_stream(), self.options
        given = options.encoder
        plan = plan_run(
            self.method,
            stream,
            encoder=given.name if isinstance(given, Encoder) else given,
            preset=options.preset,
            settings=options.settings,
        )
        if not isinstance(given, Encoder):
            check_encoder(plan.encoder)
        check_trackers(options.report_to, options.out)
        folder = None
        if options.out is not None:
            folder = RunStore(options.out).folder(stream.name, plan.row, plan.round)
        fingerprint = _fingerprint(plan, stream, options.processes)
        run = ResolvedRun(self, stream.name, plan, folder, fingerprint)
        return replace(run, finished=run.earlier())


@dataclass(frozen=True)
class ResolvedRun:
    """A run with all its settings settled; it is small, and travels to other processes.

    Attributes:
        spec: what was asked for.
        benchmark: name of the data.
        plan: method, encoder and settings.
        folder: where it keeps its files, if it keeps any.
        fingerprint: a hash of plan, data and precision: equal hashes give equal numbers.
        finished: the result, if the run was made before.
    """

    spec: RunSpec
    benchmark: str
    plan: RunPlan
    folder: RunFolder | None
    fingerprint: str
    finished: Result | None = None

    @property
    def options(self) -> RunOptions:
        """How it is made."""
        return self.spec.options

    @property
    def stream(self) -> TaskStream:
        """What it learns."""
        return self.spec.load_stream()

    @property
    def is_shared(self) -> bool:
        """Whether several processes make it together, so that an error in one has to end them all."""
        return self.options.processes.number > 1

    @property
    def title(self) -> str:
        """How the run is called in overviews."""
        return f"{self.benchmark} {self.plan.row} round {self.plan.round}"

    @property
    def error_log(self) -> Path:
        """Where its traceback is kept if it fails."""
        name = self.title.replace(" ", "-").replace(os.sep, "-")
        return (self.options.out or Path()) / f"{name}.error.txt"

    def earlier(self) -> Result | None:
        """The result of the same run made before; a folder with another run in it is refused."""
        if self.folder is None or self.options.fresh or self.finished is not None:
            return self.finished
        return self.folder.earlier(self.fingerprint, save_representations=self.options.save_representations)


def plan_run(
    method: str,
    stream: TaskStream,
    *,
    encoder: str | None = None,
    preset: str = "cpu",
    settings: Mapping[str, Any] | None = None,
) -> RunPlan:
    """Settle all settings of a run: defaults < preset < variant < the settings given here."""
    name, variant = split_variant(method)
    settled = settle_settings(method, stream.name, stream.kind, preset=preset, settings=settings)
    encoder = encoder or load_preset(preset).encoder
    return RunPlan(name, variant, encoder, preset, settled.model_dump(), stream.round)


def settle_settings(
    method: str,
    benchmark: str,
    kind: InputKind,
    *,
    preset: str = "cpu",
    settings: Mapping[str, Any] | None = None,
) -> MethodSettings:
    """All settings of a row on data of that name and kind: defaults < preset < variant < those given here."""
    name, variant = split_variant(method)
    chosen, kinds = load_preset(preset), method_class(name).kinds
    if kind not in kinds:
        raise InputNotTaken(f"{method} takes {' and '.join(kinds)} input, not {kind}.")
    meant = variant_settings(name, variant)
    _refuse_contradictions(method, meant, settings or {})
    wanted = {**meant, **(settings or {})}
    values = chosen.settings_for(name, benchmark, kind, wanted) | wanted
    made = make_settings(method_class(name).settings_class(values), values)
    return method_class(name).resolved(made, kind)


def _refuse_contradictions(method: str, meant: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """A run bears the name of its variant, so it must have what makes the variant."""
    for key, value in meant.items():
        if given.get(key, value) != value:
            raise InvalidSetting(
                f"{method} means {key} = {value!r}, found {key} = {given[key]!r}: leave out the setting, "
                "or the variant."
            )


def _fingerprint(plan: RunPlan, stream: TaskStream, processes: Processes) -> str:
    decisive = {**asdict(plan), "data": stream.digest, "precision": processes.precision}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
