"""Errors about keywords that a caller took from another library: they name ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
Options = TypeVar("Options", bound=Mapping[str, Any])

#: Keywords of other libraries, and what to write instead if there is such a parameter.
_OURS = {
    "timeout": ("timeout_ms", "in milliseconds"),
    "timeout_s": ("timeout_ms", "in milliseconds"),
    "timeout_seconds": ("timeout_ms", "in milliseconds"),
    "envs": ("env", ""),
    "environment": ("env", ""),
    "workdir": ("cwd", ""),
    "working_dir": ("cwd", ""),
    "working_directory": ("cwd", ""),
    "input": ("stdin", ""),
    "metadata": ("labels", "as create takes them"),
    "query": ("labels", "as create takes them"),
    "background": ("start()", "which leaves a process running"),
}


def instead_of(name: str, parameters: Collection[str]) -> str:
    """The end of a sentence about a keyword that there is not: the one that was meant, or nothing."""
    ours, note = _OURS.get(name, ("", ""))
    if ours in parameters or ours.endswith("()"):
        return f"; use {ours}, {note}" if note else f"; use {ours}"
    near = get_close_matches(name, parameters, n=1)
    return f"; use {near[0]}" if near else f"; there are {', '.join(parameters)}"


def checked_options(function: str, given: Options, kind: type[Options]) -> Options:
    """The options of a function that were given a value; those that it does not have are refused."""
    parameters = sorted(getattr(kind, "__optional_keys__", ()))
    for name in given:
        if name not in parameters:
            raise TypeError(f"{function}() has no parameter {name!r}{instead_of(name, parameters)}")
    return cast(Options, {name: value for name, value in given.items() if value is not None})


def names_the_right_keyword(function: Callable[P, T]) -> Callable[P, T]:
    """Makes the error about a wrong keyword name the right one."""
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in parameters:
                raise TypeError(f"{function.__name__}() has no parameter {name!r}{instead_of(name, parameters)}")
        return function(*args, **kwargs)

    return checked
