"""A sandbox: commands, files, processes."""

from __future__ import annotations

import builtins
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from ._arguments import port_number
from ._calls import commands, files, network, sandboxes, snapshots
from ._calls.at import At
from ._calls.commands import Command, OnOutput
from ._content import Pieces, as_body, check_files
from ._exec_socket import TextDecoder
from ._folders import packed, partial_copy, permissions_of
from ._foreign_names import OfASandbox, kills_a_process
from ._keywords import names_the_right_keyword
from .exec_result import ExecResult
from .exec_stream import ExecStream
from .files import DirEntry, FileStat, GlobResult, GrepResult, WatchEvent, WriteMode
from .kept_command import KeptCommand
from .network import EgressDecision, EgressRules, Preview, PublishedPort
from .port_forward import PortForward, forwarded_in_thread
from .processes import LiveProcesses, LogChunk, LogStream, ProcessInfo, TerminalInfo, Usage
from .sandbox_info import SandboxInfo
from .snapshots import FileChanges, ImageCommitted, SnapshotInfo
from .terminal import Terminal

if TYPE_CHECKING:
    from .client import Client


class Sandbox(OfASandbox):
    """A sandbox, by its id (or its name). Paths are absolute, or relative to its working directory.

    Used as a context manager, it is destroyed at the end of the block.
    """

    def __init__(self, client: Client, at: At, info: SandboxInfo | None = None) -> None:
        self._client = client
        self._at = At(info.id) if info else at
        #: What was known of it when it was made or looked up; `None` for one that was only named.
        self.info = info

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"Sandbox({self.id!r})"

    @property
    def id(self) -> str:
        """Its id, or the name by which it was asked for."""
        return self._at.id_or_name

    def refresh(self) -> SandboxInfo:
        """Asks what is known of it now; it is not woken."""
        self.info = self._client._send(sandboxes.get(self._at))
        return self.info

    # Commands

    @names_the_right_keyword
    def exec(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout_ms: int | None = None,
        stdin: str | bytes | None = None,
        max_output_bytes: int | None = None,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
    ) -> ExecResult:
        """Runs a command to its end: a string by the shell, a list as a program with its arguments.

        A command that fails is a result; its `check` raises. An exception that breaks the call off (such as KeyboardInterrupt)
        ends the command. `on_stdout` and `on_stderr` are told what it writes as it comes, as text.
        """
        body = commands.exec_body(
            command, cwd=cwd, env=env, user=user, timeout_ms=timeout_ms, max_output_bytes=max_output_bytes
        )
        given = commands.as_bytes(stdin)
        told = {"stdout": on_stdout, "stderr": on_stderr}
        is_told = on_stdout is not None or on_stderr is not None
        if commands.fits_in_a_request(given) and not is_told:
            return self._client._send(commands.exec(self._at, body, given))
        with self._client._exec_stream(self._at, body, stdin=bool(given), pty=None, keeps_output=is_told) as stream:
            if given:
                stream.write(given)
                stream.close_stdin()
            for output in stream:
                if (tell := told[output.type]) is not None:
                    tell(output.text)
            return stream.wait()

    @names_the_right_keyword
    def exec_stream(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout_ms: int | None = None,
        stdin: bool = False,
        pty: tuple[int, int] | None = None,
        max_output_bytes: int | None = None,
        read_timeout_ms: int | None = None,
    ) -> ExecStream:
        """Runs a command and gives its output as it comes.

        `stdin`: something will be written to it; without it the command reads end of file. `pty`: it has a terminal of so
        many rows and columns. `read_timeout_ms`: reading raises `TimedOut` when nothing came for so long. Use it in a
        `with` block.
        """
        body = commands.exec_body(
            command, cwd=cwd, env=env, user=user, timeout_ms=timeout_ms, max_output_bytes=max_output_bytes
        )
        return self._client._exec_stream(self._at, body, stdin=stdin, pty=pty, read_timeout_ms=read_timeout_ms)

    @names_the_right_keyword
    def keep(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout_ms: int | None = None,
        stdin: str | bytes | None = None,
        linger_ms: int | None = None,
        read_timeout_ms: int | None = None,
    ) -> KeptCommand:
        """Runs a command that outlives the connection and the server, and gives its output as it comes.

        One that nobody reads for `linger_ms` (30 s; 10 minutes at the most) is killed. It waits while it is 1 MiB ahead of its
        reader. Use it in a `with` block.
        """
        body = commands.exec_body(command, cwd=cwd, env=env, user=user, timeout_ms=timeout_ms, max_output_bytes=None)
        call = commands.keep(self._at, body, commands.as_bytes(stdin), linger_ms)
        return KeptCommand(self._client._numbered_events(call, read_timeout_ms), self._kill_kept)

    def attach(self, command: str, *, after: int = 0, read_timeout_ms: int | None = None) -> KeptCommand:
        """Reads on from a kept command, by its id: what comes behind the event `after`, or all that is kept."""
        events = self._client._numbered_events(commands.attach(self._at, command, after), read_timeout_ms)
        return KeptCommand(events, self._kill_kept, command, after)

    def _kill_kept(self, command: str) -> None:
        self._client._send(commands.end_kept(self._at, command))

    # Terminals

    def open_terminal(
        self, command: str | None = None, *, cwd: str | None = None, rows: int = 24, cols: int = 80
    ) -> TerminalInfo:
        """Opens a terminal that outlives the connection and the server, with a shell or a command; see `attach_terminal`."""
        return self._client._send(commands.open_terminal(self._at, command, cwd, rows, cols))

    def terminals(self) -> list[TerminalInfo]:
        """The terminals, oldest first. Asking wakes nothing."""
        return self._client._send(commands.terminals(self._at))

    def attach_terminal(self, terminal: TerminalInfo | str) -> Terminal:
        """Attaches to a terminal, by its id, in the place of who was attached. Use it in a `with` block."""
        terminal_id = terminal.id if isinstance(terminal, TerminalInfo) else terminal
        return Terminal(self._client._websocket(self._at, commands.terminal_socket(terminal_id)), terminal_id)

    def end_terminal(self, terminal: TerminalInfo | str) -> None:
        """Ends a terminal with all that runs in it."""
        terminal_id = terminal.id if isinstance(terminal, TerminalInfo) else terminal
        self._client._send(commands.end_terminal(self._at, terminal_id))

    # Processes

    @names_the_right_keyword
    def start(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: str | bytes | None = None,
        stdin_follows: bool = False,
        timeout_ms: int | None = None,
        pty: tuple[int, int] | None = None,
    ) -> ProcessInfo:
        """Starts a process that outlives the call, the connection and the server. Its output is kept as a log.

        `stdin`: its input, at most 64 KiB; with `stdin_follows` more comes by `write_stdin`. `timeout_ms`: it is killed with
        its whole tree when it has not ended by then. `pty`: it has a terminal of so many rows and columns.
        """
        call = commands.start(
            self._at, command, cwd=cwd, env=env, user=user,
            stdin=stdin, stdin_follows=stdin_follows, timeout_ms=timeout_ms, pty=pty,
        )  # fmt: skip
        return self._client._send(call)

    def write_stdin(self, process: ProcessInfo | str, data: str | bytes, *, end: bool = False) -> None:
        """Writes to a process that was started with `stdin_follows`, at most 64 KiB; with `end`, end of file follows."""
        self._client._send(commands.write_stdin(self._at, process, data, end))

    def processes(self) -> list[ProcessInfo]:
        """The started processes, oldest first; of those that ended, the last 64."""
        return self._client._send(commands.processes(self._at))

    def live_processes(self) -> LiveProcesses:
        """Everything that runs in it, whoever started it; asking is no use of it."""
        return self._client._send(commands.live(self._at))

    def wait(self, process: ProcessInfo | str, *, observe: bool = False) -> ProcessInfo:
        """Waits until a started process has ended. With `observe` it only looks on: the sandbox may fall asleep meanwhile."""
        return self._client._send(commands.wait(self._at, process, observe))

    @kills_a_process
    def kill(self, process: ProcessInfo | str, signal: int | str | None = None) -> None:
        """Kills a started process with its tree, or sends its group a signal: a name such as `TERM`, or a Linux number."""
        self._client._send(commands.signal(self._at, process, signal))

    def logs(
        self,
        process: ProcessInfo | str,
        *,
        stream: LogStream | None = None,
        offset: int | None = None,
        tail_bytes: int | None = None,
        tail_lines: int | None = None,
        limit_bytes: int | None = None,
        follow: bool = False,
        read_timeout_ms: int | None = None,
    ) -> Iterator[LogChunk]:
        """Reads a process's log, from its beginning or from a part before its end; with `follow` until the process ends."""
        call = commands.logs(self._at, process, stream, offset, tail_bytes, tail_lines, limit_bytes, follow)
        texts = TextDecoder()
        with self._client._events(call, read_timeout_ms) as events:
            for event in events:
                if "data" in event:
                    yield LogChunk.of_wire(event, texts)

    # Files

    def read_file(self, path: str, *, offset: int | None = None, limit: int | None = None) -> bytes:
        """Reads a file, or a part of it."""
        return self._client._send(files.read(self._at, path, offset, limit))

    @contextmanager
    def read_stream(self, path: str, *, offset: int | None = None, limit: int | None = None) -> Iterator[Iterator[bytes]]:
        """The same in pieces, as they come, within the `with` block: a file that need not fit into memory."""
        with self._client._bytes(files.read(self._at, path, offset, limit)) as pieces:
            yield pieces

    def read_text(self, path: str) -> str:
        """Reads a file as UTF-8; raises UnicodeDecodeError if it is none."""
        return self.read_file(path).decode()

    def write_file(
        self,
        path: str,
        data: str | Pieces,
        *,
        mode: WriteMode = "replace",
        permissions: int | None = None,
        max_file_bytes: int | None = None,
    ) -> int:
        """Writes a file and makes missing parents; a reader sees the old or the new content. Returns its size in bytes.

        `data`: the whole, or an iterable of its pieces, such as a file that is open in binary mode.
        """
        content = as_body(data, f"write file `{path}`")
        return self._client._send(files.write(self._at, path, content, mode, permissions, max_file_bytes))

    def append_file(self, path: str, data: str | Pieces) -> int:
        """Adds to the end of a file, which is made if it is missing. Returns its size in bytes."""
        return self.write_file(path, data, mode="append")

    def write_files(self, files: Mapping[str, str | bytes]) -> None:
        """Writes several files, by their paths, as `write_file` writes each."""
        check_files(files, "write files")
        for path, data in files.items():
            self.write_file(path, data)

    def upload(self, source: str | PathLike[str], target: str) -> None:
        """Copies a file or a folder of this machine to a path in the sandbox. Parents are made, and what is there is replaced.

        A folder keeps its permissions and links; files that are already in a folder of that path stay.
        """
        if not Path(source).is_dir():
            with open(source, "rb") as file:
                self.write_file(target, file, permissions=permissions_of(source))
            return
        with packed(source) as tar:
            self.mkdir(target, recursive=True)
            self.tar_in(target, tar)

    def download(self, source: str, target: str | PathLike[str]) -> None:
        """Copies a file or a folder of the sandbox to a path on this machine. Parents are made.

        A file that is there is replaced. A folder must be new here, or empty. One with links that lead out of it is refused.
        """
        with partial_copy(target) as copy:
            if self.stat(source).is_directory:
                with self.tar_out_stream(source) as pieces:
                    copy.unpack(pieces)
            else:
                with self.read_stream(source) as pieces:
                    copy.write(pieces)

    def exists(self, path: str) -> bool:
        """Whether something is there; a dangling link is not."""
        return self._client._send(files.exists(self._at, path))

    def stat(self, path: str) -> FileStat:
        """What is known of a file."""
        return self._client._send(files.stat(self._at, path))

    def list(self, path: str = ".") -> list[DirEntry]:
        """What is in a directory, dot files included, sorted by name."""
        return self._client._send(files.list_directory(self._at, path))

    def mkdir(self, path: str, *, recursive: bool = False) -> None:
        """Makes a directory; with `recursive` its parents too, and one that is there is fine."""
        self._client._send(files.mkdir(self._at, path, recursive))

    def remove(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Removes a file, a link, or with `recursive` a directory; with `force` a path that is missing is fine."""
        self._client._send(files.remove(self._at, path, recursive, force))

    def rename(self, source: str, target: str) -> None:
        """Moves a file or a directory, replacing a file that is in the way."""
        self._client._send(files.rename(self._at, source, target))

    def glob(
        self, pattern: str, path: str | None = None, *, hidden: bool = False, max_results: int | None = None
    ) -> GlobResult:
        """Finds files by a pattern such as `**/*.py`, relative to `path`. By default 1,000 at the most."""
        return self._client._send(files.glob(self._at, pattern, path, hidden, max_results))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        include: str | None = None,
        max_matches: int | None = None,
        max_line_bytes: int | None = None,
    ) -> GrepResult:
        """Finds lines that match a regular expression, or with `literal` a text. By default 1,000 at the most."""
        call = files.grep(self._at, pattern, path, literal, ignore_case, include, max_matches, max_line_bytes)
        return self._client._send(call)

    def tar_out(self, path: str = ".") -> bytes:
        """Packs a file or a tree as tar; names begin with the last segment of the path."""
        return self._client._send(files.tar_out(self._at, path))

    @contextmanager
    def tar_out_stream(self, path: str = ".") -> Iterator[Iterator[bytes]]:
        """The same in pieces, as they come, within the `with` block."""
        with self._client._bytes(files.tar_out(self._at, path)) as pieces:
            yield pieces

    def tar_in(self, path: str, tar: Pieces) -> int:
        """Unpacks a tar, given as `write` takes a file, below a directory. Returns how many entries were made."""
        return self._client._send(files.tar_in(self._at, path, as_body(tar, "unpack", "tar")))

    @contextmanager
    def watch(
        self, path: str = ".", *, recursive: bool = True, read_timeout_ms: int | None = None
    ) -> Iterator[Iterator[WatchEvent]]:
        """Tells what happens at and below a path from the beginning of the `with` block on."""
        with self._client._events(files.watch(self._at, path, recursive), read_timeout_ms) as events:
            yield map(WatchEvent.of_wire, events)

    # Network

    def egress_rules(self) -> EgressRules:
        """Where it may connect to, with the network `egress`."""
        return self._client._send(network.rules(self._at))

    def set_egress_rules(self, *, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> None:
        """Replaces the rules. Connections that they do not allow are closed."""
        self._client._send(network.set_rules(self._at, allow, deny))

    def egress_decisions(
        self, *, last: int | None = None, follow: bool = False, read_timeout_ms: int | None = None
    ) -> Generator[EgressDecision, None, None]:
        """What was decided about attempts to leave, oldest first; with `follow` also what comes, until it is closed."""
        with self._client._events(network.decisions(self._at, last, follow), read_timeout_ms) as events:
            for event in events:
                yield EgressDecision.of_wire(event)

    def published_ports(self) -> builtins.list[PublishedPort]:
        """Where the ports are that its spec asked to be published on the server's host."""
        return self._client._send(network.published_ports(self._at))

    def preview(self, port: int, *, public: bool = False, ttl_ms: int | None = None) -> Preview:
        """Makes one of its ports a web page of the server's, for 12 hours or `ttl_ms`. Not that wakes it, but a visit.

        A server that the client started has no address for browsers: `Unsupported`. `forward` makes it a port of this machine.
        """
        return self._client._send(network.preview(self._at, port, public, ttl_ms, own_server=self._client._has_own_server))

    def end_previews(self, port: int) -> None:
        """Ends all previews of a port, with what is open by them."""
        self._client._send(network.end_previews(self._at, port))

    @contextmanager
    def forward(self, port: int) -> Iterator[PortForward]:
        """Makes one of its ports a port of this host's loopback, within the `with` block. A connection wakes it."""
        port_number(port, "forward")
        with forwarded_in_thread(partial(self._client._dial, self._at, port), port) as forward:
            yield forward

    # The sandbox itself

    @names_the_right_keyword
    def update(
        self,
        *,
        labels: Mapping[str, str | None] | None = None,
        lifecycle: Mapping[str, Any] | None = None,
        egress: Mapping[str, Sequence[str]] | None = None,
    ) -> SandboxInfo:
        """Changes labels (`None` removes one) and deadlines: `ttl_ms`, counted from the create, `idle_timeout_ms`, `on_idle`.

        `None` is no deadline. `egress`: the rules, `allow` and `deny`, as `set_egress_rules` replaces them. What is absent
        stays, and what is wrong changes nothing.
        """
        self.info = self._client._send(sandboxes.update(self._at, labels, lifecycle, egress))
        return self.info

    def usage(self) -> Usage:
        """What it uses now; asking is no use of it."""
        return self._client._send(sandboxes.usage(self._at))

    def sleep(self) -> None:
        """Puts it to sleep: processes end, files stay, and any use wakes it."""
        self._client._send(sandboxes.sleep(self._at))

    def wake(self) -> SandboxInfo:
        """Wakes it; one that runs is fine."""
        self.info = self._client._send(sandboxes.wake(self._at))
        return self.info

    @names_the_right_keyword
    def snapshot(self, *, name: str | None = None, labels: Mapping[str, str] | None = None, stop: bool = False) -> SnapshotInfo:
        """Keeps its files as they are. One that runs is put to sleep for it and woken again, with its services.

        One in which commands run is refused with `Conflict`, unless `stop` ends them.
        """
        return self._client._send(snapshots.take(self._at, name, labels, stop))

    @names_the_right_keyword
    def rollback(self, snapshot: str, *, stop: bool = False) -> builtins.list[str]:
        """Gives it the files of a snapshot, by name or id. What changed since is lost. Returns the commands that were ended."""
        return self._client._send(snapshots.rollback(self._at, snapshot, stop))

    @names_the_right_keyword
    def fork(self, *, count: int = 1, name: str | None = None, stop: bool = False) -> builtins.list[Sandbox]:
        """Makes sandboxes that begin with its present files, and have its spec."""
        made = self._client._send(snapshots.fork(self._at.pool, self._at.id_or_name, count, name, stop))
        return [Sandbox(self._client, at) for at in made]

    @names_the_right_keyword
    def commit(self, reference: str, *, stop: bool = False) -> ImageCommitted:
        """Makes an image of its present files, which `image` of a `create` takes: what it was made from, and one layer more."""
        return self._client._send(snapshots.commit(self._at.pool, self._at.id_or_name, reference, stop))

    @names_the_right_keyword
    def diff(self, *, source: str | None = None, path: str | None = None, text: bool = False) -> FileChanges:
        """What it has changed since its last snapshot, or since `source`, a snapshot or a sandbox; `text` adds diffs."""
        own = self._at.id_or_name
        first, second = (own, None) if source is None else (source, own)
        return self._client._send(snapshots.diff(self._at.pool, first, second, path, text))

    def destroy(self) -> None:
        """Removes it with everything in it. May be called twice."""
        self._client._end(sandboxes.destroy(self._at))

    def abandon(self) -> None:
        """Undoes its create, where that could not be finished.

        As `destroy`, but a persistent workspace that was there before stays, whatever the spec says. Only while it runs.
        """
        self._client._end(sandboxes.abandon(self._at))
