"""The folders of a server's host that a sandbox has, as they go over the wire."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import Invalid


def on_the_wire(mounts: Sequence[Any], *, has_own_server: bool) -> list[Any]:
    """Mounts whose sources are absolute. What is none is left to the server, which says so."""
    if isinstance(mounts, (str, Mapping)):
        raise Invalid("create sandbox: `mounts` is a list, such as ['./data:/data:ro']", field="mounts")
    return [_mount(mount, has_own_server) for mount in mounts]


def _mount(mount: Any, has_own_server: bool) -> Any:
    if isinstance(mount, str):
        mount = _of_text(mount)
    if not isinstance(mount, Mapping) or "source" not in mount:
        return mount
    source = os.fspath(mount["source"])
    if not os.path.isabs(source):
        source = _found(source) if has_own_server else _refused(source)
    return {**mount, "source": source}


def _of_text(text: str) -> dict[str, Any]:
    """From SOURCE:TARGET, SOURCE:TARGET:ro, SOURCE:TARGET:rw or SOURCE:TARGET:cow. The source may have colons."""
    folders, _, access = text.rpartition(":")
    if "/" in access:
        folders, access = text, "ro"
    source, _, target = folders.rpartition(":")
    if not source or not target.startswith("/"):
        raise _no_mount(f"`{text}` is no mount; write SOURCE:TARGET:ro, as in ./data:/data:ro, or :rw where the sandbox writes")
    if access not in ("ro", "rw", "cow"):
        raise _no_mount(f"`{access}` is not an option of a mount; write {folders}:ro, or {folders}:rw where the sandbox writes")
    mount = {"source": source, "target": target, "writable": access == "rw"}
    return {**mount, "cow": True} if access == "cow" else mount


def _no_mount(reason: str) -> Invalid:
    return Invalid(f"create sandbox: {reason}", reason=reason, field="mounts")


def _found(source: str) -> str:
    """The folder that is named from where this program works, which is where its own server does."""
    try:
        return str(Path(source).resolve(strict=True))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _invalid(f"the folder `{source}` of this host, from `{Path.cwd()}`: {reason}") from error


def _refused(source: str) -> str:
    raise _invalid(
        f"must be absolute: {source}",
        "it is a folder of the server's host; with a server that the client starts it may be one of the working directory",
    )


def _invalid(reason: str, hint: str | None = None) -> Invalid:
    return Invalid(f"create sandbox: `mounts.source` {reason}", reason=reason, field="mounts.source", hint=hint)
