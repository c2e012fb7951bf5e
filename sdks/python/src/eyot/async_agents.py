"""The agents of a server, and their runs, for async code."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from ._calls import agents as calls
from ._keywords import checked_options
from ._run_state import follow_options
from .async_agent_run import AsyncAgentRun
from .runs import AgentInfo, FollowOptions, RunInfo, RunOptions, RunStatus

if TYPE_CHECKING:
    from .async_client import AsyncClient


class AsyncAgents:
    """The agents of a server, for async code."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> builtins.list[AgentInfo]:
        """The agents, by name."""
        return await self._client._send(calls.agents())

    async def run(self, agent: str, instance: str, **options: Unpack[RunOptions]) -> AsyncAgentRun:
        """Begins a run of an agent's instance. It works by itself; tools need the run to be followed: see `AsyncAgentRun`."""
        options = checked_options("run", options, RunOptions)
        info = await self._client._send(calls.begin(agent, instance, options, self._client.pool))
        return AsyncAgentRun(self._client, info, follow_options(options))


class AsyncRuns:
    """The runs of a server's agents, for async code."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(
        self,
        *,
        pool: str | None = None,
        agent: str | None = None,
        instance: str | None = None,
        status: RunStatus | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[RunInfo]:
        """Runs, the newest first, without their input and their result: those of a pool, by default the client's, else of all
        that the key opens.
        """
        cursor = None
        while True:
            page = await self._client._send(calls.page(pool or self._client.pool, agent, instance, status, cursor, page_size))
            for run in page.runs:
                yield run
            cursor = page.next_cursor
            if cursor is None:
                return

    async def get(self, run_id: str) -> RunInfo:
        """A run with its input and its result; `NotFound` if there is none that the key may see."""
        return await self._client._send(calls.run(run_id))

    async def follow(self, run_id: str, *, last_event_id: int | None = None, **options: Unpack[FollowOptions]) -> AsyncAgentRun:
        """Comes back to a run, also from another program, behind an event that came. Its tools are answered by who follows it
        with them.
        """
        options = checked_options("follow", options, FollowOptions)
        return AsyncAgentRun(self._client, await self.get(run_id), options, last_event_id)
