"""A server with agents over sandboxes in memory, a stand-in for their model, and the keys of two tenants."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model_server import model_server

from eyot._local_server import find_binary


class AgentServer:
    """A server with the agents `helper`, and `private`, which no key may start."""

    def __init__(self, folder: Path, model_url: str) -> None:
        binary = find_binary()
        assert binary is not None
        state = ["--state", str(folder / "state")]
        keys = [binary, *state, "--quiet", "keys", "create"]
        #: A key of the pool `default`, and one of another.
        self.key, self.other_key = (self._said([*keys, pool, "--pool", pool]).split()[-1] for pool in ("default", "other"))
        self._log = folder / "log"
        agents = folder / "agents"
        agents.mkdir()
        #: The file of the agent.
        self.helper = agents / "helper.md"
        self.helper.write_text("---\ndescription: Helps\nwebhook: true\n---\n\nYou help.\n")
        (agents / "private.md").write_text("You help nobody.\n")
        serve = ["serve", "--agents", str(agents), "--model", "openai-completions/stand-in"]
        self._command = [binary, *state, "--provider", "memory", *serve]
        self._environment = {**os.environ, "OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "none"}
        self._address = "127.0.0.1:0"
        self.start()

    @staticmethod
    def _said(command: list[str]) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def start(self) -> None:
        """Starts it, where it was."""
        command = [*self._command, "--listen", self._address]
        with self._log.open("w") as log:
            self._child = subprocess.Popen(command, stderr=log, env=self._environment)
        #: Its address.
        self.url = self.said(r"serving at (http://\S+:\d+)")
        self._address = self.url.removeprefix("http://")

    def said(self, pattern: str) -> str:
        """Waits until it says this, and gives the first group."""
        deadline = time.monotonic() + 30
        while (found := re.search(pattern, self._log.read_text())) is None:
            assert self._child.poll() is None and time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.02)
        return found[1]

    def crash(self) -> None:
        """Ends it as a crash would."""
        self._child.kill()
        self._child.wait()

    def close(self) -> None:
        """Ends it."""
        self._child.terminate()
        self._child.wait()


@contextmanager
def agent_server() -> Iterator[AgentServer]:
    """Runs one."""
    with tempfile.TemporaryDirectory(prefix="eyot-agents-") as folder, model_server() as model_url:
        server = AgentServer(Path(folder), model_url)
        try:
            yield server
        finally:
            server.close()
