"""Where a sandbox is in the API."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from .._call import params


@dataclass(frozen=True)
class At:
    """A sandbox by its id, or by its name in a pool."""

    id_or_name: str
    #: The pool of a name; by default the key's own.
    pool: str | None = None

    def path(self, rest: str = "") -> str:
        """The path of something that belongs to the sandbox."""
        return f"/v1/sandboxes/{quote(self.id_or_name, safe='')}{rest}"

    def params(self, **given: str | int | bool | None) -> dict[str, str]:
        """A query that also says in which pool."""
        return params(pool=self.pool, **given)
