"""A service on a real port, run by a thread, and a real browser to look at it."""

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from repcl.serving.app import create_app
from repcl.serving.options import Options

IS_REQUIRED = os.environ.get("REPCL_REQUIRE_BROWSER") == "1"
PATIENCE = 60.0
FLAGS = [
    "--no-sandbox",  # which needs rights that containers do not give
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def chromium() -> str | None:
    """Where the browser is, if there is one."""
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def serving(options: Options) -> Iterator[str]:
    """Serve a model, and give its address."""
    gate = create_app(options)
    server = _Server(uvicorn.Config(gate, log_level="error", access_log=False))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert server.can_be_asked.wait(PATIENCE)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            gate.service.jobs.end_streams()
            server.should_exit = True
            thread.join(PATIENCE)


class _Server(uvicorn.Server):
    """Tells when it can be asked."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.can_be_asked = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.can_be_asked.set()
