"""Where a server is, and with what key: from the arguments, else from `EYOT_SERVER` and `EYOT_API_KEY`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlencode

from .errors import Invalid

#: The host in requests over a unix socket; the server lets only its own names in.
_SOCKET_HOST = "localhost"


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is: a URL, or the path of a unix socket."""

    url: str
    socket: str | None = None
    #: Who named it: the program, `EYOT_SERVER`, or the client that started the server.
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
