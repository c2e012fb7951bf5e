"""Commands and started processes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import httpx

from .. import _content
from .._arguments import segment, shown, signal_number
from .._call import Call, nothing
from .._wire import known
from ..errors import Invalid
from ..exec_result import ExecResult
from ..processes import LiveProcesses, LogStream, ProcessInfo, TerminalInfo
from .at import At

#: A shell's source line, or a program with its arguments.
Command = str | Sequence[str]

#: Told text that a command wrote.
OnOutput = Callable[[str], object]
#: The same; what it returns is awaited where it can be.
OnOutputAsync = Callable[[str], object]

#: Longer input goes over a WebSocket, in pieces. A request carries it in base64, beside all that a command may be else: the
#: server takes requests of up to 16 MiB, and a WebSocket's first message, the command, of up to 4 MiB.
MOST_INPUT_IN_A_REQUEST_BYTES = 1024 * 1024


def what(command: Command) -> dict[str, Any]:
    """A command on the wire."""
    if isinstance(command, str):
        return {"command": command}
    if isinstance(command, bytes | bytearray | Mapping) or not isinstance(command, Iterable):
        raise _no_command(command)
    words = list(command)
    for word in words:
        if not isinstance(word, str):
            raise _no_command(word, "a list that has ")
    return {"argv": words}


def _no_command(given: object, within: str = "") -> Invalid:
    reason = f"a command is a text for the shell, or a list of words such as ['python3', 'main.py'], not {within}{shown(given)}"
    return Invalid(f"run a command: {reason}", reason=reason, field="command")


def exec_body(
    command: Command,
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    user: str | None,
    timeout_ms: int | None,
    max_output_bytes: int | None,
) -> dict[str, Any]:
    """What to run and how, on the wire."""
    given = {
        "cwd": cwd,
        "env": dict(env) if env else None,
        "user": user,
        "timeout_ms": timeout_ms,
        "max_output_bytes": max_output_bytes,
    }
    return what(command) | {name: value for name, value in given.items() if value is not None}


def as_bytes(stdin: str | bytes | None) -> bytes:
    """What a command reads."""
    return b"" if stdin is None else _content.as_bytes(stdin, "run a command", "stdin")


def fits_in_a_request(stdin: bytes) -> bool:
    """Whether a buffered request can carry the command's input."""
    return len(stdin) <= MOST_INPUT_IN_A_REQUEST_BYTES


def exec(at: At, body: dict[str, Any], stdin: bytes) -> Call[ExecResult]:
    """Runs a command to its end."""
    if stdin:
        body = {**body, "stdin_base64": base64.b64encode(stdin).decode()}
    return Call("POST", at.path("/exec"), lambda response: ExecResult.of_wire(response.json()), at.params(), body)


def keep(at: At, body: dict[str, Any], stdin: bytes, linger_ms: int | None) -> Call[None]:
    """Runs a command that is kept; the answer is a stream of events."""
    if stdin:
        body = {**body, "stdin_base64": base64.b64encode(stdin).decode()}
    return Call("POST", at.path("/exec/stream"), nothing, at.params(linger_ms=linger_ms), body)


def attach(at: At, command: str, after: int) -> Call[None]:
    """Takes up the stream of a kept command behind one of its events."""
    headers = {"last-event-id": str(after)} if after else None
    return Call("GET", at.path(f"/exec/stream/{segment(command, 'a command')}"), nothing, at.params(), headers=headers)


def end_kept(at: At, command: str) -> Call[None]:
    """Kills a kept command."""
    return Call("DELETE", at.path(f"/exec/stream/{segment(command, 'a command')}"), nothing, at.params())


def open_terminal(at: At, command: str | None, cwd: str | None, rows: int, cols: int) -> Call[TerminalInfo]:
    """Opens a terminal."""
    given = {"command": command, "cwd": cwd}
    body = {"size": {"rows": rows, "cols": cols}} | {name: value for name, value in given.items() if value is not None}
    return Call("POST", at.path("/terminals"), lambda response: known(TerminalInfo, response.json()), at.params(), body)


