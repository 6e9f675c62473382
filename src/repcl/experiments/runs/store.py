"""Where runs keep their files, `OUT/BENCHMARK/METHOD[@variant]/round-R/`; no other module knows this."""

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from filelock import FileLock, Timeout
from pydantic import ConfigDict, TypeAdapter

from repcl.data.names import inside
from repcl.errors import MissingData, RepclError, ResultMismatch
from repcl.evaluation import TestedExample, read_predictions, score_predictions, write_predictions
from repcl.experiments.runs.result import Result, read_result
from repcl.experiments.runs.wrong_texts import WrongText, read_wrong_texts, write_wrong_texts
from repcl.files import (
    PART,
    is_plain,
    parse_json,
    part_of,
    read_plain,
    remove_quietly,
    settle,
    write_whole,
)

if TYPE_CHECKING:
    import torch

    from repcl.experiments.representations.analysis import RunAnalysis
    from repcl.methods import Method
    from repcl.model import Encoder, Processes

RESULT, PREDICTIONS, ANALYSIS = "result.json", "predictions.jsonl.gz", "analysis.json"
UNPACKED_PREDICTIONS = "predictions.jsonl"  # in runs of earlier versions
WRONG_TEXTS = "wrong-texts.json.gz"
REPRESENTATIONS, TRACKING = "representations", "tracking"
PROGRESS, LOCK = "progress.json", ".lock"
LARGEST_PROGRESS = 1 << 30
"""Bytes; a prediction of every text after every task takes a few of them."""
TENSORBOARD, WANDB = "tensorboard", "wandb"
WANDB_RUN = "wandb-run.txt"
"""Holds the identity by which a run that resumes is the same run there."""
EVENTS = re.compile(r"events\.out\.tfevents\..+|hparams\.yml")
MOMENT = re.compile(r"\d{9,}(\.\d+)?")
"""What TensorBoard calls its files, and the folders of settings that it begins at some moment."""
CHECKPOINT = re.compile(r"checkpoint-(\d{1,6})")
SAVED = re.compile(r"after-\d{1,6}\.safetensors")
DRAWN = re.compile(r"analysis(-authors)?(-(fitting-[a-z-]+|spectrum|drift|probes-\d+)\.(svg|png)|\.json)")
OWN_FILES = "|".join(map(re.escape, (RESULT, PREDICTIONS, UNPACKED_PREDICTIONS, WRONG_TEXTS)))
UNFINISHED = re.compile(
    rf"{re.escape(PART)}[0-9a-f]{{12}}-({OWN_FILES}|{CHECKPOINT.pattern}|{SAVED.pattern})"
)
"""What files and checkpoints are called that a process was writing when it ended."""
NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}  # some shared file systems have none
METRICS = (
    "accuracy_matrix",
    "accuracy_after_task",
    "final_accuracy",
    "forgetting_rate",
    "average_incremental_accuracy",
    "backward_transfer",
    "forgetting_rate_f1",
)


@dataclass
class Progress:
    """Measurements of the tasks finished so far.

    Attributes:
        fingerprint: of the run they belong to.
        predictions: after each task, the predicted class of every test example seen so far.
        seconds: of each task, by stage.
        processor_seconds: those of the processor.
        embeddings_read: from a folder that an earlier run had filled.
        saves_representations: whether the run saves them, from its first task on.
        steps: of optimization, made so far.
        others: the same predictions of rows that are made beside the run, by name.
    """

    __pydantic_config__: ClassVar = ConfigDict(allow_inf_nan=False)

    fingerprint: str
    predictions: list[list[str | None]] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    processor_seconds: list[dict[str, float]] = field(default_factory=list)
    embeddings_read: int = 0
    saves_representations: bool = False
    steps: int = 0
    others: dict[str, list[list[str | None]]] = field(default_factory=dict)


