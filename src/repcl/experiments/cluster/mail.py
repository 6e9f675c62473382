"""How runs on other machines tell what happens: letters of events, kept for the driver in a mailbox."""

from collections.abc import Sequence
from time import monotonic
from typing import Any

from repcl.experiments.events import Event

BETWEEN_LETTERS = 0.2  # seconds; a letter per training step would slow small models down

PlainEvent = tuple[int, str, dict[str, Any]]  # number of the run, kind, values


def open_mailbox() -> Any:
    """Start the actor that keeps letters until the driver collects them."""
    import asyncio

    import ray

    class Mailbox:
        # Defined in here, Ray sends it as code; letters are plain values. Its process then needs no torch.
        def __init__(self) -> None:
            self.events: list[PlainEvent] = []
            self.has_news = asyncio.Event()

        async def post(self, letter: Sequence[PlainEvent]) -> None:
            self.events += letter
            self.has_news.set()

        async def collect(self) -> list[PlainEvent]:
            await self.has_news.wait()
            self.has_news.clear()
            events, self.events = self.events, []
            return events

    # A mailbox whose machine is lost starts again elsewhere, empty: only progress shown is lost with it.
    return ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Mailbox).remote()


class Postbox:
    """Sends the events of one run; training steps travel together."""

    def __init__(self, mailbox: Any, number: int) -> None:
        self.mailbox, self.number = mailbox, number
        self.letter: list[PlainEvent] = []
        self.last_post = monotonic()

    def tell(self, event: Event) -> None:
        """Send an event, soon; the end of a run is told by its task, which cannot get lost."""
        import ray

        is_end = event.kind in ("done", "failed")
        if not is_end:
            self.letter.append((self.number, event.kind, dict(event.values)))
        if event.kind != "step" or monotonic() - self.last_post > BETWEEN_LETTERS:
            ray.get(self.mailbox.post.remote(self.letter))
            self.letter, self.last_post = [], monotonic()
