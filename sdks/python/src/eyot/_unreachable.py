"""The error of a server that is not reached. It names the address, and what may help."""

from __future__ import annotations

import os
import socket
import ssl

import httpx

from ._server_address import ServerAddress
from .errors import Unavailable

#: The errors of a connection before there is one.
_NOT_CONNECTED = (
    httpx.ConnectError, httpx.ConnectTimeout, ConnectionRefusedError, FileNotFoundError, PermissionError, TimeoutError,
    socket.gaierror, ssl.SSLError,
)  # fmt: skip

_OF_CERTIFICATES = "SSL_CERT_FILE names a PEM file with the certificates that the server's may come from"
_OF_TLS = "does the server speak https? One without a certificate has an address that begins with http://"
_OF_OUR_OWN = "this client started it, and it has ended; a new client starts another"
_OF_ANOTHER = "is the address right? `eyot serve` starts a server"


def unreachable(error: Exception, address: ServerAddress) -> Unavailable:
    """The error of a request, or of a WebSocket, that does not get through."""
    cause = _cause(error)
    isnt_connected = isinstance(error, _NOT_CONNECTED) or isinstance(cause, _NOT_CONNECTED)
    hint = _hint(cause, address) if isnt_connected else None
    return Unavailable(f"reach the server at {address}: {_reason(cause)}", hint=hint)


def _cause(error: BaseException) -> BaseException:
    """The system's own error, if there is one: what is over it says less."""
    deepest, found = error, error
    while (below := deepest.__cause__ or deepest.__context__) is not None:
        deepest = below
        if isinstance(deepest, OSError) and deepest.strerror:
            found = deepest
    return found


def _reason(cause: BaseException) -> str:
    told = _of_the_system(cause) or str(cause) or type(cause).__name__
    return told if told[1:2].isupper() else told[0].lower() + told[1:]


def _of_the_system(cause: BaseException) -> str | None:
    """The system's words: asyncio has its own."""
    if not isinstance(cause, OSError):
        return None
    # Names and TLS have numbers of their own.
    if cause.errno is None or isinstance(cause, (socket.gaierror, ssl.SSLError)):
        return cause.strerror
    return os.strerror(cause.errno)


def _hint(cause: BaseException, address: ServerAddress) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _OF_CERTIFICATES
    if isinstance(cause, ssl.SSLError):
        return _OF_TLS
    if address.origin == "own":
        return _OF_OUR_OWN
    return f"EYOT_SERVER names it: {_OF_ANOTHER}" if address.origin == "environment" else _OF_ANOTHER