class RunStore:
    """All runs of an output folder; each result is read once for each store.

    Args:
        path: an output folder, or a folder in it down to that of a single run.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def folder(self, benchmark: str, row: str, round: int) -> "RunFolder":
        """The folder of one run, made or not; names that would lead elsewhere are refused."""
        return RunFolder(inside(self.path, benchmark, row, f"round-{round}"))

    def runs(self) -> list["StoredRun"]:
        """The finished runs, by benchmark, method and round."""
        runs = [run for run in self._found if self._is_in_place(run)]
        return sorted(runs, key=lambda run: (run.result.benchmark, run.result.row, run.result.round))

    def some_runs(self, command: str) -> list["StoredRun"]:
        """The finished runs; without any, an error names a command that makes some."""
        runs = self.runs()
        if not runs:
            raise MissingData(f"No finished run in {self.path}; `{command}` makes some.")
        return runs

    def notes(self) -> list[str]:
        """Which finished runs do not count, as their folders have other names: a copy is not a round more."""
        return [
            f"{run.folder} does not count: its name is not that of {run.result.benchmark}, "
            f"{run.result.row}, round {run.result.round}."
            for run in self._found
            if not self._is_in_place(run)
        ]

    def _is_in_place(self, run: "StoredRun") -> bool:
        """Whether the folders above a run, as far as they are below this one, are named as it is."""
        names = run.folder.relative_to(self.path).parts
        own = (run.result.benchmark, run.result.row, f"round-{run.result.round}")
        return names == own[len(own) - len(names) :]

    @cached_property
    def _found(self) -> list["StoredRun"]:
        levels = ("*/*/round-*/", "*/round-*/", "round-*/", "")
        paths = {file for level in levels for file in self.path.glob(f"{level}{RESULT}")}
        return [StoredRun(path.parent, read_result(path)) for path in sorted(paths)]


@dataclass(frozen=True)
class StoredRun:
    """A finished run: its folder and its result; the rest is read when it is asked for."""

    folder: Path
    result: Result

    @property
    def predictions_file(self) -> Path:
        """Where its predictions stand."""
        return self.folder / Path(self.result.predictions).name

    @property
    def has_predictions(self) -> bool:
        """Whether they are stored."""
        return os.path.lexists(self.predictions_file)

    def predictions(self) -> list[TestedExample]:
        """What was predicted, empty if not stored; those of a large grid do not all fit in memory."""
        return read_predictions(self.predictions_file) if self.has_predictions else []

    def wrong_texts(self) -> list[WrongText]:
        """Test texts that it answered wrong in the end, as far as they were kept."""
        return read_wrong_texts(self.folder / WRONG_TEXTS, self.result.fingerprint)

    def analysis(self) -> "RunAnalysis | None":
        """Its analysis, if one of this very run was made."""
        from repcl.experiments.representations.analysis import read_analysis

        found = read_analysis(self.folder / ANALYSIS)
        return found if found is not None and found.fingerprint == self.result.fingerprint else None

    def verify(self, tested: Sequence[TestedExample]) -> None:
        """Recompute every metric from the predictions, which are given; one that differs is an error."""
        stored = self.result
        if len(tested) != stored.data.test:
            self._refuse("number of test examples", stored.data.test, len(tested))
        scores = score_predictions(tested, len(stored.class_order))
        computed = {metric: getattr(scores, metric) for metric in METRICS}
        computed["accuracy_matrix"] = scores.accuracy_matrix.as_lists()
        for metric, value in computed.items():
            if not _agree(getattr(stored, metric), value):
                self._refuse(metric, getattr(stored, metric), value)

    def _refuse(self, metric: str, stored: Any, computed: Any) -> None:
        raise ResultMismatch(
            f"{self.folder / RESULT} says {metric} = {_short(stored)}, its predictions give "
            f"{_short(computed)}: one of the two files was changed; run it again with --fresh."
        )


@dataclass(frozen=True)
class RunFolder:
    """The files of one run, from its first checkpoint to its result."""

    path: Path

    @property
    def representations(self) -> Path:
        """Where it saves representations."""
        return self.path / REPRESENTATIONS

    @property
    def tracking(self) -> Path:
        """Where trackers write."""
        return self.path / TRACKING

    @property
    def is_finished(self) -> bool:
        """Whether its result is there."""
        return (self.path / RESULT).exists()

    def earlier(self, fingerprint: str, *, save_representations: bool = False) -> Result | None:
        """The result of an earlier run, if there is one; other settings or data are refused."""
        result = self._result() if self.is_finished else None
        found = result or self.progress()
        if found is None:
            return None
        if found.fingerprint != fingerprint:
            raise ResultMismatch(
                f"{self.path} holds a run with other settings or other data; use --fresh or another --out."
            )
        has_saved = (
            found.saves_representations if isinstance(found, Progress) else found.representations is not None
        )
        if save_representations and not has_saved:
            raise ResultMismatch(
                f"{self.path} holds a run made without --save-representations; use --fresh or another --out."
            )
        return result

    @contextmanager
    def lock(self, *, waiting: Callable[[str], None] | None) -> Iterator[bool]:
        """Let one process at a time make the run; another one waits, and then finds it finished.

        Args:
            waiting: is told once, in words, if another process is making the run; without it, nobody waits.

        Yields:
            Whether the run may be made here: False if another process is making it and nobody waits.
        """
        self._refuse_foreign()
        self.path.mkdir(parents=True, exist_ok=True)
        lock, is_ours = FileLock(self.path / LOCK, fallback_to_soft=False), True
        try:
            with suppress(Timeout):
                lock.acquire(timeout=0)
            if not lock.is_locked and waiting is not None:
                waiting(f"Waiting for another process that makes the run in {self.path}.")
                lock.acquire()
            is_ours = lock.is_locked
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        try:
            if lock.is_locked:
                self._sweep()
            yield is_ours
        finally:
            if lock.is_locked and self.is_finished:
                remove_quietly(self.path / LOCK)  # whoever waits for it finds the result
            lock.release()

    def finish(
        self, result: Result, tested: Iterable[TestedExample], wrong: Iterable[WrongText] = ()
    ) -> None:
        """Write predictions and wrong texts, then the result; the checkpoints are not needed any more."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_predictions(self.path / PREDICTIONS, tested)
        write_wrong_texts(self.path / WRONG_TEXTS, result.fingerprint, wrong)
        write_whole(self.path / RESULT, result.to_json())
        with suppress(OSError):  # the run is made; what is left of it here is swept up the next time
            self._remove_checkpoints()

    def start_over(self) -> None:
        """Forget an earlier run: result, checkpoints, analyses with their figures, and all it saved."""
        (self.path / RESULT).unlink(missing_ok=True)  # first, for it must not speak of what is gone
        self._remove_checkpoints()
        remove_named(self.path, DRAWN)
        remove_named(self.path, re.compile(OWN_FILES))
        remove_representations(self.representations)
        remove_tracked(self.tracking)

    def files(self) -> dict[str, bytes]:
        """The content of all files, by their path in the folder."""
        found = (path for path in self.path.rglob("*") if path.is_file())
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in found}

    def lay_down(self, files: Mapping[str, bytes]) -> None:
        """Write the files of a run made elsewhere as if it had been made here; its result comes last."""
        remove_representations(self.representations)
        for name in sorted(files, key=lambda name: name == RESULT):
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, files[name])
        self._remove_checkpoints()

    def progress(self) -> Progress | None:
        """What the newest checkpoint says about its run."""
        newest = self._newest_checkpoint()
        if newest is None:
            return None
        try:
            content = parse_json(read_plain(newest / PROGRESS, LARGEST_PROGRESS))
            return TypeAdapter(Progress).validate_python(content)
        except (OSError, ValueError) as error:
            raise ResultMismatch(f"{newest} is damaged; use --fresh to run it again.") from error

    def save_checkpoint(self, method: "Method", name: str, progress: Progress) -> None:
        """Write a checkpoint beside the old one, switch to it by one rename, then drop the old one."""
        from repcl.methods import save_method

        final = self.path / f"checkpoint-{len(progress.predictions)}"
        part = part_of(final)
        try:
            save_method(method, name, part)
            (part / PROGRESS).write_text(json.dumps(asdict(progress), ensure_ascii=False), encoding="utf-8")
            for file in part.iterdir():
                settle(file)
            os.rename(part, final)
        except BaseException:
            _remove_checkpoint(part)
            raise
        with suppress(OSError):
            self._remove_checkpoints(but=final)

    def load_checkpoint(
        self, encoder: "str | Encoder", device: "torch.device | str | None", processes: "Processes"
    ) -> "tuple[Method, Progress] | None":
        """The method and the measurements of the newest checkpoint, if there is one."""
        from repcl.methods import load_method

        newest, progress = self._newest_checkpoint(), self.progress()
        if newest is None or progress is None:
            return None
        try:
            return load_method(newest, encoder=encoder, device=device, processes=processes), progress
        except RepclError:
            raise
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ResultMismatch(
                f"{newest} is damaged ({type(error).__name__}); use --fresh to run it again."
            ) from error

    def _result(self) -> Result:
        """The result, checked against the predictions beside it as a report checks it."""
        run = StoredRun(self.path, read_result(self.path / RESULT))
        if run.has_predictions:
            run.verify(run.predictions())
        return run.result

    def _newest_checkpoint(self) -> Path | None:
        return max(self._checkpoints(), key=lambda path: int(path.name.partition("-")[2]), default=None)

    def _checkpoints(self) -> list[Path]:
        """Folders that `save_checkpoint` made; links, other names and other contents are somebody else's."""
        return [path for path in self._folders(CHECKPOINT) if os.path.lexists(path / PROGRESS)]

    def _folders(self, names: re.Pattern[str]) -> list[Path]:
        found = self.path.iterdir() if self.path.is_dir() else ()
        return [path for path in found if names.fullmatch(path.name) and is_folder(path)]

    def _remove_checkpoints(self, *, but: Path | None = None) -> None:
        """Drop checkpoints; those half written or half removed, too."""
        for path in (*self._folders(CHECKPOINT), *self._folders(UNFINISHED)):
            if path != but:
                _remove_checkpoint(path)

    def _sweep(self) -> None:
        """Remove what a process that was killed left, while no other one can be writing."""
        with suppress(OSError):
            for folder in (self.path, self.representations):
                remove_named(folder, UNFINISHED)
            newest = None if self.is_finished else self._newest_checkpoint()
            self._remove_checkpoints(but=newest)

    def _refuse_foreign(self) -> None:
        """A link inside a run's folder leads to files that are not the run's, and its lock is empty."""
        own = (RESULT, PREDICTIONS, UNPACKED_PREDICTIONS, ANALYSIS, LOCK, REPRESENTATIONS, TRACKING)
        tracked = (self.tracking / name for name in (TENSORBOARD, WANDB, WANDB_RUN))
        for path in [self.path, *(self.path / name for name in own), *tracked]:
            if path.is_symlink():
                raise ResultMismatch(
                    f"Expected no link in a folder of runs, found {path}: remove it, or use another --out."
                )
        lock = self.path / LOCK
        if lock.exists() and (not lock.is_file() or lock.stat().st_size):
            raise ResultMismatch(
                f"Expected an empty file at {lock}, or none, found something else: remove it, or use another "
                "--out."
            )


