"""Sandboxes themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from .._call import Call, nothing, params
from .._mounts import on_the_wire
from .._wire import known
from ..processes import Usage
from ..sandbox_info import Capabilities, SandboxInfo, SandboxOptions, SandboxPage, spec_of
from .at import At


def _info(response: httpx.Response) -> SandboxInfo:
    return known(SandboxInfo, response.json())


def create(pool: str | None, options: SandboxOptions, *, get_or_create: bool, has_own_server: bool) -> Call[SandboxInfo]:
    """Makes a sandbox, in the pool of its name if that is POOL/NAME."""
    spec = spec_of(options)
    if spec.get("mounts"):
        spec["mounts"] = on_the_wire(spec["mounts"], has_own_server=has_own_server)
    of_name, slash, name = str(spec.get("name", "")).partition("/")
    if slash and pool in (None, of_name):
        pool, spec["name"] = of_name, name
    body = {"pool": pool, "spec": spec, "get_or_create": get_or_create}
    return Call("POST", "/v1/sandboxes", _info, json=body)


def page(pool: str | None, labels: dict[str, str] | None, cursor: str | None, limit: int | None) -> Call[SandboxPage]:
    """Lists some of the sandboxes."""
    label = ",".join(f"{key}={value}" for key, value in labels.items()) if labels else None
    query = params(pool=pool, label=label, cursor=cursor, limit=limit)
    return Call("GET", "/v1/sandboxes", lambda response: SandboxPage.of_wire(response.json()), query)


def get(at: At) -> Call[SandboxInfo]:
    """Looks at a sandbox without waking it."""
    return Call("GET", at.path(), _info, at.params())


def update(
    at: At,
    labels: Mapping[str, str | None] | None,
    lifecycle: Mapping[str, Any] | None,
    egress: Mapping[str, Sequence[str]] | None,
) -> Call[SandboxInfo]:
    """Changes a sandbox."""
    body: dict[str, Any] = {}
    if labels is not None:
        body["labels"] = dict(labels)
    if lifecycle is not None:
        body["lifecycle"] = dict(lifecycle)
    if egress is not None:
        body["egress"] = {name: list(rules) for name, rules in egress.items()}
    return Call("PATCH", at.path(), _info, at.params(), body)


def wake(at: At) -> Call[SandboxInfo]:
    """Wakes a sandbox."""
    return Call("POST", at.path("/wake"), _info, at.params())


def sleep(at: At) -> Call[None]:
    """Puts a sandbox to sleep."""
    return Call("POST", at.path("/sleep"), nothing, at.params())


def destroy(at: At) -> Call[None]:
    """Destroys a sandbox."""
    return Call("DELETE", at.path(), nothing, at.params())


def abandon(at: At) -> Call[None]:
    """Undoes a create that could not be finished."""
    return Call("DELETE", at.path(), nothing, at.params(abandon=True))


def usage(at: At) -> Call[Usage]:
    """Says what a sandbox uses."""
    return Call("GET", at.path("/usage"), lambda response: known(Usage, response.json()["usage"]), at.params())


def capabilities() -> Call[Capabilities]:
    """Says what sandboxes can do."""
    return Call("GET", "/v1/capabilities", lambda response: known(Capabilities, response.json()))


def version() -> Call[str]:
    """Says the server's version."""
    return Call("GET", "/v1/version", lambda response: str(response.json()["version"]))
