"""Files, directories, searches, trees."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from eyot import AlreadyExists, AsyncSandbox, Client, Invalid, IsDirectory, NotDirectory, NotFound, Sandbox, TooLarge


def test_what_is_written_is_read_and_parents_are_made(sandbox: Sandbox) -> None:
    assert sandbox.write_file("a/b/c.txt", "grün") == 5
    assert sandbox.read_text("a/b/c.txt") == "grün"
    assert sandbox.read_file("/workspace/a/b/c.txt") == "grün".encode()


def test_bytes_stay_as_they_are_and_a_part_can_be_read(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 5000
    sandbox.write_file("data", data)
    assert sandbox.read_file("data") == data
    assert sandbox.read_file("data", offset=10, limit=3) == data[10:13]


def test_text_that_is_none_is_said_to_be_none(sandbox: Sandbox) -> None:
    sandbox.write_file("data", b"\xff")
    with pytest.raises(UnicodeDecodeError):
        sandbox.read_text("data")


def test_a_name_with_odd_characters_is_a_name(sandbox: Sandbox) -> None:
    for name in ("with space", "a&b=c?d#e%20", "ü", "quote'\""):
        sandbox.write_file(name, name)
        assert sandbox.read_text(name) == name


def test_append_adds_and_create_new_refuses_what_is_there(sandbox: Sandbox) -> None:
    sandbox.append_file("log", "a")
    assert sandbox.append_file("log", "b") == 2 and sandbox.read_text("log") == "ab"
    with pytest.raises(AlreadyExists):
        sandbox.write_file("log", "c", mode="create_new")
    assert sandbox.read_text("log") == "ab"


def test_a_file_larger_than_allowed_is_refused_and_nothing_changes(sandbox: Sandbox) -> None:
    with pytest.raises(TooLarge):
        sandbox.write_file("big", b"x" * 100, max_file_bytes=10)
    assert not sandbox.exists("big")


def test_stat_tells_size_and_permissions(sandbox: Sandbox) -> None:
    sandbox.write_file("run.sh", "#!/bin/sh\n", permissions=0o755)
    stat = sandbox.stat("run.sh")
    assert stat.is_file and not stat.is_directory and stat.size == 10 and stat.mode == 0o755
    assert sandbox.stat(".").is_directory


def test_what_is_missing_is_not_found_and_does_not_exist(sandbox: Sandbox) -> None:
    assert not sandbox.exists("nope")
    for attempt in (sandbox.read_file, sandbox.stat, sandbox.list, sandbox.remove):
        with pytest.raises(NotFound) as caught:
            attempt("nope")
        assert caught.value.kind == "not_found" and "nope" in str(caught.value)
    sandbox.remove("nope", force=True)


def test_a_directory_is_no_file_and_a_file_is_no_directory(sandbox: Sandbox) -> None:
    sandbox.mkdir("d")
    sandbox.write_file("f", "x")
    with pytest.raises(IsDirectory):
        sandbox.read_file("d")
    with pytest.raises(NotDirectory):
        sandbox.list("f")


def test_directories_are_made_listed_moved_and_removed(sandbox: Sandbox) -> None:
    sandbox.mkdir("d/e", recursive=True)
    with pytest.raises(AlreadyExists):
        sandbox.mkdir("d")
    sandbox.write_file("d/.hidden", "12")
    entries = sandbox.list("d")
    assert [(entry.name, entry.file_type) for entry in entries] == [(".hidden", "file"), ("e", "directory")]
    sandbox.rename("d", "moved")
    assert sandbox.exists("moved/e") and not sandbox.exists("d")
    with pytest.raises(IsDirectory):
        sandbox.remove("moved")
    sandbox.remove("moved", recursive=True)
    assert sandbox.list() == []


def test_glob_and_grep_find_files_and_lines(sandbox: Sandbox) -> None:
    sandbox.write_file("src/a.py", "import os\nx = 1\n")
    sandbox.write_file("src/deep/b.py", "x = 2\n")
    sandbox.write_file("notes.md", "x = 3\n")
    assert sandbox.glob("**/*.py").paths == ["/workspace/src/a.py", "/workspace/src/deep/b.py"]
    assert sandbox.glob("*.py", "src").paths == ["/workspace/src/a.py"]
    found = sandbox.grep(r"x = \d", include="*.py")
    assert [(one.path, one.line_number, one.line) for one in found.matches] == [
        ("/workspace/src/a.py", 2, "x = 1"),
        ("/workspace/src/deep/b.py", 1, "x = 2"),
    ]
    assert sandbox.grep(r"\d", literal=True).matches == []
    assert sandbox.grep("x", max_matches=1).truncated


def test_a_tree_goes_out_and_in_as_tar(sandbox: Sandbox) -> None:
    sandbox.write_file("tree/a", "1")
    sandbox.write_file("tree/b/c", "2")
    tar = sandbox.tar_out("tree")
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        assert {name.rstrip("/") for name in archive.getnames()} == {"tree", "tree/a", "tree/b", "tree/b/c"}
    sandbox.mkdir("copy")
    assert sandbox.tar_in("copy", tar) == 4
    assert sandbox.read_text("copy/tree/b/c") == "2"


def test_a_watch_tells_what_happens_from_its_beginning_on(sandbox: Sandbox) -> None:
    sandbox.write_file("old", "x")
    with sandbox.watch() as events:
        sandbox.mkdir("d")
        sandbox.rename("old", "new")
        seen = [next(events), next(events)]
    assert (seen[0].kind, seen[0].path, seen[0].is_directory) == ("created", "/workspace/d", True)
    assert (seen[1].kind, seen[1].path, seen[1].renamed_from) == ("renamed", "/workspace/new", "/workspace/old")


def test_a_watch_tells_names_with_every_line_separator_of_unicode(sandbox: Sandbox) -> None:
    name = "a\u2028b\u2029c\u0085d"
    with sandbox.watch() as events:
        sandbox.mkdir(name)
        assert next(events).path == f"/workspace/{name}"


def pieces(number: int = 64) -> Iterator[bytes]:
    for at in range(number):
        yield bytes([at]) * 65_536


def test_a_large_file_goes_in_and_out_in_pieces(sandbox: Sandbox) -> None:
    assert sandbox.write_file("big", pieces()) == 64 * 65_536
    with sandbox.read_stream("big") as data:
        assert b"".join(data) == b"".join(pieces())
    with sandbox.read_stream("big", offset=65_530, limit=10) as data:
        assert b"".join(data) == b"\0" * 6 + b"\1" * 4
    assert sandbox.append_file("big", iter([b"a", b"b"])) == 64 * 65_536 + 2
    with io.BytesIO(b"from a file") as file:
        assert sandbox.write_file("copy", file) == 11


def test_a_file_that_is_read_in_part_leaves_the_client_usable(sandbox: Sandbox) -> None:
    sandbox.write_file("big", b"x" * 10_000_000)
    with sandbox.read_stream("big") as data:
        assert next(data).startswith(b"x")
    assert sandbox.exec("echo on").stdout == "on\n"


def test_a_file_that_is_missing_is_not_found_before_it_is_read(sandbox: Sandbox) -> None:
    with pytest.raises(NotFound), sandbox.read_stream("nope"):
        pass


def test_a_write_that_breaks_off_leaves_what_was_there(sandbox: Sandbox) -> None:
    sandbox.write_file("kept", "mine")

    def broken() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sandbox.write_file("kept", broken())
    assert sandbox.read_text("kept") == "mine" and sandbox.glob("**", hidden=True).paths == ["/workspace/kept"]


def test_a_tree_goes_from_one_sandbox_to_another_in_pieces(client: Client, sandbox: Sandbox) -> None:
    sandbox.write_file("tree/a", pieces())
    with client.create() as other, sandbox.tar_out_stream("tree") as tar:
        assert other.tar_in(".", tar) == 2
        assert other.stat("tree/a").size == 64 * 65_536


@pytest.mark.parametrize("wrong", [None, 5, {"a": 1}, io.StringIO("text"), ["text"]])
async def test_what_is_no_content_is_refused_and_changes_no_file(
    sandbox: Sandbox, async_sandbox: AsyncSandbox, wrong: Any
) -> None:
    sandbox.write_file("keep", "kept")
    for write in (sandbox.write_file, sandbox.append_file):
        with pytest.raises(Invalid, match=r"write file `keep`: `data` (must be|is a file|has a piece)") as caught:
            write("keep", wrong)
        assert caught.value.field == "data"
    assert sandbox.read_text("keep") == "kept"
    await async_sandbox.write_file("keep", "kept")
    with pytest.raises(Invalid, match="write file `keep`: `data`"):
        await async_sandbox.write_file("keep", wrong)
    assert await async_sandbox.read_text("keep") == "kept"


async def test_of_several_files_none_is_written_where_one_has_no_content(sandbox: Sandbox, async_sandbox: AsyncSandbox) -> None:
    files: Any = {"first": "x", "keep": None}
    with pytest.raises(Invalid, match=r"write files: `files\['keep'\]` must be a text, bytes, .*, not None"):
        sandbox.write_files(files)
    with pytest.raises(Invalid, match=r"`files` must be a mapping of paths to contents"):
        sandbox.write_files([{"path": "a", "data": "x"}])  # type: ignore[arg-type]
    assert not sandbox.exists("first")
    with pytest.raises(Invalid, match=r"`files\['keep'\]`"):
        await async_sandbox.write_files(files)
    assert not await async_sandbox.exists("first")


@pytest.mark.parametrize("wrong", [None, 5, b"bytes"])
def test_a_path_that_is_no_text_is_refused(sandbox: Sandbox, wrong: Any) -> None:
    calls = [sandbox.read_text, sandbox.stat, sandbox.exists, sandbox.list, sandbox.mkdir, sandbox.remove, sandbox.tar_out]
    for call in calls:
        with pytest.raises(Invalid, match=r"`path` must be a text, such as 'notes.txt', not") as caught:
            call(wrong)
        assert caught.value.field == "path"
    with pytest.raises(Invalid, match="rename: `target` must be a text"):
        sandbox.rename("a", wrong)
    with pytest.raises(Invalid, match="unpack: `tar` must be"):
        sandbox.tar_in(".", 5)  # type: ignore[arg-type]
