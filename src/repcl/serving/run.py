"""Runs a service: finds its port, says where it is, ends when it is told to, without losing a request."""

import errno
import logging
import os
import signal
import socket
import sys
import threading
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from repcl.allocator import share_one_heap
from repcl.errors import RepclError, shortened
from repcl.serving.app import create_app
from repcl.serving.gate import Gate
from repcl.serving.options import Options, bracketed, is_every_address
from repcl.serving.service import Service

GRACE_SECONDS = 30
BACKLOG = 2048


def serve(
    options: Options, port: int, *, tell: Callable[[str, Service], None], opens_page: bool = False
) -> None:
    """Serve a model until SIGTERM or Ctrl-C.

    Args:
        options: how it is served.
        port: to listen at; 0 for any that is free.
        tell: hears the address once it can be asked.
        opens_page: whether to show the page in a browser.
    """
    listening = _listening(options.host, port)
    with listening:
        use_few_threads()
        share_one_heap()
        warnings.simplefilter("ignore")  # warnings quote texts, and nobody reads a service's terminal
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        logging.getLogger("repcl.serving").setLevel(logging.INFO)
        app = create_app(options)
        address = f"http://{_shown_host(options.host)}:{listening.getsockname()[1]}/"

        def started() -> None:
            tell(address, app.service)
            if opens_page:  # some browsers keep whoever starts them waiting
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        config = uvicorn.Config(
            app,
            access_log=False,  # it would repeat what users typed
            log_level="warning",
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
            h11_max_incomplete_event_size=64 << 10,
        )
        try:
            _Server(config, app, started).run(sockets=[listening])
        finally:
            app.service.jobs.process.kill()  # also where Ctrl-C was pressed twice


def use_few_threads() -> None:
    """Compute with all cores but one, which the web server and the learning process need."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(max(1, cores - 1))


class _Server(uvicorn.Server):
    """Ends with exit code 0 when it is told to end, and lets nobody wait for events then."""

    def __init__(self, config: uvicorn.Config, gate: Gate, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._gate = gate
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say where the service is as soon as it can be asked."""
        await super().startup(sockets)
        if self.started:
            self._started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and Ctrl-C; uvicorn would then end the process by the same signal."""
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; whoever listens to a job hears no more, or the server would wait for them."""
        self._gate.service.jobs.end_streams()
        super().handle_exit(sig, frame)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; whatever is in the way is said in one sentence."""
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][
            0
        ]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            sentence = f"Port {port} is in use: choose another one with --port."
        elif number in (errno.EACCES, errno.EPERM):
            sentence = f"Port {port} may not be used by this user: choose one above 1023 with --port."
        else:
            reason = getattr(error, "strerror", None) or error
            sentence = f"Nobody can listen at {shortened(host)} ({reason}): give an address of this machine."
        raise RepclError(sentence) from error


def _shown_host(host: str) -> str:
    return "127.0.0.1" if is_every_address(host) else bracketed(host)
