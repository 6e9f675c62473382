"""Learns, renames and rolls back in one model folder for ever, until it is killed."""

import random
import warnings
from pathlib import Path

from repcl import ContinualClassifier
from repcl.classifier import ModelFolder
from tests.classifier.conftest import toy
from tests.conftest import TOPICS


def live(path: Path, seed: int) -> None:
    warnings.simplefilter("ignore")
    draw = random.Random(seed)
    folder = ModelFolder(path)
    while True:
        action = draw.choice(["learn", "learn", "rename", "rollback"])
        with folder.lock(action, wait=60):
            if action == "rollback":
                folder.rollback(draw.choice(folder.numbers()))
                continue
            classifier = ContinualClassifier.load(path, device="cpu")
            if action == "rename":
                classifier.rename_class(draw.choice(classifier.classes_.tolist()), f"name {draw.random()}")
            else:
                topic = draw.choice(sorted(TOPICS))
                classifier.partial_fit(*toy(topic, texts=4, start=draw.randrange(100)))
            classifier.commit(folder)
            keep = set(folder.numbers()[-6:]) | {folder.current()}
            folder.purge([number for number in folder.numbers() if number not in keep])
