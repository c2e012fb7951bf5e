"""What a tool answers to a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolResult:
    """What a tool answers. What goes wrong is for the model to read, too."""

    #: What the model reads, in pieces.
    content: list[str]
    #: It says what went wrong.
    is_error: bool
    #: The same as data, where the tool has it.
    structured: Any = None
