"""`ContinualClassifier`: scikit-learn's contract, and new classes in any call, for ever."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import ValidationError
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from repcl.classifier import updates
from repcl.classifier.corrections import find
from repcl.classifier.drift import Drift, drift
from repcl.classifier.guard import TOLERANCE, ForgettingWarning
from repcl.classifier.improvement import DUET, Limits, improve
from repcl.classifier.inputs import (
    InvalidInput,
    Label,
    are_empty,
    as_classes,
    as_examples,
    as_labels,
    common_kind,
    label_type,
    labeled,
)
from repcl.classifier.label_sets import as_answers, as_label_sets, each_label, refuse_separator
from repcl.classifier.labels import note_spellings, settled, spoken
from repcl.classifier.neighbors import Neighbor, nearest_texts
from repcl.classifier.state import AUTO, ClassifierState, decided, method_settings, new_state
from repcl.classifier.store.files import BlobsInMemory
from repcl.classifier.store.folder import ModelFolder
from repcl.classifier.store.records import (
    Contents,
    DamagedModel,
    LabelType,
    Parameters,
    Revision,
    Update,
    as_text,
    first_problem,
)
from repcl.classifier.store.snapshot import pack, unpack
from repcl.classifier.suggestion import Suggestion, suggest
from repcl.classifier.weights import weighted
from repcl.data import Example, InputKind
from repcl.data.normal import normal_example
from repcl.errors import InvalidSetting, RepclError, UnknownName, listed, shortened
from repcl.methods import Method
from repcl.model.encoders import NamedByFolder, use_pretrained
from repcl.training import Observer

WAIT = 60.0

Own = TypeVar("Own", bound="ContinualClassifier")


class ContinualClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier that learns new classes in any call of `partial_fit` and keeps the old ones.

    Args:
        method: a name in `METHODS`, with `@variant` if wanted; "auto" is the best learner that learns a class
            within seconds, and is stored as the one it is.
        encoder: a bundled name, a local folder or a Hugging Face id.
        memory_per_class: exemplars kept of each class; 0 for methods that need none.
        memory_total: exemplars kept in total.
        holdout_per_class: texts of each class that are held out to measure updates and calibrate confidence;
            at most one in five.
        preset: where the method's settings come from.
        settings: what to change about them.
        tolerance: share of the texts of old classes that an update may lose; 1 accepts every update.
        seed: decides every random draw.
        device: the best one present if not given.
        multilabel: a text may have several labels; for methods that can, as `instant`.

    Attributes:
        classes_: the labels, sorted, in the type they were given in.
        method_: the method with its encoder and memory.
        last_update_: what the last change did to held-out texts of old classes.

    Examples:
        >>> from repcl import ContinualClassifier
        >>> clf = ContinualClassifier()  # doctest: +SKIP
        >>> clf.partial_fit(["where is my parcel"], ["delivery"])  # doctest: +SKIP
        >>> clf.predict(["my parcel is late"])  # doctest: +SKIP
    """

    _state: ClassifierState | None = None
    _home: tuple[Path, int] | None = None  # the model folder and revision that it was loaded from or saved to
    _is_interrupted = False
    last_update_: Update

    def __init__(  # noqa: PLR0913 (scikit-learn wants every parameter here)
        self,
        method: str = AUTO,
        encoder: str = "minilm-l6",
        memory_per_class: int = 10,
        memory_total: int | None = None,
        holdout_per_class: int = 5,
        preset: str = "cpu",
        settings: Mapping[str, Any] | None = None,
        tolerance: float = TOLERANCE,
        seed: int = 0,
        device: str | None = None,
        multilabel: bool = False,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.memory_per_class = memory_per_class
        self.memory_total = memory_total
        self.holdout_per_class = holdout_per_class
        self.preset = preset
        self.settings = settings
        self.tolerance = tolerance
        self.seed = seed
        self.device = device
        self.multilabel = multilabel

    # ---- learning -------------------------------------------------------------------------------

    def fit(self: Own, X: Any, y: Any, sample_weight: Any = None) -> Own:
        """Forget everything and learn texts `X` with labels `y`.

        Args:
            X: a sequence of str, or of `Example` for relations and events.
            y: their labels, str or int.
            sample_weight: how many times each text counts, from 0 on; once if not given.
        """
        self._check_parameters()
        examples, given = self._read(X, y, sample_weight, several=self.multilabel)
        labels = _settled(given, ())
        checked = labeled(examples, labels)
        state = self._new_state(common_kind(examples), label_type(labels))
        state.check_readable(checked)
        self._state, self._home, self._is_interrupted = state, None, False
        with self._updating() as state:
            self.last_update_ = updates.learn(
                state,
                checked,
                per_class=self.holdout_per_class,
                keeps_hashes=self._keeps_hashes,
                tolerance=self.tolerance,
            )
        return self

    def partial_fit(
        self: Own,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        observer: Observer | None = None,
    ) -> Own:
        """Learn texts `X` with labels `y`; labels not seen before are new classes.

        A text that was learned under another label loses that one: it is corrected.

        Args:
            X: a sequence of str, or of `Example` for relations and events.
            y: their labels, str or int.
            classes: if given, labels outside it are refused, and all of it is in `classes_` at once.
            sample_weight: how many times each text counts, from 0 on; once if not given.
            observer: hears about progress.
        """
        self._check_parameters()
        state = self.fitted_state() if self._state is not None else None
        examples, given = self._read(X, y, sample_weight, several=self._takes_several)
        kind = common_kind(examples, state.kind if state else None)
        announced = as_labels(classes, len(classes)) if classes is not None else []
        every = _settled([*given, *announced], state.names if state else ())
        labels = every[: len(given)]
        declared = every[len(given) :] if classes is not None else labels
        labels_are = label_type([*labels, *declared], state.label_type if state else None)
        allowed = set(declared)
        for label in labels:
            if label not in allowed:
                raise InvalidInput(
                    f"Expected labels among `classes`, found {shortened(label)}: add it to them."
                )
        checked = labeled(examples, labels)
        state = state or self._new_state(kind, labels_are)
        state.check_readable(checked)
        self._state = state
        if classes is not None:
            state.declared = tuple(dict.fromkeys([*state.declared, *map(str, declared)]))
        with self._updating() as state:
            self.last_update_ = updates.learn(
                state,
                checked,
                per_class=self.holdout_per_class,
                keeps_hashes=self._keeps_hashes,
                tolerance=self.tolerance,
                observer=observer,
            )
        return self

    def improve(
        self: Own,
        X: Any = (),
        y: Any = (),
        *,
        settings: Mapping[str, Any] | None = None,
        observer: Observer | None = None,
    ) -> Own:
        """Train a duet from what is kept, and become it; for the frozen learners (`instant`, ...).

        `last_update_` says what that did to texts that were held out from both. Where it is refused, because
        they do not gain by it, the classifier stays as it is.

        Args:
            X: texts that were learned; the more of them, the better. Those that are kept are used anyway.
            y: their labels.
            settings: of the trained half, such as `{"trained": "fea"}`.
            observer: hears about progress.
        """
        state = self.fitted_state()
        examples = as_examples(X)
        labels = as_labels(y, len(examples))
        if examples:
            common_kind(examples, state.kind)
            label_type(labels, state.label_type)
        given = labeled(examples, _settled(labels, state.names)) if examples else []
        found = improve(
            state,
            given,
            settings=settings or {},
            preset=self.preset,
            limits=Limits(self.memory_per_class, self.memory_total, self.holdout_per_class),
            tolerance=self.tolerance,
            observer=observer,
        )
        self.last_update_ = found.update
        if found.update.is_refused:
            reasons = "; ".join(found.update.reasons)
            warnings.warn(f"The model stays as it is: {reasons}.", ForgettingWarning, stacklevel=2)
            return self
        found.state.record(found.update)
        self._state = found.state
        self.set_params(method=DUET, settings=dict(found.settings))
        return self

    def forget_texts(self: Own, X: Any, y: Any = None) -> Own:
        """Take back texts that were learned or held out; a class that loses its last text is removed.

        The frozen learners (`instant`, ...) become what they would be, had they never seen the texts. Trained
        methods drop them from what they keep, but their weights were shaped by them:
        `last_update_.is_exact` says which.

        Args:
            X: the texts; those that are not known are counted in `last_update_.not_found`.
            y: if given, each text is forgotten under this label only.
        """
        state = self.fitted_state()
        examples = as_examples(X)
        common_kind(examples, state.kind)
        labels: list[Label] = [""] * len(examples)
        if y is not None:
            if state.is_multilabel:
                examples, labels = each_label(examples, y)
            else:
                labels = as_labels(y, len(examples))
            label_type(labels, state.label_type)
            names = settled(map(str, labels), state.names)
            labels = [names[str(label)] for label in labels]
        if not examples:
            raise InvalidInput("Expected at least one text to forget, found none.")
        checked = labeled(examples, labels)
        state.check_readable(checked)
        with self._updating(refused_by=(InvalidInput, UnknownName)) as state:
            self.last_update_ = updates.forget_texts(
                state, checked, keeps_hashes=self._keeps_hashes, tolerance=self.tolerance
            )
        return self

    # ---- predicting -----------------------------------------------------------------------------

    def predict(self, X: Any, *, unknown: Label | None = None, threshold: float | str = "auto") -> Any:
        """The most likely label of each text; with `multilabel` the tuple of its labels, perhaps none.

        An empty text says nothing. Without `unknown` it still gets a class, with a warning, for nothing else
        can be answered; with `unknown` it is unknown under any threshold.

        Args:
            X: texts.
            unknown: if given, the answer for empty texts and for those of which no class is likely enough.
            threshold: the least confidence, from 0 to 1; "auto" lets 95 % of held-out texts pass. With
                `multilabel` the least probability of a label; "auto" is each label's own.
        """
        state = self.fitted_state()
        if state.is_multilabel:
            return self._predict_sets(X, unknown, threshold)
        if unknown is None:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        rule, examples = state.unknown_rule(threshold, unknown), as_examples(X)
        is_empty = are_empty(examples)
        full = [example for example, says_nothing in zip(examples, is_empty, strict=True) if not says_nothing]
        best, is_unknown = np.zeros(len(examples), dtype=int), is_empty.copy()
        best[~is_empty] = self.predict_proba(full).argmax(axis=1)
        is_unknown[~is_empty] = rule.applies(state.evidence(full))
        return rule.mark(self.classes_[best], is_unknown)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of texts that get their label; with `multilabel`, exactly their labels."""
        state = self.fitted_state()
        if not state.is_multilabel:
            return float(super().score(X, _named(y, state.names), sample_weight))
        answers = self.predict(X)
        wanted = [_named(labels, state.names) for labels in as_label_sets(y, len(answers))]
        is_right = [set(one) == set(other) for one, other in zip(answers, wanted, strict=True)]
        return float(np.average(is_right, weights=sample_weight))

    def predict_top(self, X: Any, k: int = 3) -> tuple[Any, Any]:
        """The most likely labels of each text and their probabilities, the best first.

        Args:
            X: texts.
            k: how many; where there are fewer classes, all of them.

        Returns:
            Labels, (texts, k), and probabilities, (texts, k).
        """
        _check_count(k)
        probabilities = self.predict_proba(X)
        best = (-probabilities).argsort(axis=1, kind="stable")[:, :k]
        return self.classes_[best], np.take_along_axis(probabilities, best, axis=1)

    def nearest(self, X: Any, k: int = 3) -> list[list[Neighbor]]:
        """The kept texts that are most like each text, the nearest first: they explain an answer.

        Kept texts are the exemplars and the held-out texts. An empty text is like none.

        Args:
            X: texts.
            k: how many; where fewer are kept, all of them.

        Returns:
            For each text, kept texts with their labels and the cosine similarity of representations.
        """
        _check_count(k)
        return nearest_texts(self.fitted_state(), as_examples(X), k)

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities, (texts, classes); columns follow `classes_`, rows sum to 1.

        With `multilabel` each label has a probability of its own, and rows sum to anything.

        Those of an empty text say nothing, which is worth a warning.
        """
        state = self.fitted_state()
        examples = as_examples(X)
        empty = int(are_empty(examples).sum())
        if empty:
            warnings.warn(
                f"{empty} of {len(examples)} texts are empty and get a class all the same: leave them out, "
                "or ask predict with an answer for `unknown` texts.",
                stacklevel=2,
            )
        common_kind(examples, state.kind)
        probabilities = np.zeros((len(examples), len(self.classes_)))
        probabilities[:, self._columns()] = state.probabilities(examples)
        return probabilities

    # ---- what next ------------------------------------------------------------------------------

    def suggest(self, X: Any, most: int = 20) -> list[Suggestion]:
        """Which texts to label next, the most useful first, each with its index in `X` and a reason.

        Args:
            X: texts without labels.
            most: how many to name.
        """
        return suggest(self.fitted_state(), X, most)

    def drift(self, X: Any, reference: Any = None) -> Drift:
        """Whether texts that come in have other shares of unknown texts and of classes than before.

        Args:
            X: texts that came in lately.
            reference: earlier texts; if not given, the texts that were learned.
        """
        return drift(self.fitted_state(), X, reference)

    # ---- the life of a class --------------------------------------------------------------------

    def describe_class(self: Own, label: Label, description: str | None = None) -> Own:
        """Teach a class by a description, or by its name; a new class needs no example then.

        The description is learned as one text. So it decides alone at first, and less with every example.
        """
        if self._state is not None and self.fitted_state().kind != "sentence":
            raise InvalidSetting(
                f"A {self.fitted_state().kind} cannot be described by a sentence: learn examples instead."
            )
        text = spoken(label) if description is None else description
        if self._state is not None:
            self._check_says_something_else(text, self._name(label))
        return self.partial_fit([text], [[label] if self._takes_several else label])

    def rename_class(self: Own, old: Label, new: Label) -> Own:
        """Give a class another label."""
        names = self._name(old), self._name(new)
        with self._updating(refused_by=RepclError) as state:
            self.last_update_ = updates.rename_class(state, *names)
        return self

    def merge_classes(self: Own, labels: Sequence[Label], into: Label) -> Own:
        """Make one class of several; `into` is a new label or one of theirs."""
        names, union = [self._name(label) for label in labels], self._name(into)
        with self._updating(refused_by=RepclError) as state:
            self.last_update_ = updates.merge_classes(
                state,
                names,
                union,
                per_class=self.holdout_per_class,
                keeps_hashes=self._keeps_hashes,
                tolerance=self.tolerance,
            )
        return self

    def remove_class(self: Own, label: Label) -> Own:
        """Forget a class: exemplars, held-out texts, classifier row and statistics."""
        name = self._name(label)
        with self._updating(refused_by=RepclError) as state:
            self.last_update_ = updates.remove_class(state, name, tolerance=self.tolerance)
        return self

    def absorb(self: Own, other: "ContinualClassifier") -> Own:
        """Also know what another classifier learned, exactly; for the frozen learners (`instant`, ...)."""
        theirs = other.fitted_state()
        with self._updating(refused_by=RepclError) as state:
            self.last_update_ = updates.absorb(
                state,
                theirs,
                per_class=self.holdout_per_class,
                keeps_hashes=self._keeps_hashes,
                tolerance=self.tolerance,
            )
        return self

    # ---- saving, loading, pickling --------------------------------------------------------------

    def save(self, path: str | Path, *, wait: float = WAIT) -> int:
        """Write a new revision into a model folder, made if it does not exist, and use it from now on.

        Args:
            path: of the folder.
            wait: seconds to wait for another process that is writing there.

        Returns:
            The revision's number.
        """
        self.fitted_state()
        folder = ModelFolder(path)
        with folder.lock("saving", wait=wait):
            return self.commit(folder).number

    def commit(self, folder: ModelFolder, *, make_current: bool = True) -> Revision:
        """Write a new revision into a folder whose lock is held."""
        path = folder.path.resolve()
        parent = self._home[1] if self._home is not None and self._home[0] == path else None
        if parent is not None and folder.exists and folder.current() != parent:
            raise RepclError(
                f"{folder.path} is at revision {folder.current()}, this classifier comes from revision "
                f"{parent}: load it again and repeat the change, or save to another folder."
            )
        state = self.fitted_state()
        write = partial(pack, state, self._parameters())
        revision = folder.commit(write, state.updates, parent=parent, make_current=make_current)
        state.updates.clear()
        self._home = (path, revision.number)
        return revision

    @classmethod
    def load(
        cls: type[Own],
        path: str | Path,
        *,
        revision: int | None = None,
        device: torch.device | str | None = None,
        encoder: str | None = None,
    ) -> Own:
        """A classifier from a model folder; it learns and predicts as if it had never been saved.

        Args:
            path: of the folder.
            revision: the one in use if not given.
            device: the best one present if not given.
            encoder: where the pretrained weights are. Only `fit` and methods that start over, as `joint`
                does, ask for them; what a folder says about it is believed for bundled encoders only.
        """
        folder = ModelFolder(path)
        record, state = folder.open(partial(unpack, device=device), revision)
        known = cls._get_param_names()
        parameters = {key: value for key, value in record.contents.parameters.items() if key in known}
        parameters["encoder"] = NamedByFolder(parameters.get("encoder", record.contents.encoder.name))
        try:
            loaded = cls(**parameters)
        except TypeError as error:
            raise DamagedModel(f"{path}: the parameters cannot be used ({error}).") from error
        if device is not None:
            loaded.set_params(device=str(device))  # `fit` stays there
        loaded._state = state
        if encoder is not None:
            loaded.use_encoder(encoder)
        loaded._home = (folder.path.resolve(), record.number)
        if record.updates:
            loaded.last_update_ = record.updates[-1]
        return loaded

    def use_encoder(self, name: str) -> None:
        """Say where the pretrained weights are, for `fit` and for methods that start over."""
        self.set_params(encoder=name)
        use_pretrained(self.fitted_state().method.encoder, name)

    def __getstate__(self) -> dict[str, Any]:
        values = dict(super().__getstate__())
        state = values.pop("_state", None)
        if state is not None:
            blobs = BlobsInMemory()
            contents = pack(state, {}, blobs)
            values["_packed"] = (contents.model_dump(), blobs.kept, list(state.updates))
        return values

    def __setstate__(self, values: dict[str, Any]) -> None:
        packed = values.pop("_packed", None)
        super().__setstate__(values)
        if packed is not None:
            contents, kept, made = packed
            blobs = BlobsInMemory()
            blobs.kept.update(kept)
            self._state = unpack(Contents.model_validate(contents), blobs, device=self.device)
            self._state.updates = made
            if not isinstance(self.encoder, NamedByFolder):
                use_pretrained(self._state.method.encoder, str(self.encoder))

    # ---- what was learned -----------------------------------------------------------------------

    @property
    def classes_(self) -> Any:
        """The labels, sorted, as an array of the type they were given in."""
        if self._state is None:
            raise AttributeError("classes_ is there after fit or partial_fit")
        return as_classes(self._state.names, self._state.label_type)

    @property
    def method_(self) -> Method:
        """The method with its encoder and memory."""
        if self._state is None:
            raise AttributeError("method_ is there after fit or partial_fit")
        return self._state.method

    def fitted_state(self) -> ClassifierState:
        """What was learned; an error where nothing was, or where learning was interrupted."""
        if self._state is None:
            raise NotFittedError(
                "This ContinualClassifier has learned nothing yet: call fit or partial_fit, or load a model."
            )
        if self._is_interrupted:
            raise RepclError(
                "This classifier was interrupted while it learned, and is neither old nor new: "
                "load its last revision again, or fit it again."
            )
        return self._state

    def label_of(self, typed: str) -> Label:
        """A label in the type that labels were given in, from what a user typed: the class that it names."""
        return self.fitted_state().label_of(typed)

    # ---- inside ---------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = bool(self.multilabel)
        return tags

    def _check_says_something_else(self, text: str, name: str) -> None:
        """Refuse the description of a class that is a text of another one, from which it would be taken."""
        others = find(self.fitted_state(), map(normal_example, as_examples([text]))).labels - {name}
        if others:
            raise InvalidInput(
                f"{shortened(text)} is a text of class {listed(sorted(map(shortened, others)), 5)} already: "
                f"describe {shortened(name)} in words of its own."
            )

    def _new_state(self, kind: InputKind, labels_are: LabelType) -> ClassifierState:
        method = decided(self.method)
        settings = method_settings(
            method,
            kind,
            preset=self.preset,
            settings=self.settings or {},
            memory_per_class=self.memory_per_class,
            memory_total=self.memory_total,
            holdout_per_class=self.holdout_per_class,
            multilabel=self.multilabel,
        )
        return new_state(
            method,
            kind,
            labels_are,
            # a path is as good as a name; a name that a folder gave stays marked as one
            encoder=self.encoder if isinstance(self.encoder, str) else str(self.encoder),
            settings=settings,
            seed=int(self.seed),
            device=self.device,
        )

    def _columns(self) -> list[int]:
        """The place among `classes_` of each class that the method has learned."""
        column = {str(label): index for index, label in enumerate(self.classes_)}
        return [column[name] for name in self.fitted_state().method.classes]

    def _predict_sets(self, X: Any, unknown: Label | None, threshold: float | str) -> Any:
        """The labels of each text; where it has none, the answer for unknown texts if there is one."""
        state, examples = self.fitted_state(), as_examples(X)
        is_empty = are_empty(examples)
        full = [example for example, says_nothing in zip(examples, is_empty, strict=True) if not says_nothing]
        common_kind(full, state.kind)
        evidence = state.evidence(full)
        has_label = np.zeros((len(examples), len(self.classes_)), dtype=bool)
        columns = self._columns()
        has_label[np.ix_(np.flatnonzero(~is_empty), np.array(columns))] = state.has_labels(
            evidence.probabilities, threshold
        )
        if unknown is not None:
            rule = state.unknown_rule(threshold, unknown)
            has_label[np.flatnonzero(~is_empty)[rule.applies(evidence)]] = False
        answers = as_answers(self.classes_, has_label)
        if unknown is not None:
            for index in np.flatnonzero(~has_label.any(axis=1)):
                answers[index] = (unknown,)
        return answers

    @property
    def _takes_several(self) -> bool:
        """Whether a text may have several labels: as decided when the first was learned."""
        return bool(self.multilabel) if self._state is None else self._state.is_multilabel

    @property
    def _keeps_hashes(self) -> bool:
        """Whether texts are recognized when they come again; not where nothing of a text may be kept."""
        return self.memory_per_class > 0 or self.holdout_per_class > 0

    def _check_parameters(self) -> None:
        """Refuse, before anything is learned, parameters that a model folder could not hold."""
        try:
            Parameters.model_validate(self._parameters())
        except ValidationError as error:
            raise InvalidSetting(f"This classifier cannot learn: {first_problem(error)}.") from error

    @contextmanager
    def _updating(
        self, *, refused_by: type[Exception] | tuple[type[Exception], ...] = ()
    ) -> Iterator[ClassifierState]:
        """Change the state and leave in `last_update_` what that did; a state left half changed is not used.

        Args:
            refused_by: errors that come before anything is changed.
        """
        state = self.fitted_state()
        self._is_interrupted = True
        try:
            yield state
        except refused_by:
            self._is_interrupted = False
            raise
        except BaseException:
            if state.updates_made == 0:
                self._state, self._is_interrupted = None, False
            raise
        self._is_interrupted = False
        update = self.last_update_
        state.record(update)
        if update.is_refused:
            warnings.warn(
                f"This update should not be used: {'; '.join(update.reasons)}.",
                ForgettingWarning,
                stacklevel=4,
            )

    def _read(
        self, X: Any, y: Any, sample_weight: Any, *, several: bool
    ) -> tuple[list[Example], list[Label]]:
        """Texts and labels to learn from, checked; a text as often as it has labels, or as it weighs."""
        examples = as_examples(X)
        if not examples:
            raise InvalidInput("Expected at least one text to learn from, found none.")
        if several and sample_weight is not None:
            raise InvalidSetting(
                "Expected no sample_weight, found one: where a text may have several labels (multilabel), it "
                "counts once."
            )
        if several:
            return each_label(examples, y)
        labels = as_labels(y, len(examples))
        if sample_weight is None:
            return examples, labels
        return weighted(examples, labels, sample_weight, seed=int(self.seed))

    def _name(self, label: Label) -> str:
        """The name under which the method knows a label."""
        (checked,) = as_labels([label], 1)
        state = self.fitted_state()
        if state.is_multilabel:
            refuse_separator([checked])
        label_type([checked], state.label_type)
        return settled([str(checked)], state.names)[str(checked)]

    def _parameters(self) -> dict[str, Any]:
        """The arguments of the constructor as JSON can hold them; the device is this machine's business."""
        values: dict[str, Any] = self.get_params(deep=False)
        del values["device"]
        if values["method"] == AUTO:  # what is best may change, a model that was taught does not
            values["method"] = decided(AUTO)
        plain: dict[str, Any] = json.loads(json.dumps(values, default=_plain))
        return {key: as_text(value) if isinstance(value, str) else value for key, value in plain.items()}


def _settled(labels: Sequence[Label], known: Sequence[str]) -> list[Label]:
    """The labels of the classes that are meant, with a warning where they look alike."""
    taken = settled([label for label in labels if isinstance(label, str)], known)
    note_spellings(taken, known)
    return [taken[label] if isinstance(label, str) else label for label in labels]


def _named(labels: Any, names: Sequence[str]) -> Any:
    """The labels, those that are text as the classes that they name."""
    if getattr(labels, "ndim", 1) == 2 and labels.shape[1] == 1:  # a column of a table
        labels = np.ravel(labels)
    taken = settled((label for label in labels if isinstance(label, str)), names)
    return [taken[label] if isinstance(label, str) else label for label in labels] if taken else labels


def _check_count(k: int) -> None:
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise InvalidSetting(f"Expected k to be a whole number of at least 1, found {shortened(k)}.")


def _plain(value: Any) -> Any:
    """What JSON does not know: NumPy's numbers, settings that are no plain dictionary, paths."""
    if isinstance(value, np.generic):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else str(value)
