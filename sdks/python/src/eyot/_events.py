"""Server-sent events, from the lines of a response."""

from __future__ import annotations

import json
from typing import Any

from .errors import of_problem


class EventReader:
    """Takes lines and gives the values of the events that they make up."""

    def __init__(self) -> None:
        self._name = ""
        self._data: list[str] = []

    def line(self, line: str) -> dict[str, Any] | None:
        """The value of the event that ends with this line, if one does. An event `problem` is raised."""
        if line == "":
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return None

    def _end(self) -> dict[str, Any] | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        if not data:
            return None
        value: dict[str, Any] = json.loads("\n".join(data))
        if name == "problem":
            raise of_problem(value)
        return value
