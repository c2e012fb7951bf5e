"""How WebSockets are opened, and what a failure to open one is for the caller.

Without `connect` of `websockets`, which has one deadline for everything, and asks the environment for proxies, as requests do
not.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anyio
from websockets.asyncio.client import ClientConnection as AsyncConnection
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection as Connection
from websockets.uri import WebSocketURI, parse_uri

from ._connection import CONNECT_TIMEOUT_S, socket_options, tls
from ._server_address import ServerAddress
from ._unreachable import unreachable
from .errors import EyotError, of_response

_OPTIONS: dict[str, Any] = {
    # A reader that takes its time is none that has gone.
    "ping_interval": None,
    # Where output has piled up that nobody reads, the server's farewell is behind it; it learns of the end all the same.
    "close_timeout": 1,
}


def open_websocket(address: ServerAddress, path: str, params: dict[str, str], headers: dict[str, str]) -> Connection:
    """Opens a WebSocket. Only getting through has a deadline: before it answers, the server may have a sandbox to wake."""
    uri = parse_uri(address.websocket_url(path, params))
    try:
        connection = Connection(_socket(address, uri), _protocol(uri), **_OPTIONS)
        try:
            connection.handshake(headers)
        except BaseException:
            connection.close_socket()
            raise
    except Exception as error:
        raise _refused(error, address) from error
    # Where it has begun as a context manager, it is not warned of its use without one.
    connection.__enter__()
    return connection


async def open_async_websocket(
    address: ServerAddress, path: str, params: dict[str, str], headers: dict[str, str]
) -> AsyncConnection:
    """The same for async code."""
    uri = parse_uri(address.websocket_url(path, params))
    try:
        with anyio.fail_after(CONNECT_TIMEOUT_S):
            connection = await _connected(address, uri)
        try:
            for option in socket_options(address):
                connection.transport.get_extra_info("socket").setsockopt(*option)
            await connection.handshake(headers)
        except BaseException:
            connection.transport.abort()
            raise
    except Exception as error:
        raise _refused(error, address) from error
    return connection


def _socket(address: ServerAddress, uri: WebSocketURI) -> socket.socket:
    if address.socket is not None:
        opened = socket.socket(socket.AF_UNIX)
    else:
        opened = socket.create_connection((uri.host, uri.port), CONNECT_TIMEOUT_S)
    try:
        if address.socket is not None:
            opened.settimeout(CONNECT_TIMEOUT_S)
            opened.connect(address.socket)
        else:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in socket_options(address):
            opened.setsockopt(*option)
        if uri.secure:
            opened = tls().wrap_socket(opened, server_hostname=uri.host)
        opened.settimeout(None)
    except BaseException:
        opened.close()
        raise
    return opened


async def _connected(address: ServerAddress, uri: WebSocketURI) -> AsyncConnection:
    def made() -> AsyncConnection:
        return AsyncConnection(_protocol(uri), **_OPTIONS)

    loop = asyncio.get_running_loop()
    if address.socket is not None:
        _, connection = await loop.create_unix_connection(made, address.socket)
    else:
        _, connection = await loop.create_connection(made, uri.host, uri.port, ssl=tls() if uri.secure else None)
    return connection


def _protocol(uri: WebSocketURI) -> ClientProtocol:
    # A result has as much output as was asked for; and it is seldom worth the time to compress.
    return ClientProtocol(uri, max_size=None)


def _refused(error: Exception, address: ServerAddress) -> EyotError:
    """What a WebSocket that can't be opened is for the caller; what is no such failure is raised as it is."""
    if isinstance(error, InvalidStatus):
        return of_response(error.response.status_code, bytes(error.response.body or b""))
    if isinstance(error, (OSError, WebSocketException)):
        return unreachable(error, address)
    raise error
