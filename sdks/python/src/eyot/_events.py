"""Server-sent events, from the bytes of a response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import of_problem


@dataclass(frozen=True)
class StreamEvent:
    """An event with its value."""

    name: str
    #: Its number, in streams that can be taken up again.
    number: int | None
    value: dict[str, Any]


class EventStream:
    """Takes bytes, however they were cut, and gives the events that they make up."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._reader = _EventReader()

    def take(self, data: bytes) -> Iterator[StreamEvent]:
        """The events that end with these bytes. An event `problem` is raised."""
        for line in self._lines.take(data):
            event = self._reader.line(line)
            if event is not None:
                yield event


class _Lines:
    """Cuts bytes into lines of text.

    At line feeds alone: `str.splitlines` also cuts at U+0085, U+2028 and others, which JSON has unescaped inside of texts.
    """

    def __init__(self) -> None:
        #: Pieces of a line whose end has not come.
        self._begun: list[bytes] = []

    def take(self, data: bytes) -> Iterator[str]:
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join([*self._begun, end])
            self._begun = []
            yield line.removesuffix(b"\r").decode()
        if rest:
            self._begun.append(rest)


class _EventReader:
    """Takes lines and gives the events that they make up."""

    def __init__(self) -> None:
        self._name = ""
        self._number: int | None = None
        self._data: list[str] = []

    def line(self, line: str) -> StreamEvent | None:
        if line == "":
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "id" and value.isdecimal():
            self._number = int(value)
        elif name == "data":
            self._data.append(value)
        return None

    def _end(self) -> StreamEvent | None:
        name, number, data = self._name, self._number, self._data
        self._name, self._number, self._data = "", None, []
        if not data:
            return None
        value: dict[str, Any] = json.loads("\n".join(data))
        if name == "problem":
            raise of_problem(value)
        return StreamEvent(name, number, value)
