"""Names that E2B's SDK has, and this one has not: the error names ours."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eyot import AsyncClient, AsyncSandbox, Client, Sandbox


@pytest.fixture
def unasked() -> Sandbox:
    """A sandbox of which nothing is asked of a server."""
    return Client("unix:/nowhere.sock").sandbox("nobody")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("commands", "use exec(command)"),
        ("files", "write_file(path, data)"),
        ("pty", "use open_terminal()"),
        ("get_host", "use forward(port)"),
        ("set_timeout", "use update(lifecycle={'ttl_ms': …})"),
        ("pause", "use sleep()"),
        ("is_running", "use refresh().status"),
        ("sandbox_id", "use id"),
    ],
)
async def test_a_name_of_another_library_is_answered_with_ours(unasked: Sandbox, name: str, ours: str) -> None:
    async with AsyncClient("unix:/nowhere.sock") as client:
        for sandbox in (unasked, client.sandbox("nobody")):
            with pytest.raises(AttributeError) as caught:
                getattr(sandbox, name)
            assert str(caught.value).startswith(f"'{type(sandbox).__name__}' object has no attribute '{name}'; ")
            assert ours in str(caught.value)
            assert not hasattr(sandbox, name) and name not in dir(sandbox)


@pytest.mark.parametrize("of", [Sandbox, AsyncSandbox])
@pytest.mark.parametrize(("name", "ours"), [("create", "use client.create()"), ("connect", "use client.get(id_or_name)")])
def test_a_name_of_another_library_s_class_is_answered_with_ours(of: type, name: str, ours: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(of, name)
    assert str(caught.value).startswith(f"type object '{of.__name__}' has no attribute '{name}'; {ours}")
    assert not hasattr(of, name)


@pytest.mark.parametrize("of", [Sandbox, AsyncSandbox])
@pytest.mark.parametrize("options", [((), {}), (("base",), {}), (("base", 60), {}), ((), {"template": "base", "timeout": 60})])
def test_a_class_that_is_called_as_in_another_library_says_what_makes_a_sandbox(of: type, options: Any) -> None:
    args, kwargs = options
    with pytest.raises(TypeError) as caught:
        of(*args, **kwargs)
    assert str(caught.value) == f"{of.__name__}() makes no sandbox; use client.create(): a Client makes sandboxes"


async def test_a_kill_without_a_process_is_told_what_ends_the_sandbox(unasked: Sandbox) -> None:
    for sandbox in (unasked, AsyncClient("unix:/nowhere.sock").sandbox("nobody")):
        with pytest.raises(TypeError, match=r"kill\(\) needs the process to kill; use destroy\(\) to end the sandbox"):
            sandbox.kill()  # type: ignore[call-arg]


def test_another_name_is_missing_as_everywhere(unasked: Sandbox) -> None:
    for of, missing in (
        (unasked, "'Sandbox' object has no attribute 'clone'"),
        (Sandbox, "type object 'Sandbox' has no attribute 'clone'"),
    ):
        with pytest.raises(AttributeError) as caught:
            of.clone  # type: ignore[union-attr]  # noqa: B018
        assert (str(caught.value), caught.value.name, caught.value.obj) == (missing, "clone", of)
    assert copy.copy(unasked).id == "nobody"
