"""A sandbox, for async code: commands, files, processes."""

from __future__ import annotations

import asyncio
import builtins
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from ._arguments import port_number
from ._calls import commands, files, network, sandboxes, snapshots
from ._calls.at import At
from ._calls.commands import Command, OnOutputAsync
from ._content import AsyncPieces, as_async_body, check_files
from ._exec_socket import TextDecoder
from ._folders import packed, partial_copy, permissions_of
from ._foreign_names import OfASandbox, kills_a_process
from ._keywords import names_the_right_keyword
from .async_exec_stream import AsyncExecStream
from .async_kept_command import AsyncKeptCommand
from .async_terminal import AsyncTerminal
from .exec_result import ExecResult
from .files import DirEntry, FileStat, GlobResult, GrepResult, WatchEvent, WriteMode
from .network import EgressDecision, EgressRules, Preview, PublishedPort
from .port_forward import PortForward, forwarded
from .processes import LiveProcesses, LogChunk, LogStream, ProcessInfo, TerminalInfo, Usage
from .sandbox_info import SandboxInfo
from .snapshots import FileChanges, ImageCommitted, SnapshotInfo

if TYPE_CHECKING:
    from .async_client import AsyncClient


class AsyncSandbox(OfASandbox):
    """A sandbox, by its id (or its name). Paths are absolute, or relative to its working directory.

    Used as a context manager, it is destroyed at the end of the block.
    """

    def __init__(self, client: AsyncClient, at: At, info: SandboxInfo | None = None) -> None:
        self._client = client
        self._at = At(info.id) if info else at
        #: What was known of it when it was made or looked up; `None` for one that was only named.
        self.info = info

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.destroy()

    def __repr__(self) -> str:
        return f"AsyncSandbox({self.id!r})"

    @property
    def id(self) -> str:
        """Its id, or the name by which it was asked for."""
        return self._at.id_or_name

    async def refresh(self) -> SandboxInfo:
        """Asks what is known of it now; it is not woken."""
        self.info = await self._client._send(sandboxes.get(self._at))
        return self.info

    # Commands

    @names_the_right_keyword
    async def exec(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        timeout_ms: int | None = None,
        stdin: str | bytes | None = None,
        max_output_bytes: int | None = None,
        on_stdout: OnOutputAsync | None = None,
        on_stderr: OnOutputAsync | None = None,
    ) -> ExecResult:
        """Runs a command to its end: a string by the shell, a list as a program with its arguments.

        A command that fails is a result; its `check` raises. Cancelling the task ends the command. `on_stdout` and `on_stderr`,
        which may be coroutine functions, are told what it writes as it comes, as text.
        """
        body = commands.exec_body(
            command, cwd=cwd, env=env, user=user, timeout_ms=timeout_ms, max_output_bytes=max_output_bytes
        )
        given = commands.as_bytes(stdin)
        told = {"stdout": on_stdout, "stderr": on_stderr}
        is_told = on_stdout is not None or on_stderr is not None
        if commands.fits_in_a_request(given) and not is_told:
            return await self._client._send(commands.exec(self._at, body, given))
        async with self._client._exec_stream(self._at, body, stdin=bool(given), pty=None, keeps_output=is_told) as stream:
            if given:
                await stream.write(given)
                await stream.close_stdin()
            async for output in stream:
                if (tell := told[output.type]) is not None and inspect.isawaitable(answer := tell(output.text)):
                    await answer
            return await stream.wait()

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
    ) -> AsyncExecStream:
        """Runs a command and gives its output as it comes.

        `stdin`: something will be written to it; without it the command reads end of file. `pty`: it has a terminal of so
        many rows and columns. `read_timeout_ms`: reading raises `TimedOut` when nothing came for so long. Use it in
        an `async with` block, whose beginning starts the command.
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
    ) -> AsyncKeptCommand:
        """Runs a command that outlives the connection and the server, and gives its output as it comes.

        One that nobody reads for `linger_ms` (30 s; 10 minutes at the most) is killed. It waits while it is 1 MiB ahead of its
        reader. Use it in an `async with` block, whose beginning starts the command.
        """
        body = commands.exec_body(command, cwd=cwd, env=env, user=user, timeout_ms=timeout_ms, max_output_bytes=None)
        call = commands.keep(self._at, body, commands.as_bytes(stdin), linger_ms)
        return AsyncKeptCommand(self._client._numbered_events(call, read_timeout_ms), self._kill_kept)

    def attach(self, command: str, *, after: int = 0, read_timeout_ms: int | None = None) -> AsyncKeptCommand:
        """Reads on from a kept command, by its id: what comes behind the event `after`, or all that is kept."""
        events = self._client._numbered_events(commands.attach(self._at, command, after), read_timeout_ms)
        return AsyncKeptCommand(events, self._kill_kept, command, after)

    async def _kill_kept(self, command: str) -> None:
        await self._client._send(commands.end_kept(self._at, command))

    # Terminals

    async def open_terminal(
        self, command: str | None = None, *, cwd: str | None = None, rows: int = 24, cols: int = 80
    ) -> TerminalInfo:
        """Opens a terminal that outlives the connection and the server, with a shell or a command; see `attach_terminal`."""
        return await self._client._send(commands.open_terminal(self._at, command, cwd, rows, cols))

    async def terminals(self) -> list[TerminalInfo]:
        """The terminals, oldest first. Asking wakes nothing."""
        return await self._client._send(commands.terminals(self._at))

    def attach_terminal(self, terminal: TerminalInfo | str) -> AsyncTerminal:
        """Attaches to a terminal, by its id, in the place of who was attached. Use it in an `async with` block."""
        terminal_id = terminal.id if isinstance(terminal, TerminalInfo) else terminal
        return AsyncTerminal(partial(self._client._websocket, self._at, commands.terminal_socket(terminal_id)), terminal_id)

    async def end_terminal(self, terminal: TerminalInfo | str) -> None:
        """Ends a terminal with all that runs in it."""
        terminal_id = terminal.id if isinstance(terminal, TerminalInfo) else terminal
        await self._client._send(commands.end_terminal(self._at, terminal_id))

    # Processes

    @names_the_right_keyword
    async def start(
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
        return await self._client._send(call)

    async def write_stdin(self, process: ProcessInfo | str, data: str | bytes, *, end: bool = False) -> None:
        """Writes to a process that was started with `stdin_follows`, at most 64 KiB; with `end`, end of file follows."""
        await self._client._send(commands.write_stdin(self._at, process, data, end))

    async def processes(self) -> list[ProcessInfo]:
        """The started processes, oldest first; of those that ended, the last 64."""
        return await self._client._send(commands.processes(self._at))

    async def live_processes(self) -> LiveProcesses:
        """Everything that runs in it, whoever started it; asking is no use of it."""
        return await self._client._send(commands.live(self._at))

    async def wait(self, process: ProcessInfo | str, *, observe: bool = False) -> ProcessInfo:
        """Waits until a started process has ended. With `observe` it only looks on: the sandbox may fall asleep meanwhile."""
        return await self._client._send(commands.wait(self._at, process, observe))

    @kills_a_process
    async def kill(self, process: ProcessInfo | str, signal: int | str | None = None) -> None:
        """Kills a started process with its tree, or sends its group a signal: a name such as `TERM`, or a Linux number."""
        await self._client._send(commands.signal(self._at, process, signal))

    async def logs(
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
    ) -> AsyncIterator[LogChunk]:
        """Reads a process's log, from its beginning or from a part before its end; with `follow` until the process ends."""
        call = commands.logs(self._at, process, stream, offset, tail_bytes, tail_lines, limit_bytes, follow)
        texts = TextDecoder()
        async with self._client._events(call, read_timeout_ms) as events:
            async for event in events:
                if "data" in event:
                    yield LogChunk.of_wire(event, texts)

    # Files

    async def read_file(self, path: str, *, offset: int | None = None, limit: int | None = None) -> bytes:
        """Reads a file, or a part of it."""
        return await self._client._send(files.read(self._at, path, offset, limit))

    @asynccontextmanager
    async def read_stream(
        self, path: str, *, offset: int | None = None, limit: int | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The same in pieces, as they come, within the `async with` block: a file that need not fit into memory."""
        async with self._client._bytes(files.read(self._at, path, offset, limit)) as pieces:
            yield pieces

    async def read_text(self, path: str) -> str:
        """Reads a file as UTF-8; raises UnicodeDecodeError if it is none."""
        return (await self.read_file(path)).decode()

    async def write_file(
        self,
        path: str,
        data: str | AsyncPieces,
        *,
        mode: WriteMode = "replace",
        permissions: int | None = None,
        max_file_bytes: int | None = None,
    ) -> int:
        """Writes a file and makes missing parents; a reader sees the old or the new content. Returns its size in bytes.

        `data`: the whole, or an iterable, or an async one of its pieces, such as a file that is open in binary mode.
        """
        content = as_async_body(data, f"write file `{path}`")
        return await self._client._send(files.write(self._at, path, content, mode, permissions, max_file_bytes))

    async def append_file(self, path: str, data: str | AsyncPieces) -> int:
        """Adds to the end of a file, which is made if it is missing. Returns its size in bytes."""
        return await self.write_file(path, data, mode="append")

    async def write_files(self, files: Mapping[str, str | bytes]) -> None:
        """Writes several files, by their paths, as `write_file` writes each."""
        check_files(files, "write files")
        for path, data in files.items():
            await self.write_file(path, data)

    async def upload(self, source: str | PathLike[str], target: str) -> None:
        """Copies a file or a folder of this machine to a path in the sandbox. Parents are made, and what is there is replaced.

        A folder keeps its permissions and links; files that are already in a folder of that path stay.
        """
        if not Path(source).is_dir():
            with open(source, "rb") as file:
                await self.write_file(target, file, permissions=permissions_of(source))
            return
        with await asyncio.to_thread(packed, source) as tar:
            await self.mkdir(target, recursive=True)
            await self.tar_in(target, tar)

    async def download(self, source: str, target: str | PathLike[str]) -> None:
        """Copies a file or a folder of the sandbox to a path on this machine. Parents are made.

        A file that is there is replaced. A folder must be new here, or empty. One with links that lead out of it is refused.
        """
        with partial_copy(target) as copy:
            is_folder = (await self.stat(source)).is_directory
            async with self.tar_out_stream(source) if is_folder else self.read_stream(source) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(copy.write, [piece])
            if is_folder:
                await asyncio.to_thread(copy.unpack, [])

    async def exists(self, path: str) -> bool:
        """Whether something is there; a dangling link is not."""
        return await self._client._send(files.exists(self._at, path))

    async def stat(self, path: str) -> FileStat:
        """What is known of a file."""
        return await self._client._send(files.stat(self._at, path))

    async def list(self, path: str = ".") -> list[DirEntry]:
        """What is in a directory, dot files included, sorted by name."""
        return await self._client._send(files.list_directory(self._at, path))

    async def mkdir(self, path: str, *, recursive: bool = False) -> None:
        """Makes a directory; with `recursive` its parents too, and one that is there is fine."""
        await self._client._send(files.mkdir(self._at, path, recursive))

    async def remove(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Removes a file, a link, or with `recursive` a directory; with `force` a path that is missing is fine."""
        await self._client._send(files.remove(self._at, path, recursive, force))

    async def rename(self, source: str, target: str) -> None:
        """Moves a file or a directory, replacing a file that is in the way."""
        await self._client._send(files.rename(self._at, source, target))

    async def glob(
        self, pattern: str, path: str | None = None, *, hidden: bool = False, max_results: int | None = None
    ) -> GlobResult:
        """Finds files by a pattern such as `**/*.py`, relative to `path`. By default 1,000 at the most."""
        return await self._client._send(files.glob(self._at, pattern, path, hidden, max_results))

    async def grep(
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
        return await self._client._send(call)

    async def tar_out(self, path: str = ".") -> bytes:
        """Packs a file or a tree as tar; names begin with the last segment of the path."""
        return await self._client._send(files.tar_out(self._at, path))

    @asynccontextmanager
    async def tar_out_stream(self, path: str = ".") -> AsyncIterator[AsyncIterator[bytes]]:
        """The same in pieces, as they come, within the `async with` block."""
        async with self._client._bytes(files.tar_out(self._at, path)) as pieces:
            yield pieces

    async def tar_in(self, path: str, tar: AsyncPieces) -> int:
        """Unpacks a tar, given as `write` takes a file, below a directory. Returns how many entries were made."""
        return await self._client._send(files.tar_in(self._at, path, as_async_body(tar, "unpack", "tar")))

    @asynccontextmanager
    async def watch(
        self, path: str = ".", *, recursive: bool = True, read_timeout_ms: int | None = None
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Tells what happens at and below a path from the beginning of the `async with` block on."""
        async with self._client._events(files.watch(self._at, path, recursive), read_timeout_ms) as events:
            yield (WatchEvent.of_wire(event) async for event in events)

    # Network

    async def egress_rules(self) -> EgressRules:
        """Where it may connect to, with the network `egress`."""
        return await self._client._send(network.rules(self._at))

    async def set_egress_rules(self, *, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> None:
        """Replaces the rules. Connections that they do not allow are closed."""
        await self._client._send(network.set_rules(self._at, allow, deny))

    async def egress_decisions(
        self, *, last: int | None = None, follow: bool = False, read_timeout_ms: int | None = None
    ) -> AsyncGenerator[EgressDecision, None]:
        """What was decided about attempts to leave, oldest first; with `follow` also what comes, until it is closed."""
        async with self._client._events(network.decisions(self._at, last, follow), read_timeout_ms) as events:
            async for event in events:
                yield EgressDecision.of_wire(event)

    async def published_ports(self) -> builtins.list[PublishedPort]:
        """Where the ports are that its spec asked to be published on the server's host."""
        return await self._client._send(network.published_ports(self._at))

    async def preview(self, port: int, *, public: bool = False, ttl_ms: int | None = None) -> Preview:
        """Makes one of its ports a web page of the server's, for 12 hours or `ttl_ms`. Not that wakes it, but a visit.

        A server that the client started has no address for browsers: `Unsupported`. `forward` makes it a port of this machine.
        """
        return await self._client._send(
            network.preview(self._at, port, public, ttl_ms, own_server=self._client._has_own_server)
        )

    async def end_previews(self, port: int) -> None:
        """Ends all previews of a port, with what is open by them."""
        await self._client._send(network.end_previews(self._at, port))

    @asynccontextmanager
    async def forward(self, port: int) -> AsyncIterator[PortForward]:
        """Makes one of its ports a port of this host's loopback, within the `async with` block. A connection wakes it."""
        port_number(port, "forward")
        async with forwarded(partial(self._client._websocket, self._at, f"/ports/{port}/connect"), port) as forward:
            yield forward

    # The sandbox itself

    @names_the_right_keyword
    async def update(
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
        self.info = await self._client._send(sandboxes.update(self._at, labels, lifecycle, egress))
        return self.info

    async def usage(self) -> Usage:
        """What it uses now; asking is no use of it."""
        return await self._client._send(sandboxes.usage(self._at))

    async def sleep(self) -> None:
        """Puts it to sleep: processes end, files stay, and any use wakes it."""
        await self._client._send(sandboxes.sleep(self._at))

    async def wake(self) -> SandboxInfo:
        """Wakes it; one that runs is fine."""
        self.info = await self._client._send(sandboxes.wake(self._at))
        return self.info

    @names_the_right_keyword
    async def snapshot(
        self, *, name: str | None = None, labels: Mapping[str, str] | None = None, stop: bool = False
    ) -> SnapshotInfo:
        """Keeps its files as they are. One that runs is put to sleep for it and woken again, with its services.

        One in which commands run is refused with `Conflict`, unless `stop` ends them.
        """
        return await self._client._send(snapshots.take(self._at, name, labels, stop))

    @names_the_right_keyword
    async def rollback(self, snapshot: str, *, stop: bool = False) -> builtins.list[str]:
        """Gives it the files of a snapshot, by name or id. What changed since is lost. Returns the commands that were ended."""
        return await self._client._send(snapshots.rollback(self._at, snapshot, stop))

    @names_the_right_keyword
    async def fork(self, *, count: int = 1, name: str | None = None, stop: bool = False) -> builtins.list[AsyncSandbox]:
        """Makes sandboxes that begin with its present files, and have its spec."""
        made = await self._client._send(snapshots.fork(self._at.pool, self._at.id_or_name, count, name, stop))
        return [AsyncSandbox(self._client, at) for at in made]

    @names_the_right_keyword
    async def commit(self, reference: str, *, stop: bool = False) -> ImageCommitted:
        """Makes an image of its present files, which `image` of a `create` takes: what it was made from, and one layer more."""
        return await self._client._send(snapshots.commit(self._at.pool, self._at.id_or_name, reference, stop))

    @names_the_right_keyword
    async def diff(self, *, source: str | None = None, path: str | None = None, text: bool = False) -> FileChanges:
        """What it has changed since its last snapshot, or since `source`, a snapshot or a sandbox; `text` adds diffs."""
        own = self._at.id_or_name
        first, second = (own, None) if source is None else (source, own)
        return await self._client._send(snapshots.diff(self._at.pool, first, second, path, text))

    async def destroy(self) -> None:
        """Removes it with everything in it. May be called twice."""
        await self._client._end(sandboxes.destroy(self._at))

    async def abandon(self) -> None:
        """Undoes its create, where that could not be finished.

        As `destroy`, but a persistent workspace that was there before stays, whatever the spec says. Only while it runs.
        """
        await self._client._end(sandboxes.abandon(self._at))
