"""A terminal: what is typed, what it shows, its size."""

from __future__ import annotations

from websockets.sync.connection import Connection

from ._exec_socket import ExecSocketState, TerminalState
from .exec_stream import ExecStream


class Terminal(ExecStream):
    """A terminal that is attached to. Iterating gives what it shows, beginning with the last 256 KiB.

    Leaving the `with` block, or `close`, lets it go on without a viewer, for 10 minutes; `kill` ends it. Who attaches to it
    takes the place of who was there.
    """

    def __init__(self, connection: Connection, terminal_id: str) -> None:
        super().__init__(connection, None)
        #: To attach to it again.
        self.id = terminal_id

    def _new_state(self, keeps_output: bool) -> ExecSocketState:
        return TerminalState()
