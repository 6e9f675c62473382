"""A service in a process of its own, to be ended and killed."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.serving.conftest import TOKEN


class Running:
    """`repcl serve`, started and ready."""

    def __init__(self, model: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "repcl",
            "serve",
            str(model),
            "--port",
            "0",
            "--device",
            "cpu",
            *options,
        ]
        given = os.environ | {"REPCL_TOKEN": TOKEN, "COLUMNS": "300", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=given
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"at (http://\S+/)", said)
        assert found is not None, said
        self.address = found[1]

    def ask(self, path: str, body: Any = None) -> Any:
        """What it answers; a body makes it a POST."""
        request = urllib.request.Request(
            f"{self.address}v1/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return json.load(error)

    def page(self, path: str) -> str:
        """What it answers, where that is no JSON."""
        with urllib.request.urlopen(f"{self.address}v1/{path}", timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def end(self, signal: int) -> int:
        """Send it a signal, and wait for its exit code."""
        self.process.send_signal(signal)
        code = self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code
