"""Checks of what a caller gives, before anything is sent: what is wrong is `Invalid`, and names the parameter."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from .errors import Invalid

_LAST_PORT = 65_535
_LAST_SIGNAL = 64

#: Linux's numbers of the signals that the command `eyot kill` knows by name.
_SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "CONT": 18,
    "STOP": 19, "TSTP": 20, "WINCH": 28,
}  # fmt: skip


def refused(what: str, field: str, reason: str) -> Invalid:
    """The error about a parameter; the reason goes on behind its name."""
    return Invalid(f"{what}: `{field}` {reason}", reason=reason, field=field)


def shown(value: object) -> str:
    """A wrong value in a sentence: itself where that is short, else its type."""
    return repr(value) if value is None or isinstance(value, bool | int | float) else f"`{type(value).__name__}`"


def path_text(path: object, what: str, field: str = "path") -> str:
    """A path in a sandbox as text."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(text, str):
        return text
    raise refused(what, field, f"must be a text, such as 'notes.txt', not {shown(path)}")


def segment(name: object, of: str) -> str:
    """A name or an id as a part of a URL's path. An empty one would make the path of something else."""
    if isinstance(name, str) and name:
        return quote(name, safe="")
    raise needs_name(name, of)


def needs_name(name: object, of: str) -> Invalid:
    """The error about a name or an id that is empty, or no text."""
    reason = f"the name or the id of {of} is needed, not {'an empty text' if name == '' else shown(name)}"
    return Invalid(reason, reason=reason, field=of.rpartition(" ")[2])


def port_number(port: Any, what: str) -> int:
    """A port of a sandbox."""
    if isinstance(port, int) and not isinstance(port, bool) and 1 <= port <= _LAST_PORT:
        return port
    raise refused(what, "port", f"must be a number from 1 to {_LAST_PORT}, not {shown(port)}")


def signal_number(signal: int | str, what: str) -> int:
    """The Linux number of a signal, which may be named with or without `SIG`, in any case."""
    if isinstance(signal, str):
        name = signal.upper().removeprefix("SIG")
        number = int(name) if name.isdecimal() else _SIGNALS.get(name)
        if number is None:
            raise refused(what, "signal", f"is unknown: {signal}; use TERM, KILL, INT, HUP or a number")
    else:
        number = signal
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= _LAST_SIGNAL:
        return int(number)
    raise refused(what, "signal", f"must be a name or a number from 1 to {_LAST_SIGNAL}, not {shown(number)}")
