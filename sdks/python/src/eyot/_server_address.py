"""Where a server is, and with what key: from the arguments, else from `EYOT_SERVER` and `EYOT_API_KEY`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode

from .errors import Invalid

#: The host in requests over a unix socket; the server lets only its own names in.
_SOCKET_HOST = "localhost"

#: How a server is started with what a client can give to its own.
_COMMANDS = {
    "provider": "eyot --provider PROVIDER serve",
    "state_dir": "eyot --state DIR serve",
    "allow_host_networks": "eyot serve --allow-host-networks",
    "agents_dir": "eyot serve --agents DIR",
    "model": "eyot serve --model PROVIDER/MODEL",
}


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is: a URL, or the path of a unix socket."""

    url: str
    socket: str | None = None
    #: The one that named it: the program, `EYOT_SERVER`, or the client that started the server.
    origin: Literal["program", "environment", "own"] = "program"

    def __str__(self) -> str:
        """As it is given to a client, without a password."""
        return re.sub(r"//[^/]*@", "//", self.url) if self.socket is None else f"unix:{self.socket}"

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """From `http://HOST:PORT`, `https://…` or `unix:/PATH`."""
        if text.startswith("unix:"):
            path = text.removeprefix("unix:").removeprefix("//")
            if not path.startswith("/"):
                raise Invalid(f"server address `{text}`: the path of a socket must be absolute", field="url")
            return cls(f"http://{_SOCKET_HOST}", path)
        if not text.startswith(("http://", "https://")):
            raise Invalid(f"server address `{text}`: must begin with http://, https:// or unix:", field="url")
        return cls(text.rstrip("/"))

    def websocket_url(self, path: str, params: dict[str, str]) -> str:
        """The URL of a WebSocket at this path."""
        query = f"?{urlencode(params)}" if params else ""
        return f"ws{self.url.removeprefix('http')}{path}{query}"


def given_address(url: str | None) -> ServerAddress | None:
    """The address that was given or that the environment has; `None`: neither."""
    if url:
        return ServerAddress.parse(url)
    text = os.environ.get("EYOT_SERVER")
    return replace(ServerAddress.parse(text), origin="environment") if text else None


def key_header(key: str | None) -> dict[str, str]:
    """The header that shows the key, if one was given or the environment has one."""
    key = key or os.environ.get("EYOT_API_KEY")
    return {"authorization": f"Bearer {key}"} if key else {}


def check_is_started(options: Mapping[str, Any], address: ServerAddress) -> None:
    """Refuses options of a server that the client starts, where it starts none: they would be ignored."""
    name = next((name for name in _COMMANDS if options.get(name)), None)
    if name is None:
        return
    is_named = address.origin == "environment"
    told, without = ("EYOT_SERVER names", "unset EYOT_SERVER") if is_named else ("this one is of", "give no URL")
    raise Invalid(
        f"`{name}` is for a server that the client starts, and {told} {address}",
        field=name,
        hint=f"start that server with it: `{_COMMANDS[name]}`; or {without}, and the client starts one",
    )
