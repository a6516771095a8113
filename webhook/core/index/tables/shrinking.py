"""Tables that give back what they took: a dict of dicts without empty ones, and dicts and sets that shrink again.

A dict keeps its memory when entries are deleted. Whoever may create objects could make one large and delete them all;
so a table is made anew when most of it is empty.
"""

from collections.abc import Hashable, Iterable
from functools import lru_cache
from sys import getsizeof
from typing import Generic, TypeVar

from webhook.core.api.label_syntax import MAX_LABEL_VALUE_BYTES

_Outer = TypeVar("_Outer", bound=Hashable)
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

# Bytes for each entry, above which a table counts as mostly empty. One that only ever grew has at most 130.
_ROOMY = 256
_LOOK_EACH = 16  # entries: a watch event takes several out of tables, and looking takes as long as that
_LONGEST_SHARED = MAX_LABEL_VALUE_BYTES  # names of namespaces and kinds are shorter


def put_under(tables: dict[_Outer, dict[_Key, _Value]], outer: _Outer, key: _Key, value: _Value) -> None:
    """Set one value in the inner table, which is made if need be."""
    tables.setdefault(outer, {})[key] = value


def drop_under(tables: dict[_Outer, dict[_Key, _Value]], outer: _Outer, key: _Key) -> _Value | None:
    """Take one value out, and the inner table with its last; None if there is no such value."""
    inner = tables.get(outer)
    if inner is None:
        return None
    value = drop(inner, key)
    if not inner:
        drop(tables, outer)
    return value


class Grouped(Generic[_Outer, _Key, _Value]):
    """Values by a key, in groups; a later value of the same key may be in another group."""

    def __init__(self) -> None:
        self._groups: dict[_Outer, dict[_Key, _Value]] = {}
        self._group_of: dict[_Key, _Outer] = {}

    def put(self, group: _Outer, key: _Key, value: _Value) -> None:
        """Set the value of a key, at the end of its group."""
        self.remove(key)
        self._group_of[key] = group
        put_under(self._groups, group, key, value)

    def remove(self, key: _Key) -> None:
        """Take the key out, if it is there."""
        if key in self._group_of:
            drop_under(self._groups, self._group_of[key], key)
            drop(self._group_of, key)

    def values(self, group: _Outer) -> Iterable[_Value]:
        """The values of a group."""
        return self._groups.get(group, {}).values()

    def sizes(self) -> dict[_Outer, int]:
        """How many values each group has."""
        return {group: len(values) for group, values in self._groups.items()}


def drop(table: dict[_Key, _Value], key: _Key) -> _Value | None:
    """Take one value out, with its memory in the end; None if there is no such value."""
    value = table.pop(key, None)
    if not len(table) % _LOOK_EACH and getsizeof(table) > _ROOMY * (len(table) + _LOOK_EACH):
        kept = list(table.items())
        table.clear()
        dict.update(table, kept)  # not Counter's own, which would count the entries
    return value


def discard(members: set[_Value], member: _Value) -> None:
    """Take one member out, with its memory in the end."""
    members.discard(member)
    if not len(members) % _LOOK_EACH and getsizeof(members) > _ROOMY * (len(members) + _LOOK_EACH):
        kept = list(members)
        members.clear()
        members.update(kept)


def shared(text: str) -> str:
    """The same object for equal texts, as long as it is among those used lately.

    Not ``sys.intern``, which in some versions of Python keeps every text for ever.
    """
    return _shared(text) if len(text) <= _LONGEST_SHARED else text


@lru_cache(maxsize=8192)
def _shared(text: str) -> str:
    return text
