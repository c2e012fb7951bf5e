"""Where a sandbox is in the API."""

from __future__ import annotations

from dataclasses import dataclass

from .._arguments import needs_name, segment
from .._call import params


@dataclass(frozen=True)
class At:
    """A sandbox by its id, or by its name in a pool."""

    id_or_name: str
    #: The pool of a name; by default the key's own.
    pool: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id_or_name, str) or not self.id_or_name:
            raise needs_name(self.id_or_name, "a sandbox")

    def path(self, rest: str = "") -> str:
        """The path of something that belongs to the sandbox."""
        return f"/v1/sandboxes/{segment(self.id_or_name, 'a sandbox')}{rest}"

    def params(self, **given: str | int | bool | None) -> dict[str, str]:
        """A query that also says in which pool."""
        return params(pool=self.pool, **given)
