"""A sandbox's network."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from .._arguments import port_number
from .._call import Call, nothing
from .._wire import known
from ..errors import Unsupported
from ..network import EgressRules, Preview, PublishedPort
from .at import At


def rules(at: At) -> Call[EgressRules]:
    """Says which rules hold."""
    return Call("GET", at.path("/egress"), lambda response: known(EgressRules, response.json()), at.params())


def set_rules(at: At, allow: Sequence[str], deny: Sequence[str]) -> Call[None]:
    """Replaces the rules."""
    return Call("PUT", at.path("/egress"), nothing, at.params(), {"allow": list(allow), "deny": list(deny)})


def decisions(at: At, last: int | None, follow: bool) -> Call[None]:
    """Tells what was decided; the answer is a stream of events."""
    return Call("GET", at.path("/egress/decisions"), nothing, at.params(last=last, follow=follow))


def published_ports(at: At) -> Call[list[PublishedPort]]:
    """Says where published ports are."""

    def read(response: httpx.Response) -> list[PublishedPort]:
        return [known(PublishedPort, one) for one in response.json()["ports"]]

    return Call("GET", at.path("/ports"), read, at.params())


def preview(at: At, port: int, public: bool, ttl_ms: int | None, *, own_server: bool) -> Call[Preview]:
    """Makes a port a web page of the server's, unless that is the client's own, which no browser reaches."""
    port_number(port, "preview")
    if own_server:
        raise Unsupported(
            f"preview port {port} of sandbox `{at.id_or_name}`: the server that this client started has no address for "
            f"browsers; use forward({port}), a port of this machine, or a server with a TCP address",
            hint="start `eyot serve`, and give the client its URL: Client('http://127.0.0.1:7070'), or EYOT_SERVER",
        )
    body = {"public": public} if ttl_ms is None else {"public": public, "ttl_ms": ttl_ms}
    path = at.path(f"/ports/{port}/preview")
    return Call("POST", path, lambda response: known(Preview, response.json()), at.params(), body)


def end_previews(at: At, port: int) -> Call[None]:
    """Ends all previews of a port."""
    port_number(port, "end previews")
    return Call("DELETE", at.path(f"/ports/{port}/preview"), nothing, at.params())
