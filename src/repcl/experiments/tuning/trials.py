"""The trials of a search: which settings come next, and a store of those that are finished (Optuna)."""

import json
import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from repcl.errors import InvalidSetting, ResultMismatch
from repcl.experiments.runs.store import RunFolder, is_folder, remove_named
from repcl.experiments.tuning.space import Space
from repcl.files import is_plain
from repcl.methods.search_ranges import Choices, Dimension

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

STORE = "trials.db"
OWN_FILES = re.compile(rf"{re.escape(STORE)}(-journal|-wal|-shm)?|trial-\d{{3,6}}\.error\.txt")
TRIAL = re.compile(r"trial-\d{3,6}")


@dataclass(frozen=True)
class Trial:
    """One choice of settings and what it reached.

    Attributes:
        settings: values of what is searched.
        accuracies: on the held-out texts of each round; empty if a run failed.
    """

    number: int
    settings: Mapping[str, Any]
    accuracies: tuple[float, ...]

    @property
    def score(self) -> float | None:
        """Mean over the rounds."""
        return fmean(self.accuracies) if self.accuracies else None


class TrialStore:
    """Finished trials in a file that outlives the process; only whole trials are ever written.

    Args:
        folder: of the search.
        identity: what the search is; a folder that holds another one is refused.
        space: what is searched.
        group: how many trials are drawn at a time; a search that resumes keeps the number it began with.
        fresh: forget what the folder holds.
    """

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], space: Space, *, group: int, fresh: bool = False
    ) -> None:
        optuna = load_optuna()
        _refuse_foreign(folder / STORE)
        if fresh:
            _start_over(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.space = folder, space
        self.storage = optuna.storages.RDBStorage(f"sqlite:///{folder / STORE}")
        self.study = optuna.create_study(
            study_name="repcl", storage=self.storage, direction="maximize", load_if_exists=True
        )
        described = json.dumps(identity, sort_keys=True)
        if self.study.user_attrs.get("identity", described) != described:
            self.close()
            raise ResultMismatch(
                f"{folder} holds a search with other settings, ranges or data; use --fresh or another --out."
            )
        self.group = int(self.study.user_attrs.get("group", group))
        self.study.set_user_attr("group", self.group)
        self.study.set_user_attr("identity", described)

    def __enter__(self) -> "TrialStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.storage.remove_session()
        self.storage.engine.dispose()

    def trials(self) -> list[Trial]:
        """The finished trials, by number."""
        try:
            return [
                Trial(trial.number, trial.params, tuple(map(float, trial.user_attrs["accuracies"])))
                for trial in self.study.get_trials()
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise ResultMismatch(
                f"{self.folder / STORE} is damaged; use --fresh or another --out."
            ) from error

    def add(self, trial: Trial) -> None:
        """Write down a finished trial."""
        if len(self.study.get_trials()) != trial.number:
            raise ResultMismatch(f"Another search is writing to {self.folder}; end it, or use another --out.")
        self.study.add_trial(_as_optuna(trial, self.space))


def _refuse_foreign(store: Path) -> None:
    """A file in place of the store that is none is somebody else's, and is neither changed nor deleted."""
    if not os.path.lexists(store):
        return
    tables = None
    if is_plain(store):
        address = f"{store.absolute().as_uri()}?mode=ro"
        with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    if tables is None or (tables and "studies" not in tables):
        raise ResultMismatch(f"{store} is no store of trials: move it elsewhere, or use another --out.")


def _start_over(folder: Path) -> None:
    """Forget a search: its store, its runs and what is written about failed ones; other files stay."""
    remove_named(folder, OWN_FILES)
    for trial in folder.iterdir() if is_folder(folder) else ():
        if TRIAL.fullmatch(trial.name) and is_folder(trial):
            for run in trial.glob("*/*/round-*"):
                if Path(os.path.realpath(run)).is_relative_to(os.path.realpath(folder)):
                    RunFolder(run).start_over()


def draw_settings(
    space: Space, start: Mapping[str, Any], earlier: Sequence[Trial], numbers: range, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """The settings of a group of trials: the same ones whenever, and however often, they are asked for.

    Args:
        space: what is searched.
        start: the settings of trial 0.
        earlier: all trials before this group.
        numbers: of the trials in the group.
        seeds: decide all draws.
    """
    optuna = load_optuna()
    study = optuna.create_study(direction="maximize")
    study.add_trials([_as_optuna(trial, space) for trial in earlier])
    drawn = []
    for number in numbers:
        if number == 0:
            study.enqueue_trial(dict(start))
        # a sampler for each trial, since a search that resumes does not know how often earlier ones drew
        seed = np.random.SeedSequence([*seeds, number]).generate_state(1)[0]
        study.sampler = optuna.samplers.TPESampler(seed=int(seed))
        values = study.ask({key: _distribution(dimension) for key, dimension in space.items()}).params
        rounded = {key: dimension.rounded(values[key]) for key, dimension in space.items()}
        drawn.append(dict(start) if number == 0 else rounded)
    return drawn


def load_optuna() -> Any:
    """Optuna, without its own messages."""
    try:
        import optuna
    except ImportError as error:
        raise InvalidSetting("Searching settings needs Optuna: pip install 'repcl[tune]'.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _as_optuna(trial: Trial, space: Space) -> "FrozenTrial":
    optuna = load_optuna()
    states = optuna.trial.TrialState
    frozen: FrozenTrial = optuna.trial.create_trial(
        state=states.COMPLETE if trial.accuracies else states.FAIL,
        value=trial.score,
        params=dict(trial.settings),
        distributions={key: _distribution(dimension) for key, dimension in space.items()},
        user_attrs={"accuracies": list(trial.accuracies)},
    )
    return frozen


def _distribution(dimension: Dimension) -> "BaseDistribution":
    kinds = load_optuna().distributions
    distribution: BaseDistribution
    if isinstance(dimension, Choices):
        distribution = kinds.CategoricalDistribution(dimension.values)
    elif dimension.is_whole:
        low, high = int(dimension.low), int(dimension.high)
        distribution = kinds.IntDistribution(low, high, log=dimension.is_log)
    else:
        distribution = kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.is_log)
    return distribution
