"""The client: makes, finds and lists sandboxes."""

from __future__ import annotations

import asyncio
import builtins
import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import httpx
from typing_extensions import Self, Unpack
from websockets.asyncio.connection import Connection as AsyncConnection
from websockets.sync.connection import Connection

from . import _exec_socket as wire
from ._call import Call, Silence, broken, checked, closed, may_go_again
from ._calls import pools, sandboxes, snapshots, tools
from ._calls.at import At
from ._connection import TIMEOUT, transport_options
from ._events import EventStream, StreamEvent
from ._keywords import names_the_right_keyword
from ._local_server import LocalServer
from ._server_address import check_is_started, given_address, key_header
from ._unreachable import unreachable
from ._websocket import open_async_websocket, open_websocket
from .agents import Agents, Runs
from .async_client import AsyncClient
from .errors import SandboxNotFound
from .events import Event
from .exec_stream import ExecStream
from .pools import PoolEntry, Transferred
from .sandbox import Sandbox
from .sandbox_info import Capabilities, SandboxInfo, SandboxOptions, UnnamedOptions
from .server_images import Images
from .snapshots import FileChanges, ImageCommitted, SnapshotInfo
from .tools import ToolResult

T = TypeVar("T")


class Client:
    """A connection to an Eyot server. Threads may share it.

    `url`: `http://HOST:PORT`, `https://…` or `unix:/PATH`; by default `EYOT_SERVER`. Without either, a server is started on
    this machine (the program `eyot`, on the PATH or in `EYOT_BIN`) that ends with the client.
    `api_key`: by default `EYOT_API_KEY`. `pool`: where sandboxes are made, listed, and found by name; by default the key's own.

    Of a server that is started, and refused beside the address of another: `provider`, `native`, `docker` or `memory`, where
    its sandboxes come from; `state_dir`, where it keeps them; `allow_host_networks`: specs may use this host's own network, and
    name those of its container engine; `agents_dir`: the folder of its agents, files NAME.md, by default `agents` in the state
    folder; `model`: PROVIDER/MODEL of agents whose file names none.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        pool: str | None = None,
        provider: str | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        allow_host_networks: bool = False,
        agents_dir: str | os.PathLike[str] | None = None,
        model: str | None = None,
    ) -> None:
        start = partial(
            LocalServer,
            provider=provider,
            state_dir=state_dir,
            allow_host_networks=allow_host_networks,
            agents_dir=agents_dir,
            model=model,
        )
        address = given_address(url)
        if address:
            check_is_started(start.keywords, address)
        self._local = None if address else start()
        self._address = address or self._local.address  # type: ignore[union-attr]
        self._headers = key_header(api_key) if address else {}
        self.pool = pool
        #: The images that the server's sandboxes are made from.
        self.images = Images(self)
        #: The agents of the server.
        self.agents = Agents(self)
        #: The runs of its agents.
        self.runs = Runs(self)
        #: Those that are open, and perhaps some that are not any more.
        self._websockets: WeakSet[Connection] = WeakSet()
        #: Likewise those of event loops, which carry forwarded ports.
        self._carrying: WeakKeyDictionary[AsyncConnection, asyncio.AbstractEventLoop] = WeakKeyDictionary()
        self._is_closed = False
        self._closing = threading.Lock()
        transport = httpx.HTTPTransport(**transport_options(self._address))
        self._http = httpx.Client(base_url=self._address.url, headers=self._headers, timeout=TIMEOUT, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections, with the commands that are theirs, and the server if this client has started one.

        Sandboxes stay. May be called twice.
        """
        with self._closing:
            self._is_closed, open, carrying = True, list(self._websockets), list(self._carrying.items())
        for connection in open:
            connection.close()
        for carried, loop in carrying:
            # A loop that has ended has ended them before.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(carried.transport.abort)
        self._http.close()
        if self._local is not None:
            self._local.close()

    def create(self, **options: Unpack[SandboxOptions]) -> Sandbox:
        """Makes a sandbox. A name that is taken is refused with `AlreadyExists`."""
        return self._made(self._send(self._create(options, get_or_create=False)))

    def get_or_create(self, name: str, **options: Unpack[UnnamedOptions]) -> Sandbox:
        """The sandbox of that name, woken if it sleeps; it is made, with the options, if there is none."""
        named: SandboxOptions = {**options, "name": name}
        return self._made(self._send(self._create(named, get_or_create=True)))

    def get(self, id_or_name: str) -> Sandbox:
        """The sandbox with that id, NAME or POOL/NAME, which is not woken; `SandboxNotFound` if there is none."""
        return self._made(self._send(sandboxes.get(At(id_or_name, self.pool))))

    def sandbox(self, id_or_name: str) -> Sandbox:
        """A handle on a sandbox, without asking the server whether it is there."""
        return Sandbox(self, At(id_or_name, self.pool))

    @names_the_right_keyword
    def list(self, *, labels: dict[str, str] | None = None, page_size: int | None = None) -> Iterator[SandboxInfo]:
        """The sandboxes of the pool, oldest first; with labels only those that have them all."""
        cursor = None
        while True:
            page = self._send(sandboxes.page(self.pool, labels, cursor, page_size))
            yield from page.sandboxes
            cursor = page.next_cursor
            if cursor is None:
                return

    def tools(self, toolset: str = "pool", *, format: str | None = None) -> Any:
        """The declarations of a toolset's tools, to be given to a model: `mcp` (the default), `anthropic`, `openai`, …"""
        return self._send(tools.declare(toolset, format))

    def call_tool(self, tool: str, arguments: dict[str, Any], *, toolset: str = "pool") -> ToolResult:
        """Calls a tool as a model does, on the sandboxes of the pool."""
        return self._send(tools.call(toolset, tool, arguments, self.pool))

    def pools(self) -> builtins.list[str]:
        """The names of the pools that the key opens; the first is its own."""
        return self._send(pools.names())

    def pool_entries(self, pool: str) -> builtins.list[PoolEntry]:
        """The sandboxes of a pool, by name. Asking wakes none."""
        return self._send(pools.entries(pool))

    def close_pool(self, pool: str) -> None:
        """Destroys every sandbox of a pool, and forgets it."""
        self._send(pools.close(pool))

    def transfer(self, source: str, source_path: str, target: str, target_path: str, *, recursive: bool = False) -> Transferred:
        """Copies a file, or with `recursive` a tree, from the sandbox of one name to that of another, which is made if need be.

        The pool is the client's, else that of `source`. `target_path` is what it is called there; parents are made.
        """
        pool = self.pool or self._send(sandboxes.get(At(source))).pool
        return self._send(pools.transfer(pool, source, source_path, target, target_path, recursive))

    @names_the_right_keyword
    def snapshots(self, *, sizes: bool = False) -> builtins.list[SnapshotInfo]:
        """The snapshots of the pool, oldest first; with `sizes`, those that are not known yet are counted."""
        return self._send(snapshots.names(self.pool, sizes))

    def snapshot(self, name_or_id: str) -> SnapshotInfo:
        """A snapshot, by name or id; `NotFound` if there is none."""
        return self._send(snapshots.get(self.pool, name_or_id))

    def remove_snapshot(self, name_or_id: str) -> None:
        """Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are."""
        self._send(snapshots.remove(self.pool, name_or_id))

    @names_the_right_keyword
    def fork(self, source: str, *, count: int = 1, name: str | None = None, stop: bool = False) -> builtins.list[Sandbox]:
        """Makes sandboxes that begin with the files of a snapshot or, if there is none of that name, of a sandbox."""
        made = self._send(snapshots.fork(self.pool, source, count, name, stop))
        return [Sandbox(self, at) for at in made]

    @names_the_right_keyword
    def commit(self, source: str, reference: str, *, stop: bool = False) -> ImageCommitted:
        """Makes an image of a snapshot or, if there is none of that name, of the present files of a sandbox."""
        return self._send(snapshots.commit(self.pool, source, reference, stop))

    @names_the_right_keyword
    def diff(self, source: str, target: str, *, path: str | None = None, text: bool = False) -> FileChanges:
        """Compares the files of two snapshots or sandboxes; with `text`, with unified diffs of files that are text."""
        return self._send(snapshots.diff(self.pool, source, target, path, text))

    @names_the_right_keyword
    def events(
        self,
        *,
        sandbox: str | None = None,
        from_seq: int | None = None,
        follow: bool = False,
        read_timeout_ms: int | None = None,
    ) -> Generator[Event, None, None]:
        """What happened to sandboxes, oldest first, from a number on; with `follow` also what comes, until it is closed.

        Of the client's pool; without one, of all that the key opens. With a sandbox, by NAME, POOL/NAME or id, only of that.
        """
        with self._events(pools.events(self.pool, sandbox, from_seq, follow), read_timeout_ms) as events:
            for event in events:
                yield Event.of_wire(event)

    def capabilities(self) -> Capabilities:
        """What the server's sandboxes can do."""
        return self._send(sandboxes.capabilities())

    def version(self) -> str:
        """The server's version."""
        return self._send(sandboxes.version())

    def asynchronous(self) -> AsyncClient:
        """A client for async code, of the same server and pool. It ends no server."""
        return AsyncClient._of(self._address, self._headers, self.pool, has_own_server=self._has_own_server)

    @property
    def _has_own_server(self) -> bool:
        """The server was started by this client, so that nobody else knows its address."""
        return self._local is not None

    def _create(self, options: SandboxOptions, *, get_or_create: bool) -> Call[SandboxInfo]:
        return sandboxes.create(self.pool, options, get_or_create=get_or_create, has_own_server=self._has_own_server)

    def _made(self, info: SandboxInfo) -> Sandbox:
        return Sandbox(self, At(info.id), info)

    def _end(self, call: Call[None]) -> None:
        try:
            self._send(call)
        except SandboxNotFound:
            pass

    def _send(self, call: Call[T]) -> T:
        response = self._answered(call.request(self._http))
        return call.read(checked(response))

    def _check_open(self) -> None:
        if self._is_closed:
            raise closed()

    def _answered(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        self._check_open()
        try:
            try:
                return self._http.send(request, stream=stream)
            except httpx.HTTPError as error:
                if not may_go_again(request, error):
                    raise
                self._check_open()
            return self._http.send(request, stream=stream)
        except httpx.HTTPError as error:
            # The close cuts a call of another thread; the server is there.
            self._check_open()
            raise unreachable(error, self._address) from error

    @contextmanager
    def _streamed(self, call: Call[Any]) -> Iterator[httpx.Response]:
        """Sends a request whose answer is read within the `with` block."""
        response = self._answered(call.request(self._http), stream=True)
        try:
            if not response.is_success:
                response.read()
            yield checked(response)
        finally:
            response.close()

    @contextmanager
    def _events(self, call: Call[None], read_timeout_ms: int | None = None) -> Iterator[Iterator[dict[str, Any]]]:
        """The same, of an answer that is a stream of events."""
        with self._streamed(replace(call, read_timeout_ms=read_timeout_ms)) as response:
            yield (event.value for event in _stream_events(response, read_timeout_ms))

    @contextmanager
    def _numbered_events(self, call: Call[None], read_timeout_ms: int | None = None) -> Iterator[Iterator[StreamEvent]]:
        """The same, with their names and numbers."""
        with self._streamed(replace(call, read_timeout_ms=read_timeout_ms)) as response:
            yield _stream_events(response, read_timeout_ms)

    @contextmanager
    def _bytes(self, call: Call[bytes]) -> Iterator[Iterator[bytes]]:
        """The same, of bytes."""
        with self._streamed(call) as response:
            yield _pieces(response)

    def _exec_stream(
        self,
        at: At,
        body: dict[str, Any],
        *,
        stdin: bool,
        pty: tuple[int, int] | None,
        keeps_output: bool = True,
        read_timeout_ms: int | None = None,
    ) -> ExecStream:
        return ExecStream(
            self._websocket(at, "/exec/socket"),
            wire.opening(body, stdin=stdin, pty=pty),
            keeps_output=keeps_output,
            read_timeout_ms=read_timeout_ms,
        )

    async def _dial(self, at: At, port: int) -> AsyncConnection:
        """Connects to a port of a sandbox, from any event loop."""
        self._check_open()
        path = at.path(f"/ports/{port}/connect")
        connection = await open_async_websocket(self._address, path, at.params(), self._headers)
        with self._closing:
            self._carrying[connection] = asyncio.get_running_loop()
        if self._is_closed:
            await connection.close()
        return connection

    def _websocket(self, at: At, path: str) -> Connection:
        """Opens a WebSocket, which ends with the client."""
        self._check_open()
        connection = open_websocket(self._address, at.path(path), at.params(), self._headers)
        with self._closing:
            self._websockets.add(connection)
        if self._is_closed:
            connection.close()
        return connection


def _stream_events(response: httpx.Response, read_timeout_ms: int | None) -> Iterator[StreamEvent]:
    events, silence = EventStream(), Silence(read_timeout_ms)
    for piece in _pieces(response, read_timeout_ms):
        for event in events.take(piece):
            yield event
            silence.end()
        silence.check()


def _pieces(response: httpx.Response, read_timeout_ms: int | None = None) -> Iterator[bytes]:
    try:
        yield from response.iter_bytes()
    except httpx.HTTPError as error:
        raise broken(error, read_timeout_ms) from error