def terminals(at: At) -> Call[list[TerminalInfo]]:
    """Lists terminals."""

    def read(response: httpx.Response) -> list[TerminalInfo]:
        return [known(TerminalInfo, one) for one in response.json()["terminals"]]

    return Call("GET", at.path("/terminals"), read, at.params())


def end_terminal(at: At, terminal: str) -> Call[None]:
    """Ends a terminal."""
    return Call("DELETE", at.path(f"/terminals/{segment(terminal, 'a terminal')}"), nothing, at.params())


def terminal_socket(terminal: str) -> str:
    """The path of a terminal's WebSocket."""
    return f"/terminals/{segment(terminal, 'a terminal')}/socket"


def start(
    at: At,
    command: Command,
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    user: str | None,
    stdin: str | bytes | None,
    stdin_follows: bool,
    timeout_ms: int | None,
    pty: tuple[int, int] | None,
) -> Call[ProcessInfo]:
    """Starts a process that outlives the call."""
    body = exec_body(command, cwd=cwd, env=env, user=user, timeout_ms=timeout_ms, max_output_bytes=None)
    body |= _input(stdin)
    if stdin_follows:
        body["stdin_follows"] = True
    if pty is not None:
        body["pty"] = {"rows": pty[0], "cols": pty[1]}
    return Call("POST", at.path("/processes"), _process, at.params(), body)


def write_stdin(at: At, process: ProcessInfo | str, data: str | bytes, end: bool) -> Call[None]:
    """Writes to a process whose input follows."""
    given = _content.as_bytes(data, "write to a process")
    return Call("POST", _of(at, process, "stdin"), nothing, at.params(), _input(given) | {"end": end})


def _input(data: str | bytes | None) -> dict[str, Any]:
    given = as_bytes(data)
    return {"stdin_base64": base64.b64encode(given).decode()} if given else {}


def processes(at: At) -> Call[list[ProcessInfo]]:
    """Lists started processes."""

    def read(response: httpx.Response) -> list[ProcessInfo]:
        return [ProcessInfo.of_wire(one) for one in response.json()["processes"]]

    return Call("GET", at.path("/processes"), read, at.params())


def live(at: At) -> Call[LiveProcesses]:
    """Lists everything that runs."""
    return Call("GET", at.path("/live"), lambda response: LiveProcesses.of_wire(response.json()), at.params())


def wait(at: At, process: ProcessInfo | str, observe: bool) -> Call[ProcessInfo]:
    """Waits for a process's end."""
    return Call("GET", _of(at, process, "wait"), _process, at.params(observe=observe))


def signal(at: At, process: ProcessInfo | str, name_or_number: int | str | None) -> Call[None]:
    """Sends a signal, or kills the tree."""
    body = {} if name_or_number is None else {"signal": signal_number(name_or_number, "kill a process")}
    return Call("POST", _of(at, process, "signal"), nothing, at.params(), body)


def logs(
    at: At,
    process: ProcessInfo | str,
    stream: LogStream | None,
    offset: int | None,
    tail_bytes: int | None,
    tail_lines: int | None,
    limit_bytes: int | None,
    follow: bool,
) -> Call[None]:
    """Reads a log; the answer is a stream of events."""
    query = at.params(
        stream=stream, offset=offset, tail_bytes=tail_bytes, tail_lines=tail_lines, limit_bytes=limit_bytes,
        follow=follow,
    )  # fmt: skip
    return Call("GET", _of(at, process, "logs"), nothing, query)


def _of(at: At, process: ProcessInfo | str, rest: str) -> str:
    process_id = process.id if isinstance(process, ProcessInfo) else process
    return at.path(f"/processes/{segment(process_id, 'a process')}/{rest}")


def _process(response: httpx.Response) -> ProcessInfo:
    return ProcessInfo.of_wire(response.json())
