"""A server of one's own: `eyot serve` as a child process, on a unix socket that nobody else can open.

Its sandboxes are where the command `eyot` has them (`EYOT_STATE`), and outlive it as they outlive every Eyot process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from ._server_address import ServerAddress
from .errors import Unavailable

_START_TIMEOUT_MS = 15_000
_STOP_TIMEOUT_MS = 15_000
_FIRST_PAUSE_MS = 2
_LONGEST_PAUSE_MS = 50


def find_binary() -> str | None:
    """The server's binary: `EYOT_BIN`, else `eyot` on the PATH; `None`: it is not installed."""
    return os.environ.get("EYOT_BIN") or shutil.which("eyot")


class LocalServer:
    """A running server, which ends with `close` or with this process, even when that is killed.

    `provider`: where its sandboxes come from; `state_dir`: where it keeps them; `allow_host_networks`: specs may use the host's
    own network, and name those of its container engine; `agents_dir`: the folder of its agents, files NAME.md; `model`: that of
    agents whose file names none.
    """

    def __init__(
        self,
        binary: str | None = None,
        *,
        provider: str | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        allow_host_networks: bool = False,
        agents_dir: str | os.PathLike[str] | None = None,
        model: str | None = None,
    ) -> None:
        self._first = [*_option("--provider", provider), *_option("--state", state_dir)]
        self._last = [*_option("--agents", agents_dir), *_option("--model", model)]
        self._last += ["--allow-host-networks"] if allow_host_networks else []
        chosen = binary or find_binary()
        if chosen is None:
            raise Unavailable(
                "find a server: no URL was given, and the program `eyot` is not installed",
                hint="give a URL, set EYOT_SERVER, or install eyot and have it on PATH or in EYOT_BIN",
            )
        # Without a name: a server that ends removes the folder with all that is in it, before the client has read it.
        self._log = tempfile.TemporaryFile(prefix="eyot-")
        self._folder = Path(tempfile.mkdtemp(prefix="eyot-"))  # mode 0700
        self._lock = threading.Lock()
        self._owner_pid = os.getpid()
        socket_path = self._folder / "server.sock"
        self.address = replace(ServerAddress.parse(f"unix:{socket_path}"), origin="own")
        atexit.register(self.close)
        try:
            self._child = self._spawn(chosen, socket_path)
            self._wait_until_ready(socket_path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the server. Its sandboxes stay. May be called twice. A fork of the process that started it ends nothing."""
        if os.getpid() != self._owner_pid:
            return
        with self._lock:
            atexit.unregister(self.close)
            child = getattr(self, "_child", None)
            if child is not None and child.poll() is None:
                child.terminate()
                try:
                    child.wait(_STOP_TIMEOUT_MS / 1000)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._log.close()

    def _spawn(self, binary: str, socket_path: Path) -> subprocess.Popen[bytes]:
        # It is the server that is wanted, not a client of another one that a variable or a configuration file names.
        command = [binary, *self._first, "--server", "", "serve", *self._last, "--listen", f"unix:{socket_path}"]
        command += ["--no-keys", "--parent-pid", str(os.getpid())]
        environment = {name: value for name, value in os.environ.items() if name not in ("EYOT_SERVER", "EYOT_API_KEY")}
        try:
            # Apart from the terminal's process group: the client ends it, not the ^C that the client may survive.
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"start a local server: `{binary}` can't be run: {error.strerror}") from error

    def _wait_until_ready(self, socket_path: Path) -> None:
        deadline, pause_ms = time.monotonic() + _START_TIMEOUT_MS / 1000, _FIRST_PAUSE_MS
        while not _answers(socket_path, deadline):
            # What it said is read after its end, when all of it is there.
            if self._child.poll() is not None:
                raise _ended(self._child.returncode, self._said())
            if time.monotonic() > deadline:
                raise Unavailable(f"start a local server: not ready after {_START_TIMEOUT_MS} ms{_quoted(self._said())}")
            time.sleep(pause_ms / 1000)
            pause_ms = min(pause_ms * 2, _LONGEST_PAUSE_MS)

    def _said(self) -> str:
        """Returns what the server wrote."""
        descriptor = self._log.fileno()
        # The server writes where the file is positioned, so reading must not move that.
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace").strip()


def _ended(code: int, said: str) -> Unavailable:
    """The error of a server that ended on its way, in its own words: `eyot: SENTENCE`, perhaps `hint: SENTENCE`, then usage."""
    _, own, words = f"\n{said}".rpartition("\neyot: ")
    if not own:
        return Unavailable(f"start a local server: it exited with {code}{_quoted(said)}")
    sentence, *lines = words.splitlines()
    hints = [line.strip() for line in lines]
    hint = next((line.removeprefix("hint: ") for line in hints if line.startswith("hint: ")), None)
    values = next((line.strip("[]") for line in hints if line.startswith("[possible values: ")), None)
    return Unavailable(f"start a local server: {sentence}", reason=sentence, hint=hint or values)


def _quoted(said: str) -> str:
    """The end of a sentence: what a server wrote, if anything."""
    return f"; it said: {said[-1000:]}" if said else ""


def _option(name: str, value: str | os.PathLike[str] | None) -> list[str]:
    return [] if value is None else [name, os.fspath(value)]


def _answers(path: Path, deadline: float) -> bool:
    """True if a server answers by then. One takes connections before it is ready, and may end without an answer."""
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(str(path)) != 0:
            return False
        probe.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            probe.sendall(b"GET /v1/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            return probe.recv(1) != b""
        except OSError:
            return False
