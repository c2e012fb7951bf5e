"""Data classes from the server's JSON: what they don't know is left out, so that a newer server does no harm."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def known(of: type[T], wire: dict[str, Any]) -> T:
    """An instance with those of the values that the data class has fields for."""
    names = {field.name for field in fields(of)}  # type: ignore[arg-type]
    return of(**{name: value for name, value in wire.items() if name in names})
