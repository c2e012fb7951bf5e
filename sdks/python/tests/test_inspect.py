"""Inspect's own checks of a sandbox environment, as they were published."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from conftest import skip_without_users
from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from eyot.inspect import EyotSandboxEnvironment


@pytest.fixture
async def sandbox_env(
    server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[SandboxEnvironment]:
    monkeypatch.setenv("EYOT_SERVER", server)
    await EyotSandboxEnvironment.task_init("self_check", None)
    environments = await EyotSandboxEnvironment.sample_init("self_check", None, {})
    try:
        if request.node.name == "test_exec_as_user":
            skip_without_users(environments["default"].as_type(EyotSandboxEnvironment).sandbox)
        yield environments["default"]
    finally:
        await EyotSandboxEnvironment.sample_cleanup("self_check", None, environments, False)
        await EyotSandboxEnvironment.task_cleanup("self_check", None, True)
