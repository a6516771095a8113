"""Values that an object computes when it is first asked for them, and keeps."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

from msgspec import Struct

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):  # noqa: N801 a decorator, like `property`
    """Like `functools.cached_property` as of Python 3.12.

    Before that, one lock for all instances is held while one of them computes: a thread that computes something of the
    whole cluster would keep every review waiting. It is also half as fast, and a review asks a dozen of them. Two
    threads may compute the same value; it depends on nothing that changes.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, of: None, owner: type) -> Self: ...
    @overload
    def __get__(self, of: object, owner: type) -> _Value: ...
    def __get__(self, of: Any, owner: type) -> _Value | Self:
        if of is None:
            return self
        value = of.__dict__[self._name] = self._compute(of)
        return value


class Computing(Struct, frozen=True, dict=True):
    """A struct that keeps what functions make of it."""

    def once(self, compute: Callable[[Self], _Value]) -> _Value:
        """What the function makes of this object, computed once however many ask for it."""
        known: dict[object, _Value] = self.__dict__.setdefault("_computed", {})
        if compute not in known:
            known[compute] = compute(self)
        return known[compute]

    def computed(self, compute: Callable[[Self], _Value]) -> _Value | None:
        """The result of `once`, if it was asked for; else None, also if the function raised."""
        known: dict[object, _Value] = self.__dict__.get("_computed", {})
        return known.get(compute)
