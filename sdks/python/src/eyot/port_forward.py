"""A port of a sandbox as a port of this host's loopback.

Each connection is carried by a WebSocket of its own to the server, which connects to the sandbox's 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from anyio.from_thread import start_blocking_portal
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed

from .errors import EyotError

_HOST = "127.0.0.1"
#: The most that is carried at once.
_PIECE_BYTES = 64 * 1024

#: Connects to the port inside.
_Dial = Callable[[], Awaitable[Connection]]


@dataclass(frozen=True)
class PortForward:
    """A port of a sandbox that can be reached at `host:port` from here."""

    #: The port inside.
    sandbox_port: int
    host: str
    #: The port here, of the system's choosing.
    port: int


@asynccontextmanager
async def forwarded(dial: _Dial, sandbox_port: int) -> AsyncIterator[PortForward]:
    """Carries connections within the `async with` block, whose end ends them."""
    carried: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_carry(dial, reader, writer))
        carried.add(task)
        task.add_done_callback(carried.discard)

    listener = await asyncio.start_server(accepted, _HOST, 0)
    try:
        yield PortForward(sandbox_port, _HOST, listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        for task in carried:
            task.cancel()
        await asyncio.gather(*carried, return_exceptions=True)


@contextmanager
def forwarded_in_thread(dial: _Dial, sandbox_port: int) -> Iterator[PortForward]:
    """The same with an event loop in a thread."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(forwarded(dial, sandbox_port)) as forward,
    ):
        yield forward


async def _carry(dial: _Dial, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carries bytes both ways until both sides have ended, or either is gone.

    What is wrong with a connection ends it; there is nobody to tell.
    """
    try:
        tunnel = await dial()
        try:
            await _both(_to_sandbox(reader, tunnel), _from_sandbox(tunnel, writer))
        finally:
            await tunnel.close()
        writer.close()
        await writer.wait_closed()
    except BaseException as error:
        _reset(writer)
        if not isinstance(error, EyotError | OSError | ConnectionClosed):
            raise


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection so that its other end does not take what it has read for all that there is."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _both(one: Awaitable[None], other: Awaitable[None]) -> None:
    """Waits for both; the first that fails ends the other one."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _to_sandbox(reader: asyncio.StreamReader, tunnel: Connection) -> None:
    while data := await reader.read(_PIECE_BYTES):
        await tunnel.send(data)
    await tunnel.send(b"")


async def _from_sandbox(tunnel: Connection, writer: asyncio.StreamWriter) -> None:
    while data := await tunnel.recv():
        writer.write(data if isinstance(data, bytes) else data.encode())
        await writer.drain()
    writer.write_eof()
