"""Tries again where a connection to the server breaks off, for some time."""

from __future__ import annotations

import time

from ._call import ClosedClient
from .errors import Unavailable

#: The wait before the second try; the first one is at once. It doubles with each.
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0
#: After how long in vain it is given up. The time of a connection that stood for more than a moment does not count.
_GIVEN_UP_AFTER_S = 60.0


class Patience:
    """How often something was tried in vain, and how long."""

    def __init__(self) -> None:
        self._wait_s = 0.0
        self._since = time.monotonic()
        self._opened: float | None = None

    def opened(self) -> None:
        """The connection stands."""
        self._opened = time.monotonic()

    def reset(self) -> None:
        """It went on."""
        self._wait_s = 0.0
        self._since = time.monotonic()

    def next_wait_s(self, lost: Unavailable) -> float:
        """How long to wait until it is tried again; raises what it broke off with where it was tried for too long."""
        if self._opened is not None and time.monotonic() - self._opened >= _LONGEST_WAIT_S:
            self.reset()
        self._opened = None
        wait = self._wait_s
        if isinstance(lost, ClosedClient) or time.monotonic() - self._since + wait > _GIVEN_UP_AFTER_S:
            raise lost
        self._wait_s = min(max(wait * 2, _FIRST_WAIT_S), _LONGEST_WAIT_S)
        return wait


def broke_off() -> Unavailable:
    """The error of a stream that ended before the run did."""
    return Unavailable("read the stream: it broke off")
