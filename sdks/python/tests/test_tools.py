"""Tools for models."""

from __future__ import annotations

import pytest

from eyot import AsyncClient, Client, NotFound


def test_tools_are_declared_and_called_as_a_model_does(client: Client) -> None:
    names = [tool["function"]["name"] for tool in client.tools(format="openai")]
    assert "shell" in names
    answer = client.call_tool("shell", {"command": "echo hi"})
    assert not answer.is_error and answer.structured["stdout"] == "hi\n" and "hi" in answer.content[0]


def test_a_wrong_call_is_an_answer_and_a_missing_tool_is_not_found(client: Client) -> None:
    assert client.call_tool("shell", {}).is_error
    with pytest.raises(NotFound):
        client.call_tool("no-such-tool", {})


async def test_tools_are_called_by_async_code_too(async_client: AsyncClient) -> None:
    assert await async_client.tools("workspace")
    assert not (await async_client.call_tool("shell", {"command": "true"})).is_error
