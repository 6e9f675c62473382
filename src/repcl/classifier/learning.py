"""Teaching a classifier: hold texts back, learn the rest, compare before and after, calibrate."""

from collections.abc import Mapping, Sequence
from typing import Any

from repcl.classifier.guard import TOLERANCE, Update, accuracy, compare, hold_back, now
from repcl.classifier.inputs import LabelType
from repcl.classifier.knowledge import Knowledge
from repcl.data import Example, InputKind, Task
from repcl.errors import InvalidSetting
from repcl.methods import METHODS, Method, build_method
from repcl.methods.build import method_class
from repcl.presets import load_preset


def new_knowledge(
    method: str,
    kind: InputKind,
    label_type: LabelType,
    *,
    encoder: str,
    settings: Mapping[str, Any],
    seed: int,
    device: str | None,
) -> Knowledge:
    """A classifier that knows nothing yet."""
    built = build_method(method, kind, encoder=encoder, settings=settings, seed=seed, device=device)
    for tensor in [*built.parameters(), *built.buffers()]:
        # weights read from a file may lie at an odd address, where other kernels give other last bits than
        # they will give after save and load
        tensor.data = tensor.data.clone()
    return Knowledge(built, method, label_type)


def method_settings(
    method: str,
    kind: InputKind,
    *,
    preset: str,
    settings: Mapping[str, Any],
    memory_per_class: int,
    memory_total: int | None,
) -> dict[str, Any]:
    """The preset's settings, the user's on top, and the memory budget where the method has one."""
    chosen = method_class(method)
    if memory_per_class == 0 and _keeps_texts(chosen):
        free = [name for name, other in METHODS.items() if not _keeps_texts(other)]
        raise InvalidSetting(
            f"Expected memory_per_class of at least 1, found 0: method {method!r} learns from kept texts. "
            f"Methods that keep none: {', '.join(free)}."
        )
    values = load_preset(preset).settings_for(method, "", kind)
    if "memory_per_class" in chosen.Settings.model_fields:
        values |= {"memory_per_class": memory_per_class, "memory_total": memory_total}
    return values | dict(settings)


def learn(
    knowledge: Knowledge, examples: Sequence[Example], *, holdout: int, tolerance: float = TOLERANCE
) -> Update:
    """Learn examples of new and old classes, and tell what became of the held-back texts of old classes.

    Args:
        knowledge: what is changed.
        examples: in a settled order.
        holdout: texts of each class to hold back.
        tolerance: largest drop of accuracy that is not refused.
    """
    method, old = knowledge.method, set(knowledge.method.classes)
    train, held = hold_back(examples, knowledge.held_back, per_class=holdout, seed=method.seed)
    held_before = set(knowledge.held_back)
    compared = [example for example in held if example in held_before]
    before = knowledge.right_before(compared)
    names = list(dict.fromkeys(example.label for example in train))
    method.learn(Task(tuple(names), train, []))
    for name in method.classes:
        knowledge.origins.setdefault(name, (f"{knowledge.updates_made}:{name}",))
    fresh = len(set(held) - held_before)
    knowledge.held_back = held
    after = knowledge.recalibrate()
    fields = compare(
        [example.label for example in compared],
        before,
        [after[example] for example in compared],
        tolerance=tolerance,
    )
    return Update(
        action="learn",
        when=now(),
        new_classes=tuple(name for name in names if name not in old),
        more_of=tuple(name for name in names if name in old),
        examples=len(train),
        held_back=fresh,
        accuracy=accuracy(list(after.values())),
        **fields,
    )


def _keeps_texts(method: type[Method]) -> bool:
    return "memory_per_class" in method.Settings.model_fields or method.keeps_everything
