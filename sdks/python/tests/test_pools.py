"""Pools, what moves between their sandboxes, and what happened to them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from eyot import AlreadyExists, AsyncClient, Client, Invalid, IsDirectory, NotFound, SandboxNotFound
from eyot._local_server import find_binary


@pytest.fixture
def team(server: str) -> Iterator[Client]:
    """A client of a pool that nobody else uses."""
    with Client(server, pool="team") as client:
        yield client
        client.close_pool("team")


@pytest.mark.needs("images")
def test_a_pool_is_listed_with_its_sandboxes_and_closed_with_them(team: Client) -> None:
    team.create(name="b", image="host").sleep()
    sandbox = team.create(name="a")
    assert "team" in team.pools()
    entries = team.pool_entries("team")
    assert [(entry.name, entry.image, entry.status) for entry in entries] == [
        ("a", "host", "running"),
        ("b", "host", "sleeping"),
    ]
    team.close_pool("team")
    assert team.pool_entries("team") == []
    with pytest.raises(SandboxNotFound):
        sandbox.exec("true")


def test_what_is_no_name_of_a_pool_is_refused(client: Client) -> None:
    with pytest.raises(Invalid):
        client.pool_entries("No Pool/../x")


def test_a_tree_goes_from_one_sandbox_to_another(team: Client) -> None:
    source, target = team.create(name="source"), team.create(name="target")
    source.write_file("tree/a", "12345")
    source.write_file("tree/deep/b", "678")
    with pytest.raises(IsDirectory):
        team.transfer("source", "tree", "target", "copy")
    moved = team.transfer("source", "tree", "target", "copy", recursive=True)
    assert (moved.files, moved.bytes) == (2, 8)
    assert target.read_text("copy/deep/b") == "678"
    with pytest.raises(AlreadyExists):
        team.transfer("source", "tree", "target", "copy", recursive=True)
    with pytest.raises(NotFound):
        team.transfer("source", "nothing", "target", "there")


def test_a_sandbox_is_found_by_its_pool_and_name(client: Client, team: Client) -> None:
    made = client.create(name="team/dev")
    info = made.refresh()
    assert (info.name, info.pool) == ("dev", "team")
    for named in ("team/dev", made.id):
        assert client.get(named).id == made.id
        assert client.sandbox(named).exec("hostname").stdout == "dev\n"
        assert {event.sandbox_id for event in client.events(sandbox=named)} == {made.id}
    assert client.get_or_create("team/dev").id == team.get("dev").id == made.id
    with pytest.raises(SandboxNotFound):
        client.get("dev")
    with pytest.raises(Invalid, match="team"):
        team.get("default/dev")


@pytest.mark.needs("reopen")
def test_what_the_command_line_makes_has_the_same_name_here_and_what_is_made_here_there(client: Client) -> None:
    def eyot(*arguments: str) -> str:
        binary = find_binary()
        assert binary is not None
        return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout

    eyot("create", "by-hand")
    assert client.get("by-hand").id == client.get("default/by-hand").id
    assert client.sandbox("by-hand").exec("hostname").stdout == "by-hand\n"
    with client.create(name="by-program") as sandbox:
        for named in ("by-program", "default/by-program", sandbox.id):
            assert eyot("exec", named, "--", "hostname") == "by-program\n"
    eyot("rm", "default/by-hand")
    with pytest.raises(SandboxNotFound):
        client.get("by-hand")


def test_a_transfer_without_a_pool_is_in_the_keys_own(client: Client) -> None:
    with client.create(name="from-here") as source, client.create(name="to-there") as target:
        source.write_file("a", "x")
        assert client.transfer("from-here", "a", "to-there", "b").bytes == 1
        assert target.read_text("b") == "x"


def test_events_are_told_from_a_number_on(team: Client) -> None:
    sandbox = team.create(name="told")
    sandbox.exec("echo counted")
    sandbox.destroy()
    events = [event for event in team.events() if event.sandbox_id == sandbox.id]
    kinds = [event.kind for event in events]
    assert kinds[0] == "created" and kinds[-1] == "destroyed" and "exec_ended" in kinds
    started = next(event for event in events if event.kind == "exec_started")
    assert started.details["command"] == "echo counted" and started.pool == "team" and started.sandbox == "told"
    later = [event for event in team.events(from_seq=started.seq) if event.sandbox_id == sandbox.id]
    assert [event.seq for event in later] == [event.seq for event in events if event.seq >= started.seq]


def test_events_of_other_pools_are_left_out(team: Client, client: Client) -> None:
    with client.create() as other:
        assert all(event.sandbox_id != other.id for event in team.events())


def test_following_events_tells_what_comes(team: Client) -> None:
    before = team.create(name="before")
    events = team.events(follow=True)
    assert any(event.kind == "created" and event.sandbox_id == before.id for event in events)
    after = team.create(name="after")
    assert next(event for event in events if event.sandbox_id == after.id).kind == "created"
    events.close()


async def test_pools_and_events_work_in_async_code(server: str) -> None:
    async with AsyncClient(server, pool="team-async") as client:
        source = await client.create(name="source")
        await source.write_file("a", "x")
        assert [entry.name for entry in await client.pool_entries("team-async")] == ["source"]
        assert (await client.transfer("source", "a", "target", "b")).files == 1
        async for event in client.events(follow=True):
            if event.kind == "created" and event.sandbox == "target":
                break
        await client.close_pool("team-async")
        assert await client.pool_entries("team-async") == []


def test_an_event_keeps_every_line_separator_of_unicode(team: Client) -> None:
    sandbox = team.create(name="separators")
    sandbox.exec("echo 'a\u2028b\u0085c'")
    commands = [event.details["command"] for event in team.events() if event.kind == "exec_started"]
    assert "echo 'a\u2028b\u0085c'" in commands
