"""What is told of a sandbox's network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._wire import known


@dataclass(frozen=True)
class EgressRules:
    """Where a sandbox with the network `egress` may connect to; without any rule, to every public address.

    A rule is `example.com`, `*.example.com` or `10.1.0.0/16`, with `:port` if need be.
    """

    #: If there is any, nothing else is allowed.
    allow: list[str]
    #: Refused whatever else holds.
    deny: list[str]


@dataclass(frozen=True)
class EgressDecision:
    """What was decided about one attempt to leave a sandbox."""

    #: Counts the sandbox's decisions from 1; a gap means that some were forgotten.
    number: int
    #: When, in milliseconds since 1970 (UTC).
    at_ms: int
    #: `allowed` or `refused`.
    verdict: str
    #: How it was asked for, such as `http`.
    protocol: str
    #: The host as it was asked for.
    host: str
    #: Why, as the end of a sentence.
    reason: str
    #: `None` for a name's addresses.
    port: int | None = None
    #: The address that was dialled or refused, where it came to one.
    address: str | None = None

    @classmethod
    def of_wire(cls, wire: dict[str, Any]) -> EgressDecision:
        """From the server's event."""
        return known(cls, wire)


@dataclass(frozen=True)
class Preview:
    """Where a port of a sandbox can be seen as a web page."""

    #: The sandbox's id.
    sandbox: str
    #: The port inside.
    port: int
    #: The address to open. It has a token that works once, within an hour, and becomes a cookie then; a public one has none.
    url: str
    #: The same below the server's own host, where names below `localhost` lead nowhere.
    path_url: str
    #: The name of the header in which a program shows the token instead.
    header: str
    #: Anybody who knows the address may see it.
    public: bool
    #: Until when (RFC 3339), unless it ends with the sandbox, with the server, or by `end_previews`.
    expires_at: str
    #: What a program shows; `None`: it is public.
    token: str | None = None


@dataclass(frozen=True)
class PublishedPort:
    """A port of a sandbox that is published on the server's host, as container engines do."""

    #: The port inside.
    port: int
    #: The address on the server's host.
    host: str
    #: The port there.
    host_port: int
