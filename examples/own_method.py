"""A continual-learning method of your own: experience replay, with new texts and exemplars in one batch.

    python examples/own_method.py

Encoder, batches, memory, training loop and prediction are shared; a method says in which order they are used.
"""

from torch.nn.functional import cross_entropy

from repcl.benchmarks import load_benchmark
from repcl.data import Batch, Task
from repcl.methods.base import Method
from repcl.methods.settings import ClassifierSettings, ReplaySettings
from repcl.model import READOUTS, load_encoder
from repcl.training import LossTerms, Stage, run_stage


class ExperienceReplaySettings(ClassifierSettings, ReplaySettings):
    """Rates, epochs, batch size and memory; all of them have defaults."""


class ExperienceReplay(Method):
    """Train on new texts and exemplars of old classes together, then choose exemplars of the new ones."""

    Settings = ExperienceReplaySettings
    settings: ExperienceReplaySettings

    def learn_task(self, task: Task) -> None:
        settings = self.settings
        self.grow_head()  # a row for each new class
        batches = self.batches([*task.train, *self.memory], settings.batch_size)
        stage = settings.stage(settings.initial_epochs)
        run_stage(self, Stage.INITIAL_LEARNING, batches, self.loss, stage)
        self.remember(task)  # K-means; `choose` may be overridden

    def loss(self, batch: Batch) -> LossTerms:
        scores = self.head(self.encoder.represent(batch))
        return {"ce": cross_entropy(scores, batch.labels)}


def main() -> None:
    stream = load_benchmark("demo", round=0, tasks=5, max_train_per_class=6, max_test_per_class=4)
    encoder = load_encoder("minilm-l6", READOUTS["sentence"]())
    settings = ExperienceReplaySettings(initial_epochs=2, batch_size=8, learning_rate=1e-4)
    method = ExperienceReplay(encoder, settings, seed=0)
    tested = []
    for number, task in enumerate(stream.tasks[:2], start=1):
        method.learn(task)
        tested += task.test
        right = sum(a == b.label for a, b in zip(method.predict(tested), tested, strict=True))
        print(f"after task {number}: {right} of {len(tested)} right over {len(method.classes)} classes")


if __name__ == "__main__":
    main()
