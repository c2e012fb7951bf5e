"""What is told of sandboxes, and what a new one is made from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from ._arguments import refused, shown
from ._content import entries
from ._keywords import instead_of
from ._wire import known


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox, as it was when the server answered."""

    #: Never used twice.
    id: str
    #: Its name in its pool.
    name: str
    pool: str
    provider: str
    #: `creating`, `running`, `sleeping`, …
    status: str
    #: The working directory.
    workdir: str
    #: When it was made, in milliseconds since 1970 (UTC).
    created_ms: int
    #: When it ends for good (RFC 3339); `None`: never.
    expires_at: str | None
    #: The time without use after which it sleeps or is destroyed.
    idle_timeout_ms: int | None
    labels: dict[str, str]
    #: What it was made from, without the values of variables and the contents of files.
    spec: dict[str, Any]
    #: The names of its variables.
    env_names: list[str]
    #: What holds around it.
    isolation: dict[str, Any]
    #: Which of its lives this is: another text after every wake. Empty where it was not looked at: in a list of Docker's.
    life: str = ""


@dataclass(frozen=True)
class SandboxPage:
    """Some sandboxes of a pool, oldest first."""

    sandboxes: list[SandboxInfo]
    #: What to ask with for those that follow; `None`: there are none.
    next_cursor: str | None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> SandboxPage:
        """From the server's answer."""
        return cls([known(SandboxInfo, one) for one in wire["sandboxes"]], wire.get("next_cursor"))


@dataclass(frozen=True)
class Capabilities:
    """What the server's sandboxes can do, and what would hold around one made from a default spec."""

    provider: str
    capabilities: list[str]
    isolation: dict[str, Any]


class Limits(TypedDict, total=False):
    """What a sandbox may use; absent is the provider's default."""

    timeout_ms: int
    max_output_bytes: int
    max_file_bytes: int
    memory_mib: int
    cpus: float
    pids: int
    disk_mib: int


class _Folder(TypedDict):
    #: The folder (or file) on the server's host, absolute; with a server that the client starts, from the working directory.
    source: str | os.PathLike[str]
    #: Where it appears inside.
    target: str


class Mount(_Folder, total=False):
    """A folder of the server's host inside the sandbox. Only a server on this machine without keys takes them."""

    #: The sandbox may write to it; by default not.
    writable: bool
    #: The sandbox changes a copy of its own, and the folder stays as it is.
    cow: bool


class UnnamedOptions(TypedDict, total=False):
    """What a new sandbox is made from, besides its name; every part has a default."""

    #: `host`, or the name of an image such as `node:22`.
    image: str
    #: The id of a snapshot of the pool, whose files it begins with in place of an image: see `Client.fork`.
    snapshot: str
    #: Where commands start.
    workdir: str
    #: Variables for every command.
    env: dict[str, str]
    #: Who runs commands.
    user: str
    #: `list` finds it by them.
    labels: dict[str, str]
    #: Facts that are kept, and told in `info.spec`. `list` finds nothing by them.
    metadata: dict[str, str]
    #: The network: `none` (the default), or `egress`, public addresses. `True` is `egress`, `False` is `none`.
    network: bool | Literal["none", "egress", "bridge"]
    #: Which addresses, with `egress`: `{"allow": [...], "deny": [...]}`.
    egress: dict[str, list[str]]
    #: Folders of the host; as text `SOURCE:TARGET`, which the sandbox only reads, or `SOURCE:TARGET:rw`.
    mounts: Sequence[Mount | str]
    #: Ports that a container engine publishes on its host's loopback: see `published_ports`.
    ports: list[int]
    limits: Limits
    #: It is destroyed so long after it was made.
    ttl_ms: int
    #: After so long without use `on_idle` happens.
    idle_timeout_ms: int
    on_idle: Literal["destroy", "sleep"]
    #: Files, by their path relative to the working directory, that are there before anybody uses it.
    files: dict[str, str | bytes]
    #: Directories, likewise.
    directories: list[str]
    #: The id of a workspace that outlives the sandbox, and that sandboxes may share.
    workspace: str
    #: Protections without which the create must fail.
    require: list[str]
    #: Parts of the server's `SandboxSpec` that have no option here.
    spec: dict[str, Any]


class SandboxOptions(UnnamedOptions, total=False):
    """What a new sandbox is made from; every part has a default."""

    #: `[a-z0-9][a-z0-9-]{0,40}`, unique in its pool.
    name: str


_AS_THEY_ARE = (
    "name",
    "image",
    "snapshot",
    "workdir",
    "env",
    "user",
    "labels",
    "metadata",
    "network",
    "egress",
    "mounts",
    "limits",
    "require",
)
_LIFECYCLE = ("ttl_ms", "idle_timeout_ms", "on_idle")


def spec_of(options: SandboxOptions) -> dict[str, Any]:
    """The `SandboxSpec` on the wire."""
    given: dict[str, Any] = dict(options)
    unknown = min(given.keys() - SandboxOptions.__optional_keys__, default=None)
    if unknown is not None:
        raise TypeError(f"a sandbox has no option {unknown!r}{_instead_of(unknown)}")
    spec: dict[str, Any] = dict(given.get("spec", {}))
    spec.update({name: given[name] for name in _AS_THEY_ARE if given.get(name) is not None})
    lifecycle = {name: given[name] for name in _LIFECYCLE if given.get(name) is not None}
    if lifecycle:
        spec["lifecycle"] = {**spec.get("lifecycle", {}), **lifecycle}
    if given.get("ports"):
        spec["container"] = {**spec.get("container", {}), "ports": given["ports"]}
    manifest: dict[str, Any] = {}
    if given.get("files") is not None:
        files = {path: _content(path, content) for path, content in entries(given["files"], "create sandbox")}
        manifest |= {"files": files} if files else {}
    if given.get("directories"):
        manifest["directories"] = given["directories"]
    if manifest:
        spec["manifest"] = {**spec.get("manifest", {}), **manifest}
    if given.get("workspace") is not None:
        spec["workspace"] = {"mode": "persistent", "id": given["workspace"]}
    return spec


#: Options of other libraries, and what to write instead.
_OURS = {
    "timeout": "ttl_ms for the sandbox, or limits={'timeout_ms': …} for its commands, in milliseconds",
    "timeout_s": "ttl_ms for the sandbox, or limits={'timeout_ms': …} for its commands, in milliseconds",
    "idle_timeout": "idle_timeout_ms, in milliseconds",
    "ttl": "ttl_ms, in milliseconds",
    "memory": "limits={'memory_mib': …}, in MiB",
    "memory_mb": "limits={'memory_mib': …}, in MiB",
    "cpu": "limits={'cpus': …}",
    "disk": "limits={'disk_mib': …}, in MiB",
    "envs": "env",
    "environment": "env",
    "cwd": "workdir",
    "template": "image",
    "volumes": "mounts",
    "allow_internet_access": "network='egress'",
}


def _instead_of(option: str) -> str:
    """The end of a sentence about an option that there is not: the one that was meant."""
    if option in Limits.__optional_keys__:
        return f"; use limits={{{option!r}: …}}"
    if option in _OURS:
        return f"; use {_OURS[option]}"
    return instead_of(option, sorted(SandboxOptions.__optional_keys__))


def _content(path: str, content: str | bytes) -> str | list[int]:
    """A file's content in JSON: text where it is UTF-8, else its bytes as numbers."""
    if isinstance(content, str):
        return content
    if not isinstance(content, bytes | bytearray):
        raise refused("create sandbox", f"files[{path!r}]", f"must be a text or bytes, not {shown(content)}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return list(content)
