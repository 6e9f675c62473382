"""MAVEN: 120 event types of marked triggers, ten tasks of twelve."""

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from repcl.benchmarks.base import Benchmark, Corpus, SourceFile, Split
from repcl.benchmarks.originals import by_class, counted_corpus, token_span
from repcl.data.examples import Example

# The 120 most frequent of the 168 types.
# fmt: off
LABELS = (
    "Know", "Warning", "Catastrophe", "Placing", "Causation", "Arriving", "Sending", "Protest",
    "Preventing_or_letting", "Motion", "Damaging", "Destroying", "Death", "Perception_active", "Presence",
    "Influence", "Receiving", "Check", "Hostile_encounter", "Killing", "Conquering", "Releasing", "Attack",
    "Earnings_and_losses", "Choosing", "Traveling", "Recovering", "Using", "Coming_to_be",
    "Cause_to_be_included", "Process_start", "Change_event_time", "Reporting", "Bodily_harm", "Statement",
    "Cause_change_of_position_on_a_scale", "Coming_to_believe", "Expressing_publicly", "Request",
    "Control", "Supporting", "Defending", "Building", "Military_operation", "Self_motion", "GetReady",
    "Becoming_a_member", "Action", "Removing", "Surrendering", "Agree_or_refuse_to_act", "Participation",
    "Deciding", "Education_teaching", "Emptying", "Getting", "Besieging", "Creating", "Process_end",
    "Body_movement", "Expansion", "Telling", "Change", "Legal_rulings", "Giving", "Name_conferral",
    "Arranging", "Use_firearm", "Committing_crime", "Assistance", "Quarreling", "Motion_directional",
    "Bringing", "Communication", "Manufacturing", "Social_event", "Competition", "Rescuing",
    "Judgment_communication", "Hold", "Being_in_operation", "Recording", "Departing", "GiveUp",
    "Change_of_leadership", "Escaping", "Aiming", "Hindering", "Preserving", "Openness", "Connect",
    "Reveal_secret", "Response", "Scrutiny", "Criminal_investigation", "Hiding_objects",
    "Confronting_problem", "Arrest", "Convincing", "Commerce_sell", "Temporary_stay", "Dispersal",
    "Collaboration", "Change_sentiment", "Commitment", "Becoming", "Achieve", "Cause_change_of_strength",
    "Supply", "Cause_to_amalgamate", "Violence", "Come_together", "Cause_to_make_progress", "Legality",
    "Employment", "Publishing", "Sign_agreement", "Testing", "Terrorism", "Resolve_problem",
)
# fmt: on

# Mentions of all 168 types in the official files.
TRAIN_MENTIONS, VALID_MENTIONS = 77_993, 18_904


def read_maven(folder: Path, _: random.Random, *, train_cap: int | None = 1000) -> Corpus:
    """Train on the official training file, test on every mention in the official validation file.

    Types that the files do not have are left out. Nothing is drawn at random; negative triggers are not used.

    Args:
        folder: holds the two original files.
        train_cap: the released code takes the first 1000 training mentions of a type, in file order; the
            paper names no cap.
    """
    train = by_class(_examples(folder / "train.jsonl"))
    test = by_class(_examples(folder / "valid.jsonl"))
    present = [label for label in LABELS if label in train and label in test]
    splits = {label: Split(train[label][:train_cap], test[label]) for label in present}
    found = {
        "types": len(present),
        "training mentions": sum(map(len, train.values())),
        "validation mentions": sum(map(len, test.values())),
    }
    expected = {"types": 120, "training mentions": TRAIN_MENTIONS, "validation mentions": VALID_MENTIONS}
    return counted_corpus(splits, LABELS, found, expected)


def _examples(path: Path) -> Iterator[Example]:
    with path.open(encoding="utf-8") as file:
        for document in map(json.loads, file):
            sentences = [sentence["tokens"] for sentence in document["content"]]
            for event in document["events"]:
                for mention in event["mention"]:
                    tokens = sentences[mention["sent_id"]]
                    trigger = token_span(tokens, *mention["offset"])
                    yield Example(" ".join(tokens), event["type"], trigger=trigger)


MAVEN = Benchmark(
    name="maven",
    kind="event",
    classes=120,
    tasks=10,
    citation="Wang et al., MAVEN: A Massive General Domain Event Detection Dataset, EMNLP 2020",
    source="https://github.com/THU-KEG/MAVEN-dataset",
    license="MIT in the authors' repository; the sentences are from Wikipedia (CC BY-SA)",
    files=(SourceFile("train.jsonl"), SourceFile("valid.jsonl")),
    read=read_maven,
    read_as_paper=partial(read_maven, train_cap=None),
    obtain="MAVEN's files have no lasting address of their own; follow the links at "
    "https://github.com/THU-KEG/MAVEN-dataset and put train.jsonl and valid.jsonl there",
)
