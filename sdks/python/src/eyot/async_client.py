"""The client for async code: makes, finds and lists sandboxes."""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakSet

import httpx
from typing_extensions import Self, Unpack
from websockets.asyncio.connection import Connection

from . import _exec_socket as wire
from ._call import Call, Silence, broken, checked, closed, may_go_again
from ._calls import pools, sandboxes, snapshots, tools
from ._calls.at import At
from ._connection import TIMEOUT, transport_options
from ._events import EventStream, StreamEvent
from ._keywords import names_the_right_keyword
from ._local_server import LocalServer
from ._server_address import ServerAddress, check_is_started, given_address, key_header
from ._unreachable import unreachable
from ._websocket import open_async_websocket
from .async_agents import AsyncAgents, AsyncRuns
from .async_exec_stream import AsyncExecStream
from .async_sandbox import AsyncSandbox
from .async_server_images import AsyncImages
from .errors import SandboxNotFound
from .events import Event
from .pools import PoolEntry, Transferred
from .sandbox_info import Capabilities, SandboxInfo, SandboxOptions, UnnamedOptions
from .snapshots import FileChanges, ImageCommitted, SnapshotInfo
from .tools import ToolResult

T = TypeVar("T")


class AsyncClient:
    """A connection to an Eyot server. Tasks of one event loop may share it.

    `url`: `http://HOST:PORT`, `https://…` or `unix:/PATH`; by default `EYOT_SERVER`. Without either, a server is started on
    this machine (the program `eyot`, on the PATH or in `EYOT_BIN`) when it is first needed, and ends with the client.
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
        self._address = given_address(url)
        if self._address:
            check_is_started(start.keywords, self._address)
        #: The server is started by this client (or the one that it was made of), so that nobody else knows its address.
        self._has_own_server = self._address is None
        self._headers = key_header(api_key) if self._address else {}
        self.pool = pool
        #: The images that the server's sandboxes are made from.
        self.images = AsyncImages(self)
        #: The agents of the server.
        self.agents = AsyncAgents(self)
        #: The runs of its agents.
        self.runs = AsyncRuns(self)
        self._start_server = start
        #: The start of the server that is this client's own. No call's: who is cancelled takes nothing from the others.
        self._start: asyncio.Task[LocalServer] | None = None
        self._http: httpx.AsyncClient | None = None
        #: Those that are open, and perhaps some that are not any more.
        self._websockets: WeakSet[Connection] = WeakSet()
        self._is_closed = False

    @classmethod
    def _of(cls, address: ServerAddress, headers: dict[str, str], pool: str | None, *, has_own_server: bool) -> Self:
        """A client of a server that another client has found."""
        client = cls(address.url, pool=pool)
        client._address, client._headers, client._has_own_server = address, headers, has_own_server
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections, with the commands that are theirs, and the server if this client has started one.

        Sandboxes stay. May be called twice.
        """
        self._is_closed = True
        await asyncio.gather(*(connection.close() for connection in list(self._websockets)))
        if self._http is not None:
            await self._http.aclose()
        if self._start is not None:
            await asyncio.shield(asyncio.create_task(_ended(self._start)))

    async def create(self, **options: Unpack[SandboxOptions]) -> AsyncSandbox:
        """Makes a sandbox. A name that is taken is refused with `AlreadyExists`."""
        return self._made(await self._send(self._create(options, get_or_create=False)))

    async def get_or_create(self, name: str, **options: Unpack[UnnamedOptions]) -> AsyncSandbox:
        """The sandbox of that name, woken if it sleeps; it is made, with the options, if there is none."""
        named: SandboxOptions = {**options, "name": name}
        return self._made(await self._send(self._create(named, get_or_create=True)))

    async def get(self, id_or_name: str) -> AsyncSandbox:
        """The sandbox with that id, NAME or POOL/NAME, which is not woken; `SandboxNotFound` if there is none."""
        return self._made(await self._send(sandboxes.get(At(id_or_name, self.pool))))

    def sandbox(self, id_or_name: str) -> AsyncSandbox:
        """A handle on a sandbox, without asking the server whether it is there."""
        return AsyncSandbox(self, At(id_or_name, self.pool))

    @names_the_right_keyword
    async def list(self, *, labels: dict[str, str] | None = None, page_size: int | None = None) -> AsyncIterator[SandboxInfo]:
        """The sandboxes of the pool, oldest first; with labels only those that have them all."""
        cursor = None
        while True:
            page = await self._send(sandboxes.page(self.pool, labels, cursor, page_size))
            for info in page.sandboxes:
                yield info
            cursor = page.next_cursor
            if cursor is None:
                return

    async def tools(self, toolset: str = "pool", *, format: str | None = None) -> Any:
        """The declarations of a toolset's tools, to be given to a model: `mcp` (the default), `anthropic`, `openai`, …"""
        return await self._send(tools.declare(toolset, format))

    async def call_tool(self, tool: str, arguments: dict[str, Any], *, toolset: str = "pool") -> ToolResult:
        """Calls a tool as a model does, on the sandboxes of the pool."""
        return await self._send(tools.call(toolset, tool, arguments, self.pool))

    async def pools(self) -> builtins.list[str]:
        """The names of the pools that the key opens; the first is its own."""
        return await self._send(pools.names())

    async def pool_entries(self, pool: str) -> builtins.list[PoolEntry]:
        """The sandboxes of a pool, by name. Asking wakes none."""
        return await self._send(pools.entries(pool))

    async def close_pool(self, pool: str) -> None:
        """Destroys every sandbox of a pool, and forgets it."""
        await self._send(pools.close(pool))

    async def transfer(
        self, source: str, source_path: str, target: str, target_path: str, *, recursive: bool = False
    ) -> Transferred:
        """Copies a file, or with `recursive` a tree, from the sandbox of one name to that of another, which is made if need be.

        The pool is the client's, else that of `source`. `target_path` is what it is called there; parents are made.
        """
        pool = self.pool or (await self._send(sandboxes.get(At(source)))).pool
        return await self._send(pools.transfer(pool, source, source_path, target, target_path, recursive))

    @names_the_right_keyword
    async def snapshots(self, *, sizes: bool = False) -> builtins.list[SnapshotInfo]:
        """The snapshots of the pool, oldest first; with `sizes`, those that are not known yet are counted."""
        return await self._send(snapshots.names(self.pool, sizes))

    async def snapshot(self, name_or_id: str) -> SnapshotInfo:
        """A snapshot, by name or id; `NotFound` if there is none."""
        return await self._send(snapshots.get(self.pool, name_or_id))

    async def remove_snapshot(self, name_or_id: str) -> None:
        """Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are."""
        await self._send(snapshots.remove(self.pool, name_or_id))

    @names_the_right_keyword
    async def fork(
        self, source: str, *, count: int = 1, name: str | None = None, stop: bool = False
    ) -> builtins.list[AsyncSandbox]:
        """Makes sandboxes that begin with the files of a snapshot or, if there is none of that name, of a sandbox."""
        made = await self._send(snapshots.fork(self.pool, source, count, name, stop))
        return [AsyncSandbox(self, at) for at in made]

    @names_the_right_keyword
    async def commit(self, source: str, reference: str, *, stop: bool = False) -> ImageCommitted:
        """Makes an image of a snapshot or, if there is none of that name, of the present files of a sandbox."""
        return await self._send(snapshots.commit(self.pool, source, reference, stop))

    @names_the_right_keyword
    async def diff(self, source: str, target: str, *, path: str | None = None, text: bool = False) -> FileChanges:
        """Compares the files of two snapshots or sandboxes; with `text`, with unified diffs of files that are text."""
        return await self._send(snapshots.diff(self.pool, source, target, path, text))

    @names_the_right_keyword
    async def events(
        self,
        *,
        sandbox: str | None = None,
        from_seq: int | None = None,
        follow: bool = False,
        read_timeout_ms: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """What happened to sandboxes, oldest first, from a number on; with `follow` also what comes, until it is closed.

        Of the client's pool; without one, of all that the key opens. With a sandbox, by NAME, POOL/NAME or id, only of that.
        """
        async with self._events(pools.events(self.pool, sandbox, from_seq, follow), read_timeout_ms) as events:
            async for event in events:
                yield Event.of_wire(event)

    async def capabilities(self) -> Capabilities:
        """What the server's sandboxes can do."""
        return await self._send(sandboxes.capabilities())

    async def version(self) -> str:
        """The server's version."""
        return await self._send(sandboxes.version())

    def _create(self, options: SandboxOptions, *, get_or_create: bool) -> Call[SandboxInfo]:
        return sandboxes.create(self.pool, options, get_or_create=get_or_create, has_own_server=self._has_own_server)

    def _made(self, info: SandboxInfo) -> AsyncSandbox:
        return AsyncSandbox(self, At(info.id), info)

    async def _end(self, call: Call[None]) -> None:
        try:
            await self._send(call)
        except SandboxNotFound:
            pass

    def _check_open(self) -> None:
        if self._is_closed:
            raise closed()

    async def _found(self) -> ServerAddress:
        """Where the server is; it is started if there is none."""
        self._check_open()
        if self._address is None:
            if self._start is None or _has_failed(self._start):
                self._start = asyncio.create_task(asyncio.to_thread(self._start_server))
            self._address = (await asyncio.shield(self._start)).address
            self._check_open()
        return self._address

    async def _ready(self) -> httpx.AsyncClient:
        address = await self._found()
        if self._http is None:
            transport = httpx.AsyncHTTPTransport(**transport_options(address))
            self._http = httpx.AsyncClient(base_url=address.url, headers=self._headers, timeout=TIMEOUT, transport=transport)
        return self._http

    async def _send(self, call: Call[T]) -> T:
        http = await self._ready()
        response = await self._answered(http, call.request(http))
        return call.read(checked(response))

    async def _answered(self, http: httpx.AsyncClient, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        try:
            try:
                return await http.send(request, stream=stream)
            except httpx.HTTPError as error:
                if not may_go_again(request, error):
                    raise
                self._check_open()
            return await http.send(request, stream=stream)
        except httpx.HTTPError as error:
            raise unreachable(error, await self._found()) from error

    @asynccontextmanager
    async def _streamed(self, call: Call[Any]) -> AsyncIterator[httpx.Response]:
        """Sends a request whose answer is read within the `async with` block."""
        http = await self._ready()
        response = await self._answered(http, call.request(http), stream=True)
        try:
            if not response.is_success:
                await response.aread()
            yield checked(response)
        finally:
            await response.aclose()

    @asynccontextmanager
    async def _events(
        self, call: Call[None], read_timeout_ms: int | None = None
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The same, of an answer that is a stream of events."""
        async with self._streamed(replace(call, read_timeout_ms=read_timeout_ms)) as response:
            yield (event.value async for event in _stream_events(response, read_timeout_ms))

    @asynccontextmanager
    async def _numbered_events(
        self, call: Call[None], read_timeout_ms: int | None = None
    ) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """The same, with their names and numbers."""
        async with self._streamed(replace(call, read_timeout_ms=read_timeout_ms)) as response:
            yield _stream_events(response, read_timeout_ms)

    @asynccontextmanager
    async def _bytes(self, call: Call[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
        """The same, of bytes."""
        async with self._streamed(call) as response:
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
    ) -> AsyncExecStream:
        return AsyncExecStream(
            partial(self._websocket, at, "/exec/socket"),
            wire.opening(body, stdin=stdin, pty=pty),
            keeps_output=keeps_output,
            read_timeout_ms=read_timeout_ms,
        )

    async def _websocket(self, at: At, path: str) -> Connection:
        """Opens a WebSocket, which ends with the client."""
        connection = await open_async_websocket(await self._found(), at.path(path), at.params(), self._headers)
        self._websockets.add(connection)
        if self._is_closed:
            await connection.close()
        return connection


def _has_failed(start: asyncio.Task[LocalServer]) -> bool:
    return start.done() and (start.cancelled() or start.exception() is not None)


async def _ended(start: asyncio.Task[LocalServer]) -> None:
    """Ends a server, also one that is still to start."""
    await asyncio.wait([start])
    if not _has_failed(start):
        await asyncio.to_thread(start.result().close)


async def _stream_events(response: httpx.Response, read_timeout_ms: int | None) -> AsyncIterator[StreamEvent]:
    events, silence = EventStream(), Silence(read_timeout_ms)
    async for piece in _pieces(response, read_timeout_ms):
        for event in events.take(piece):
            yield event
            silence.end()
        silence.check()


async def _pieces(response: httpx.Response, read_timeout_ms: int | None = None) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_bytes():
            yield piece
    except httpx.HTTPError as error:
        raise broken(error, read_timeout_ms) from error
