"""Rows that come out of the training of a duet: its trained method alone, and the duet of the other track.

A trained method learns in a duet exactly as it would alone, so one training is enough for all of them. Each
row gets the plan, the fingerprint and the predictions of a run of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from repcl.data import Example
from repcl.errors import InvalidSetting, ResultMismatch, listed
from repcl.experiments.runs.spec import ResolvedRun, RunSpec
from repcl.experiments.runs.store import Progress
from repcl.methods import Method
from repcl.methods.build import method_class
from repcl.methods.duet import Duet
from repcl.methods.variants import variant_settings
from repcl.training import Stage

DUET = "duet"
TRACKS = (None, "statistics")


@dataclass(frozen=True)
class Companion:
    """A row that is made beside a run.

    Attributes:
        run: its plan, folder and fingerprint.
        frozen: the frozen parts that vote in it; none for the trained method alone.
    """

    run: ResolvedRun
    frozen: tuple[str, ...]

    @property
    def row(self) -> str:
        """Its name in tables."""
        return self.run.plan.row

    def progress(self, shared: Progress) -> Progress:
        """Its own measurements; time that only frozen parts took is not that of the trained method alone."""
        return Progress(
            self.run.fingerprint,
            shared.others[self.row],
            self._own(shared.seconds),
            self._own(shared.processor_seconds),
            embeddings_read=shared.embeddings_read if self.frozen else 0,
            steps=shared.steps,
        )

    def is_wanted(self, note: Callable[[str], None]) -> bool:
        """Whether the row is still to be written; one with other settings, made meanwhile, stays.

        Args:
            note: is told about such a row.
        """
        folder = self.run.folder
        try:
            return folder is not None and folder.earlier(self.run.fingerprint) is None
        except ResultMismatch as error:
            note(f"{self.row} is not written: {error}")
            return False

    def _own(self, tasks: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
        """The time of the stages that belong to the row."""
        not_its_own = () if self.frozen else (Stage.EMBEDDING.value, Stage.SOLVING.value)
        return [{stage: spent for stage, spent in task.items() if stage not in not_its_own} for task in tasks]


def companions(run: ResolvedRun) -> list[Companion]:
    """The rows that a run makes beside its own, as far as they are not there yet."""
    plan, given = run.plan, run.options.settings
    if not run.options.with_parts or plan.method != DUET:
        return []
    memory = plan.variant if plan.variant not in TRACKS else None
    trained: str = plan.settings["trained"]
    # what it was trained with, wherever the duet has it from: a preset may say other things of it alone
    alone = _resolved(run, f"{trained}@{memory}" if memory else trained, _kept(plan.settings, trained, {}))
    found = [Companion(alone, ())]
    for track in TRACKS:
        if memory is None and track != plan.variant:
            meant = {"trained": trained, **variant_settings(DUET, track)}
            settings = _kept(given, DUET, meant)
            other = _resolved(run, f"{DUET}@{track}" if track else DUET, settings)
            found.append(Companion(other, tuple(other.plan.settings["frozen"])))
    return [one for one in found if one.run.finished is None]


def shared_settings(run: ResolvedRun, others: Iterable[Companion]) -> Mapping[str, Any]:
    """The settings of a learner that has the parts of all rows."""
    settings = dict(run.plan.settings)
    for other in others:
        if other.frozen:
            settings = {**other.run.plan.settings, **settings}
            settings["frozen"] = tuple(dict.fromkeys([*settings["frozen"], *other.frozen]))
    return settings


def answers(
    run: ResolvedRun, learner: Method, others: Iterable[Companion], examples: Sequence[Example]
) -> dict[str, list[str]]:
    """What each row answers, by its name; each part is asked once."""
    if not isinstance(learner, Duet):
        return {run.plan.row: learner.predict(examples)}
    votes = learner.votes(examples)
    parts = {run.plan.row: _frozen(run), **{other.row: other.frozen for other in others}}
    return {
        row: [learner.classes[best] for best in learner.added(votes, frozen).argmax(dim=1).tolist()]
        if examples
        else []
        for row, frozen in parts.items()
    }


def kept_bytes(run: ResolvedRun, learner: Method) -> int:
    """Bytes that a run's own parts keep beyond exemplars and weights, whatever else the learner has."""
    if not isinstance(learner, Duet):
        return learner.statistics_bytes()
    parts = [learner.trained, *(learner.frozen_parts[name] for name in _frozen(run))]
    return sum(part.statistics_bytes() for part in parts)


def made_apart(runs: Sequence[ResolvedRun]) -> list[ResolvedRun]:
    """The runs that have to be made by themselves, as no other one of them brings them along.

    Each is checked, so that what cannot be written is refused before the first of them begins.
    """
    brought: dict[str, ResolvedRun] = {}
    for run in runs:
        check_parts(run)
        if run.title not in brought:
            brought |= {other.run.title: other.run for other in companions(run)}
    for run in runs:
        if run.title in brought and brought[run.title].fingerprint != run.fingerprint:
            raise InvalidSetting(
                f"Expected {run.title} to have the settings that it has as a part of a duet, found others: "
                "make them equal, or leave out --with-parts."
            )
    return [run for run in runs if run.title not in brought]


def check_parts(run: ResolvedRun) -> None:
    """Refuse a run that cannot write a row that it should bring along.

    There may be such a row with other settings. A run that was made, or begun, without a row cannot add it: a
    run writes its own result after those of its companions, so a row that is missing beside a finished run
    was never measured.
    """
    folder = run.folder
    if folder is None or run.options.fresh:
        return
    wanted, is_finished = companions(run), folder.is_finished
    reached = None if is_finished else folder.progress()
    if not is_finished and reached is None:
        return
    missing = [other.row for other in wanted if not _is_measured(other, reached)]
    if missing:
        raise ResultMismatch(
            f"{folder.path} holds a run made without --with-parts, so that {listed(missing)} cannot come out "
            "of it: run what is missing by itself, or use --fresh or another --out."
        )


def _is_measured(other: Companion, reached: Progress | None) -> bool:
    """Whether a row was measured after every task that an unfinished run has behind it."""
    return reached is not None and len(reached.others.get(other.row, ())) == len(reached.predictions)


def start_over(run: ResolvedRun) -> None:
    """Forget what was made of a run before, and of the rows beside it that no other process is making."""
    if run.folder is None:
        return
    run.folder.start_over()
    for folder in (other.run.folder for other in companions(run)):
        if folder is not None and folder.path.exists():
            with folder.lock(waiting=None) as is_ours:
                if is_ours:
                    folder.start_over()


def _kept(given: Mapping[str, Any], name: str, meant: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a run's settings that another row has as well; its parts are its own affair."""
    fields = method_class(name).settings_class(meant).model_fields
    return {key: value for key, value in given.items() if key in fields and key != "frozen"}


def _frozen(run: ResolvedRun) -> tuple[str, ...]:
    return tuple(run.plan.settings.get("frozen", ()))


def _resolved(run: ResolvedRun, row: str, settings: Mapping[str, Any]) -> ResolvedRun:
    options = replace(run.options, settings=settings, with_parts=False, save_representations=False)
    return RunSpec(row, run.spec.stream, options).resolve()
