"""Compute values of an object at first use, and keep them."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar, overload

from msgspec import Struct

_Owner = TypeVar("_Owner")
_Value = TypeVar("_Value")


class cached_property(Generic[_Owner, _Value]):  # noqa: N801 a decorator, like `property`
    """`functools.cached_property` as in Python 3.12: without a lock.

    Python before 3.12 holds one lock for all instances. With this lock, a thread with a long computation about the
    cluster would delay every review. The version with a lock also takes twice the time, and a review reads a dozen of
    these properties. Without a lock, two threads may compute the same value. That is harmless, because the property's
    inputs never change.
    """

    def __init__(self, compute: Callable[[_Owner], _Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, of: None, owner: type) -> Self: ...
    @overload
    def __get__(self, of: _Owner, owner: type) -> _Value: ...
    def __get__(self, of: _Owner | None, owner: type) -> _Value | Self:
        if of is None:
            return self
        value = of.__dict__[self._name] = self._compute(of)
        return value


class Computing(Struct, frozen=True, dict=True):
    """A struct that caches values computed from it."""

    def once(self, compute: Callable[[Self], _Value]) -> _Value:
        """Return ``compute(self)``. The function runs once for this object."""
        known: dict[object, _Value] = self.__dict__.setdefault("_computed", {})
        if compute not in known:
            known[compute] = compute(self)
        return known[compute]

    def computed(self, compute: Callable[[Self], _Value]) -> _Value | None:
        """Return the cached result of `once`, or None if there is none."""
        known: dict[object, _Value] = self.__dict__.get("_computed", {})
        return known.get(compute)
