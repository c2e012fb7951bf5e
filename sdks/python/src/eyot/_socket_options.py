"""How WebSockets are opened, and what a failure to open one is for the caller."""

from __future__ import annotations

from typing import Any

from websockets.exceptions import InvalidStatus, WebSocketException

from .errors import EyotError, Unavailable, of_response

SOCKET_OPTIONS: dict[str, Any] = {
    # Output is seldom worth the time.
    "compression": None,
    # A result has as much output as was asked for.
    "max_size": None,
    # A reader that takes its time is none that has gone.
    "ping_interval": None,
    "open_timeout": 30,
    "close_timeout": 5,
}


def refused(error: Exception) -> EyotError:
    """What a WebSocket that can't be opened is for the caller; what is no such failure is raised as it is."""
    if isinstance(error, InvalidStatus):
        return of_response(error.response.status_code, bytes(error.response.body or b""))
    if isinstance(error, (OSError, WebSocketException)):
        return Unavailable(f"reach the server: {error or type(error).__name__}")
    raise error
