"""Whole Inspect evaluations with the sandbox type `eyot`, without a model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import server_processes
from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import SandboxEnvironmentSpec, SandboxUserUnsupportedError, sandbox
from inspect_ai.util._sandbox.environment import SandboxUnavailableError

from eyot import Client, Unsupported
from eyot.inspect import EyotConfig, EyotSandboxEnvironment, _not_run, _shared


@scorer(metrics=[accuracy()])
def wrote_the_answer() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        content = await sandbox().read_file("answer.txt")
        return Score(value=content.strip() == target.text, answer=content)

    return score


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_DISPLAY", "none")


@solver
def runs(command: str) -> Solver:
    """Works as an agent would; a model's stand-in would have Inspect download a tokenizer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        result = await sandbox().exec(["sh", "-c", command], timeout=30)
        assert result.success, result.stderr
        return state

    return solve


async def _evaluate(spec: str | tuple[str, str] | SandboxEnvironmentSpec, command: str, logs: Path) -> EvalLog:
    task = Task(
        dataset=[Sample("Write the answer.", target="42", files={"given.txt": "40"})],
        solver=runs(command),
        scorer=wrote_the_answer(),
        sandbox=spec,
    )
    (log,) = await eval_async(task, model="mockllm/model", log_dir=str(logs))
    return log


def _sample(log: EvalLog) -> EvalSample:
    assert log.status == "success", log.error
    assert log.samples is not None and log.samples[0].scores is not None
    return log.samples[0]


async def test_a_task_works_in_a_sandbox_that_is_gone_afterwards(
    client: Client, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EYOT_SERVER", server)
    log = await _evaluate("eyot", "echo $(($(cat given.txt) + 2)) > answer.txt", tmp_path)
    scores = _sample(log).scores
    assert scores is not None and scores["wrote_the_answer"].value is True
    assert list(client.list(labels={"made-by": "inspect-ai"})) == []
    assert _shared._start is None


@pytest.mark.needs("images")
async def test_a_configuration_reaches_the_sandbox(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EYOT_SERVER", server)
    spec = SandboxEnvironmentSpec("eyot", EyotConfig(image="host", env={"ANSWER": "42"}))
    log = await _evaluate(spec, "echo $ANSWER > answer.txt", tmp_path)
    scores = _sample(log).scores
    assert scores is not None and scores["wrote_the_answer"].value is True


async def test_an_image_that_the_server_refuses_fails_the_task_and_says_why(
    server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EYOT_SERVER", server)
    log = await _evaluate(("eyot", "/"), "true", tmp_path)
    assert log.status == "error" and log.error is not None and "`image`" in log.error.message


async def test_what_is_left_over_is_removed_by_the_cleanup_command(
    client: Client, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYOT_SERVER", server)
    left = client.create(labels={"made-by": "inspect-ai"})
    with client.create() as other:
        await EyotSandboxEnvironment.cli_cleanup(None)
        assert left.id not in [info.id for info in client.list()] and other.exec("true").ok


async def test_a_sandbox_that_is_gone_is_unavailable(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYOT_SERVER", server)
    await EyotSandboxEnvironment.task_init("t", None)
    environments = await EyotSandboxEnvironment.sample_init("t", None, {})
    environment = environments["default"].as_type(EyotSandboxEnvironment)
    await environment.sandbox.destroy()
    with pytest.raises(SandboxUnavailableError):
        await environment.exec(["true"])
    with pytest.raises(SandboxUnavailableError):
        await environment.read_file("x")
    await EyotSandboxEnvironment.sample_cleanup("t", None, environments, False)
    await EyotSandboxEnvironment.task_cleanup("t", None, True)


def test_a_user_that_the_sandbox_can_not_have_is_told_apart_from_one_that_is_missing() -> None:
    with pytest.raises(SandboxUserUnsupportedError):
        _not_run(Unsupported("there is no user `root`: this sandbox has the user `user` only"), "root")


def test_the_client_does_not_load_the_frameworks() -> None:
    program = "import sys, eyot; print([name for name in sys.modules if name in ('deepagents', 'inspect_ai', 'pydantic')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


async def test_a_task_that_is_cancelled_while_its_server_starts_leaves_none(state: str) -> None:
    before = server_processes()
    begun = asyncio.create_task(EyotSandboxEnvironment.task_init("cancelled", None))
    while not server_processes() - before:
        await asyncio.sleep(0)
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await begun
    assert not server_processes() - before
    with pytest.raises(RuntimeError):
        _shared.client()


async def test_tasks_that_begin_at_once_share_a_server_until_the_last_has_ended(state: str) -> None:
    before = server_processes()
    await asyncio.gather(*(EyotSandboxEnvironment.task_init(f"task {number}", None) for number in range(3)))
    client = _shared.client()
    for number in range(3):
        assert _shared.client() is client and len(server_processes() - before) == 1
        await EyotSandboxEnvironment.task_cleanup(f"task {number}", None, True)
    assert not server_processes() - before
