"""What holds for every connection to a server, those of requests and those of WebSockets: deadline, keep-alive, TLS."""

from __future__ import annotations

import functools
import socket
import ssl
from typing import Any

import httpx

from ._server_address import ServerAddress

#: How long getting through to the server may take, TLS included.
CONNECT_TIMEOUT_S = 10.0
#: A command may run as long as it likes.
TIMEOUT = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)

#: Commands that wait must not hold up those that follow.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)

#: A server that is gone without a word, with its machine or the network, is noticed within a minute; where the platform has it.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


def socket_options(address: ServerAddress) -> list[tuple[int, int, int]]:
    """What a socket to this server is set to."""
    if address.socket is not None:
        return []
    tcp = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEP_ALIVE.items() if hasattr(socket, name)]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *tcp]


@functools.cache
def tls() -> ssl.SSLContext:
    """Whom to trust, of all servers: reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()


def transport_options(address: ServerAddress) -> dict[str, Any]:
    """What a transport of `httpx` is made with."""
    return {
        "uds": address.socket,
        # Without TLS there is nothing to verify, and no certificates need be read.
        "verify": tls() if address.url.startswith("https:") else False,
        "limits": _LIMITS,
        "socket_options": socket_options(address) or None,
    }