def remove_representations(folder: Path) -> None:
    """Remove the representations that a run saved; a folder that holds something else as well stays."""
    if is_folder(folder):
        for names in (SAVED, UNFINISHED):
            remove_named(folder, names)
        with suppress(OSError):
            folder.rmdir()


def remove_tracked(folder: Path) -> None:
    """Remove what TensorBoard shows of a run, and its identity at Weights & Biases; their own files stay."""
    remove_named(folder, re.compile(re.escape(WANDB_RUN)))
    board = folder / TENSORBOARD
    inside = [path for path in board.iterdir() if MOMENT.fullmatch(path.name)] if is_folder(board) else []
    for part in (*inside, board):
        remove_named(part, EVENTS)
    for part in (*inside, board, folder):
        with suppress(OSError):  # a folder that holds something else as well stays
            part.rmdir()


def remove_named(folder: Path, names: re.Pattern[str]) -> None:
    """Remove the plain files of a folder that have such names."""
    for path in folder.iterdir() if is_folder(folder) else ():
        if names.fullmatch(path.name) and is_plain(path):
            path.unlink()


def is_folder(path: Path) -> bool:
    """Whether there is a folder, not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _remove_checkpoint(path: Path) -> None:
    """Remove the files of a checkpoint; what else may be in the folder stays, and then the folder too.

    The file without which it is no checkpoint goes first: one that is half removed is never read.
    """
    from repcl.methods.state import MEMORY, STATE, WEIGHTS

    own = (PROGRESS, STATE, WEIGHTS, MEMORY)
    there = set(os.listdir(path)) if path.is_dir() else set()
    if PROGRESS not in there and not there <= {*own}:
        return  # somebody's own folder
    for name in own:
        (path / name).unlink(missing_ok=True)
    with suppress(OSError):
        path.rmdir()


def _agree(stored: Any, computed: Any) -> bool:
    """Equal numbers, but for what another machine may round differently; lists entry by entry."""
    if isinstance(stored, list | tuple) and isinstance(computed, list | tuple):
        return len(stored) == len(computed) and all(map(_agree, stored, computed))
    if isinstance(stored, float) and isinstance(computed, float):
        return isclose(stored, computed, abs_tol=1e-9)
    return bool(stored == computed)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
