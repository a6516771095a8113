"""A value that an object computes when it is first asked for it, and keeps."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

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
