"""Agents: runs, their events, and tools that are defined here. A stand-in plays the model."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agent_server import AgentServer, agent_server
from cutting_proxy import cutting_proxy
from model_server import model_server

from eyot import (
    AgentEvent,
    AgentRun,
    Agents,
    AsyncAgentRun,
    AsyncAgents,
    AsyncClient,
    AsyncRuns,
    Client,
    ClientTool,
    Conflict,
    Invalid,
    NotFound,
    PermissionDenied,
    RunFailed,
    Runs,
    ToolCallContext,
    Unavailable,
    _patience,
)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(execute: Any, name: str = "weather") -> ClientTool:
    """A tool that takes a city."""
    return ClientTool(name, "Tells the weather of a city", CITY, execute)


WEATHER = tool(lambda args: {"city": args["city"], "degrees": 21})


@pytest.fixture(scope="module")
def here() -> Iterator[AgentServer]:
    with agent_server() as server:
        yield server


@pytest.fixture
def client(here: AgentServer) -> Iterator[Client]:
    with Client(here.url, api_key=here.key) as client:
        yield client


@pytest.mark.parametrize(("sync", "other"), [(Agents, AsyncAgents), (Runs, AsyncRuns), (AgentRun, AsyncAgentRun)])
def test_both_clients_have_the_same_methods_and_parameters(sync: type, other: type) -> None:
    def public(of: type) -> dict[str, list[str]]:
        own = {name: one for name, one in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}
        return {name: list(inspect.signature(one).parameters) for name, one in own.items()}

    assert public(sync) == public(other)


def test_a_run_with_a_tool_of_its_own_completes_and_tells_its_text_and_its_events(client: Client) -> None:
    listed = [(agent.name, agent.description, agent.webhook) for agent in client.agents.list()]
    assert listed == [("helper", "Helps", True), ("private", None, False)]
    text: list[str] = []
    heard: list[AgentEvent] = []
    prompt = 'call weather {"city":"Oslo"}'
    run = client.agents.run("helper", "weather", prompt=prompt, tools=[WEATHER], on_text=text.append, on_event=heard.append)
    result = run.result()
    assert result.text.strip() == 'It said: {"city": "Oslo", "degrees": 21}' and result.text == "".join(text)
    assert result.usage is not None and result.usage.total_tokens == 30 and result.value["text"] == result.text
    assert [event.event_index for event in heard] == list(range(len(heard)))
    calls = [(event.tool_name, event.is_error) for event in heard if event.type == "tool_call"]
    assert calls == [("weather", False)]
    assert (run.info.status, run.info.pool, run.last_event_id) == ("completed", "default", len(heard) - 1)


@pytest.mark.parametrize("page", ["docs/agents.md", "sdks/python/README.md"])
def test_the_programs_of_the_documents_run(page: str, tmp_path: Path) -> None:
    blocks = (Path(__file__).parents[3] / page).read_text().split("```python\n")[1:]
    program = next(block.partition("```")[0] for block in blocks if "agents.run(" in block)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/assistant.md").write_text("You help people to plan their day.\n")
    with model_server() as model_url:
        told = {"EYOT_PROVIDER": "memory", "EYOT_STATE": str(tmp_path / "state"), "OLLAMA_HOST": model_url.removesuffix("/v1")}
        environment = {name: value for name, value in os.environ.items() if name != "EYOT_SERVER"} | told
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    answers = [line.strip() for line in done.stdout.splitlines() if not line.startswith("weather took")]
    assert answers == ['It said: {"city": "Oslo", "degrees": 21}', "It said: And in Rome?"]


def test_calls_of_one_turn_are_answered_at_the_same_time(client: Client) -> None:
    both = threading.Barrier(2, timeout=30)

    def meet(args: dict[str, str]) -> str:
        both.wait()
        return args["city"]

    prompt = 'call meet {"city":"A"}\ncall meet {"city":"B"}'
    assert "It said: A / B" in client.agents.run("helper", "parallel", prompt=prompt, tools=[tool(meet, "meet")]).result().text


def test_the_model_hears_what_a_tool_raises_and_of_an_answer_that_is_too_large(client: Client) -> None:
    def fail(args: dict[str, str], context: ToolCallContext) -> str:
        raise ValueError(f"no such city as {args['city']} in {context.tool_call_id}")

    prompt = 'call weather {"city":"X"}'
    run = client.agents.run("helper", "raises", prompt=prompt, tools=[tool(fail)])
    assert [event.is_error for event in run if event.type == "tool_call"] == [True]
    assert "no such city as X in call_0" in run.result().text
    large = client.agents.run("helper", "large", prompt=prompt, tools=[tool(lambda args: "x" * 20_000_000)])
    assert "its answer can't be sent" in large.result().text


def lost_run(here: AgentServer) -> str:
    """A run whose client was killed in mid-call."""
    command = [sys.executable, str(Path(__file__).with_name("lost_client.py")), here.url, here.key]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        run_id = child.stdout.readline().strip()
        child.kill()
    return run_id


def test_a_client_that_is_killed_in_mid_call_is_an_error_of_its_tool_and_the_run_completes(
    here: AgentServer, client: Client
) -> None:
    run = client.runs.follow(lost_run(here))
    assert "did not answer within 1500 ms" in run.result().text
    assert run.info.status == "completed"


def test_another_client_takes_over_the_calls_of_one_that_is_lost(here: AgentServer, client: Client) -> None:
    run = client.runs.follow(lost_run(here), tools=[tool(lambda args: "at last", "slow")])
    assert "It said: at last" in run.result().text


def test_no_event_is_lost_or_doubled_when_the_stream_is_cut_behind_each_one(here: AgentServer, client: Client) -> None:
    called: list[str] = []

    def count(args: dict[str, str]) -> str:
        called.append(args["city"])
        return f"call {len(called)}"

    with cutting_proxy(here.url) as proxy, Client(proxy.url, api_key=here.key) as through:
        run = through.agents.run("helper", "cut", prompt='call weather {"city":"Oslo"}', tools=[tool(count)])
        events = list(run)
    assert events == list(client.runs.follow(run.id)) and events[-1].type == "run_end"
    assert called == ["Oslo"] and proxy.cuts >= len(events)


async def test_async_code_loses_no_event_either(here: AgentServer, client: Client) -> None:
    async def work(args: dict[str, str]) -> str:
        await asyncio.sleep(0.01)
        return args["city"]

    with cutting_proxy(here.url) as proxy:
        async with AsyncClient(proxy.url, api_key=here.key) as through:
            run = await through.agents.run("helper", "cut-async", prompt='call weather {"city":"Oslo"}', tools=[tool(work)])
            events = [event async for event in run]
            assert "It said: Oslo" in (await run.result()).text
    assert events == list(client.runs.follow(run.id))


def test_a_run_is_followed_over_a_crash_of_its_server_which_goes_on_with_it(here: AgentServer, client: Client) -> None:
    def crash(args: dict[str, str], context: ToolCallContext) -> str:
        here.crash()
        here.start()
        context.cancelled.wait(30)
        return "too late"

    run = client.agents.run("helper", "crash", prompt='call weather {"city":"X"}', tools=[tool(crash)])
    events = list(run)
    assert "interrupted" in run.result().text
    assert [event.event_index for event in events] == list(range(len(events)))


def interrupted_run(here: AgentServer, client: Client, instance: str) -> AgentRun:
    """A run whose process is gone, and with which the server did not go on: it could not read the agent when it came back."""
    run = client.agents.run("helper", instance, prompt='call weather {"city":"X"}', tools=[tool(lambda args: time.sleep(3600))])
    for event in run:
        if event.type == "tool_start":
            break
    here.crash()
    file = here.helper.read_text()
    here.helper.write_text("---\nno field: of an agent\n---\n")
    here.start()
    here.said("(go on with a run of an agent)")
    here.helper.write_text(file)
    assert run.refresh().interrupted
    return run


def test_an_interrupted_run_is_gone_on_with(here: AgentServer, client: Client) -> None:
    run = interrupted_run(here, client, "interrupted")
    resumed = run.go_on()
    assert resumed.id == run.id and "interrupted" in resumed.result().text
    events = [event.event_index for event in client.runs.follow(run.id)]
    assert events == list(range(len(events)))


def test_the_run_behind_an_interrupted_one_begins_when_that_has_ended(here: AgentServer, client: Client) -> None:
    run = interrupted_run(here, client, "behind")
    next_run = run.go_on(prompt="recall")
    assert "/ recall" in next_run.result().text
    assert run.refresh().status == "completed" and next_run.id != run.id


def test_a_loop_that_is_left_goes_on_behind_the_last_event_and_so_does_another_client(client: Client) -> None:
    run = client.agents.run("helper", "left", prompt="one two three")
    first = []
    for event in run:
        first.append(event.event_index)
        if len(first) == 3:
            break
    other = client.runs.follow(run.id, last_event_id=run.last_event_id)
    rest = [event.event_index for event in run]
    assert first == [0, 1, 2] and rest[0] == 3 and [event.event_index for event in other] == rest
    assert list(run) == []


def test_an_abort_ends_the_run(client: Client) -> None:
    run = client.agents.run("helper", "abort", prompt="hang")
    for event in run:
        if event.type == "text_delta":
            run.abort("not needed")
    with pytest.raises(RunFailed) as failed:
        run.result()
    assert (failed.value.error_name, failed.value.reason, failed.value.run.id) == ("AbortError", "not needed", run.id)
    assert failed.value.kind == "run_failed"


async def test_cancelling_a_task_ends_its_tools_and_not_the_run(here: AgentServer) -> None:
    working, ended = asyncio.Event(), asyncio.Event()

    async def wait(args: dict[str, str]) -> str:
        working.set()
        try:
            return await asyncio.Future()
        finally:
            ended.set()

    async with AsyncClient(here.url, api_key=here.key) as client:
        run = await client.agents.run("helper", "cancelled", prompt='call weather {"city":"X"}', tools=[tool(wait)])
        task = asyncio.create_task(run.result())
        await working.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 10)
        assert (await run.refresh()).status == "active"
        # The call still waits: who comes back may answer it.
        again = await client.runs.follow(run.id, tools=[tool(lambda args: "after all")])
        assert "It said: after all" in (await again.result()).text


async def test_async_code_has_tools_of_every_kind_and_hears_of_events(here: AgentServer) -> None:
    heard: list[str] = []

    async def on_event(event: AgentEvent) -> None:
        heard.append(event.type)

    async def later(args: dict[str, str], context: ToolCallContext) -> dict[str, str]:
        return {"call": context.tool_call_id}

    def fail(args: dict[str, str]) -> None:
        raise RuntimeError("broken")

    tools = [WEATHER, tool(later, "later"), tool(fail, "fail")]
    prompt = "\n".join(f'call {name} {{"city":"X"}}' for name in ("weather", "later", "fail"))
    async with AsyncClient(here.url, api_key=here.key) as client:
        run = await client.agents.run("helper", "kinds", prompt=prompt, tools=tools, on_event=on_event)
        assert '{"city": "X", "degrees": 21} / {"call": "call_1"} / broken' in (await run.result()).text
        assert (heard[0], heard[-1]) == ("run_start", "run_end")
        next_run = await run.go_on(prompt="recall")
        assert "/ recall" in (await next_run.result()).text
        assert [info.id async for info in client.runs.list(instance="kinds")] == [next_run.id, run.id]


def test_the_next_run_of_an_instance_knows_the_conversation(client: Client) -> None:
    run = client.agents.run("helper", "talk", prompt="I am Ada", session="hello", tools=[WEATHER])
    run.result()
    with pytest.raises(Invalid) as refused:
        run.go_on()
    assert refused.value.field == "prompt"
    with pytest.raises(Conflict):
        run.resume()
    next_run = run.go_on(prompt="recall")
    assert "You asked: I am Ada / recall" in next_run.result().text
    listed = list(client.runs.list(agent="helper", instance="talk", page_size=1))
    assert [(info.id, info.status, info.payload) for info in listed] == [(one.id, "completed", None) for one in (next_run, run)]
    assert list(client.runs.list(instance="talk", status="errored")) == []
    assert client.runs.get(run.id).payload == {"prompt": "I am Ada", "session": "hello"}
    assert "Rome" in next_run.go_on(prompt='call weather {"city":"Rome"}').result().text


def test_an_answer_has_the_data_of_a_schema(client: Client) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    assert client.agents.run("helper", "data", prompt='call finish {"n":42}\n', result=schema).result().data == {"n": 42}


def test_a_key_neither_sees_the_runs_of_another_pool_nor_starts_an_agent_that_is_not_for_it(
    here: AgentServer, client: Client
) -> None:
    run = client.agents.run("helper", "mine", prompt="hello")
    run.result()
    with Client(here.url, api_key=here.other_key) as other:
        for look in (other.runs.get, other.runs.follow):
            with pytest.raises(NotFound):
                look(run.id)
        assert list(other.runs.list()) == []
        with pytest.raises(PermissionDenied):
            other.agents.run("private", "x", prompt="hello")
        with pytest.raises(NotFound):
            other.agents.run("nobody", "x", prompt="hello")
    with pytest.raises(Invalid):
        client.agents.run("helper", "x", prompt="hello", payload={})
    with pytest.raises(Invalid):
        client.agents.run("helper", "x", prompt="hello", tools=[WEATHER, WEATHER])
    with pytest.raises(TypeError, match="tool_timeout_ms"):
        client.agents.run("helper", "x", prompt="hello", tool_timeout=3)  # type: ignore[call-arg]


def test_a_stream_in_which_nothing_came_for_minutes_is_taken_up_again_when_it_breaks_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(_patience, "time", SimpleNamespace(monotonic=lambda: now))
    patience = _patience.Patience()
    patience.opened()
    now += 600
    lost = _patience.broke_off()
    assert patience.next_wait_s(lost) == 0
    # It can't be reached any more: after a minute in vain it is given up.
    now += 59
    assert patience.next_wait_s(lost) == 0.1
    now += 2
    with pytest.raises(Unavailable):
        patience.next_wait_s(lost)
