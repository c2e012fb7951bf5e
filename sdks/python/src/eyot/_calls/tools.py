"""Tools for models."""

from __future__ import annotations

from typing import Any

from .._arguments import segment
from .._call import Call, params
from .._wire import known
from ..tools import ToolResult


def declare(toolset: str, format: str | None) -> Call[Any]:
    """Declares the tools of a set."""
    return Call("GET", f"/v1/toolsets/{segment(toolset, 'a toolset')}", lambda response: response.json(), params(format=format))


def call(toolset: str, tool: str, arguments: dict[str, Any], pool: str | None) -> Call[ToolResult]:
    """Calls a tool."""
    path = f"/v1/toolsets/{segment(toolset, 'a toolset')}/{segment(tool, 'a tool')}"
    return Call("POST", path, lambda response: known(ToolResult, response.json()), params(pool=pool), arguments)
