"""LangChain's own tests of a sandbox backend, as they were published, and what they leave out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_tests.integration_tests import SandboxIntegrationTests

from eyot import Client, Sandbox, SandboxNotFound
from eyot.langchain import EyotSandbox


class TestStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, client: Client) -> Iterator[SandboxBackendProtocol]:
        with client.create() as sandbox:
            yield EyotSandbox(sandbox)


def test_output_of_both_streams_and_the_exit_code_come_back(sandbox: Sandbox) -> None:
    response = EyotSandbox(sandbox).execute("printf out; printf err >&2; exit 3")
    assert (response.output, response.exit_code, response.truncated) == ("out\nerr", 3, False)


def test_a_timeout_is_in_seconds(sandbox: Sandbox) -> None:
    response = EyotSandbox(sandbox).execute("sleep 60", timeout=1)
    assert response.exit_code == 124 and "timed out" in response.output


def test_a_default_timeout_holds_and_zero_lifts_it(sandbox: Sandbox) -> None:
    backend = EyotSandbox(sandbox, default_timeout_ms=300)
    assert backend.execute("sleep 60").exit_code == 124
    assert backend.execute("sleep 0.6", timeout=0).exit_code == 0


async def test_a_cancelled_command_is_killed(sandbox: Sandbox) -> None:
    task = asyncio.create_task(EyotSandbox(sandbox).aexecute("touch begun; sleep 9876"))
    await asyncio.to_thread(sandbox.exec, "until [ -e begun ]; do sleep 0.02; done", timeout_ms=20_000)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gone = "for i in $(seq 100); do pgrep -f 'sleep 987[6]' || exit 0; sleep 0.1; done; exit 1"
    assert sandbox.exec(gone).exit_code == 0


def test_a_sandbox_that_is_gone_is_no_file_error(client: Client) -> None:
    sandbox = client.create()
    sandbox.destroy()
    with pytest.raises(SandboxNotFound):
        EyotSandbox(sandbox).upload_files([("/tmp/x", b"")])
