"""Agents and their runs."""

from __future__ import annotations

from typing import Any

import httpx

from .._arguments import segment
from .._call import Call, nothing, params
from .._wire import known
from ..client_tools import ClientTool, ToolCallAnswer
from ..errors import Invalid
from ..runs import AgentInfo, RunInfo, RunOptions, RunPage, RunStatus


def agents() -> Call[list[AgentInfo]]:
    """Lists the agents."""

    def read(response: httpx.Response) -> list[AgentInfo]:
        return [known(AgentInfo, one) for one in response.json()["agents"]]

    return Call("GET", "/v1/agents", read)


def begin(agent: str, instance: str, options: RunOptions, pool: str | None) -> Call[RunInfo]:
    """Begins a run."""
    body: dict[str, Any] = {"payload": _payload(options)}
    if "tools" in options:
        body["tools"] = [_tool(tool) for tool in options["tools"]]
    if "tool_timeout_ms" in options:
        body["tool_timeout_ms"] = options["tool_timeout_ms"]
    path = f"/v1/agents/{segment(agent, 'an agent')}/{segment(instance, 'an instance')}/runs"
    return Call("POST", path, _info, params(pool=options.get("pool", pool)), body)


def page(
    pool: str | None, agent: str | None, instance: str | None, status: RunStatus | None, cursor: str | None, limit: int | None
) -> Call[RunPage]:
    """Lists some of the runs."""
    query = params(pool=pool, agent=agent, instance=instance, status=status, cursor=cursor, limit=limit)
    return Call("GET", "/v1/runs", lambda response: RunPage.of_wire(response.json()), query)


def run(run_id: str) -> Call[RunInfo]:
    """Looks at a run."""
    return Call("GET", _path(run_id), _info)


def stream(run_id: str, last: int | None) -> Call[None]:
    """Follows a run behind one of its events; the answer is a stream of events."""
    headers = None if last is None else {"last-event-id": str(last)}
    return Call("GET", _path(run_id, "/stream"), nothing, headers=headers)


def abort(run_id: str, reason: str | None) -> Call[None]:
    """Aborts a run."""
    return Call("POST", _path(run_id, "/abort"), nothing, json={} if reason is None else {"reason": reason})


def resume(run_id: str) -> Call[RunInfo]:
    """Goes on with an interrupted run."""
    return Call("POST", _path(run_id, "/resume"), _info)


def answer(run_id: str, call_id: str, told: ToolCallAnswer) -> Call[None]:
    """Answers a call of a client's tool."""
    body = {"content": told.content, "is_error": told.is_error}
    return Call("POST", _path(run_id, f"/tool_calls/{segment(call_id, 'a call')}"), nothing, json=body)


def _path(run_id: str, rest: str = "") -> str:
    return f"/v1/runs/{segment(run_id, 'a run')}{rest}"


def _info(response: httpx.Response) -> RunInfo:
    return RunInfo.of_wire(response.json())


def _tool(tool: ClientTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _payload(options: RunOptions) -> Any:
    given = {name: value for name, value in options.items() if name in ("prompt", "session", "result")}
    if "payload" not in options:
        return given
    if given:
        reason = "is the whole input, so that `prompt`, `session` and `result` belong into it"
        raise Invalid(f"`payload` {reason}", field="payload", reason=reason)
    return options["payload"]
