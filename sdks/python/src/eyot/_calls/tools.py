"""Tools for models."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .._call import Call, params
from .._wire import known
from ..tools import ToolResult


def declare(toolset: str, format: str | None) -> Call[Any]:
    """Declares the tools of a set."""
    return Call("GET", f"/v1/toolsets/{quote(toolset, safe='')}", lambda response: response.json(), params(format=format))


def call(toolset: str, tool: str, arguments: dict[str, Any], pool: str | None) -> Call[ToolResult]:
    """Calls a tool."""
    path = f"/v1/toolsets/{quote(toolset, safe='')}/{quote(tool, safe='')}"
    return Call("POST", path, lambda response: known(ToolResult, response.json()), params(pool=pool), arguments)
