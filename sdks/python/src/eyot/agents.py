"""The agents of a server, and their runs."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from ._calls import agents as calls
from ._keywords import checked_options
from ._run_state import follow_options
from .agent_run import AgentRun
from .runs import AgentInfo, FollowOptions, RunInfo, RunOptions, RunStatus

if TYPE_CHECKING:
    from .client import Client


class Agents:
    """The agents of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> builtins.list[AgentInfo]:
        """The agents, by name."""
        return self._client._send(calls.agents())

    def run(self, agent: str, instance: str, **options: Unpack[RunOptions]) -> AgentRun:
        """Begins a run of an agent's instance. It works by itself; tools need the run to be followed: see `AgentRun`."""
        options = checked_options("run", options, RunOptions)
        info = self._client._send(calls.begin(agent, instance, options, self._client.pool))
        return AgentRun(self._client, info, follow_options(options))


class Runs:
    """The runs of a server's agents."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        pool: str | None = None,
        agent: str | None = None,
        instance: str | None = None,
        status: RunStatus | None = None,
        page_size: int | None = None,
    ) -> Iterator[RunInfo]:
        """Runs, the newest first, without their input and their result: those of a pool, by default the client's, else of all
        that the key opens.
        """
        cursor = None
        while True:
            page = self._client._send(calls.page(pool or self._client.pool, agent, instance, status, cursor, page_size))
            yield from page.runs
            cursor = page.next_cursor
            if cursor is None:
                return

    def get(self, run_id: str) -> RunInfo:
        """A run with its input and its result; `NotFound` if there is none that the key may see."""
        return self._client._send(calls.run(run_id))

    def follow(self, run_id: str, *, last_event_id: int | None = None, **options: Unpack[FollowOptions]) -> AgentRun:
        """Comes back to a run, also from another program, behind an event that came. Its tools are answered by who follows it
        with them.
        """
        options = checked_options("follow", options, FollowOptions)
        return AgentRun(self._client, self.get(run_id), options, last_event_id)
