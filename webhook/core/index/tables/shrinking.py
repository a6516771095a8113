"""Dicts and sets that release memory: they drop empty inner dicts, and shrink after deletions.

A Python dict keeps its memory when entries are deleted. A user could create and delete many objects to bloat it. So a
table is rebuilt when it is mostly empty.
"""

from collections.abc import Hashable, Iterable
from functools import lru_cache
from sys import getsizeof
from typing import Generic, TypeVar

from webhook.core.api.label_syntax import MAX_LABEL_VALUE_BYTES

_Outer = TypeVar("_Outer", bound=Hashable)
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

# In bytes per entry. Above it, a table counts as mostly empty. A table without deletions has at most 130.
_ROOMY = 256
_LOOK_EACH = 16  # Deletions between checks, because a check takes as long as the deletions of a watch event.
_LONGEST_SHARED = MAX_LABEL_VALUE_BYTES  # Names of namespaces and kinds are shorter.


def put_under(tables: dict[_Outer, dict[_Key, _Value]], outer: _Outer, key: _Key, value: _Value) -> None:
    """Set a value in the inner table. Create the table if missing."""
    tables.setdefault(outer, {})[key] = value


def drop_under(tables: dict[_Outer, dict[_Key, _Value]], outer: _Outer, key: _Key) -> _Value | None:
    """Remove and return a value, and drop the inner table if empty. None if there is no such value."""
    inner = tables.get(outer)
    if inner is None:
        return None
    value = drop(inner, key)
    if not inner:
        drop(tables, outer)
    return value


class Grouped(Generic[_Outer, _Key, _Value]):
    """A mapping from keys to values. Each key belongs to one group.

    If a key is set again, it can move to another group.
    """

    def __init__(self) -> None:
        self._groups: dict[_Outer, dict[_Key, _Value]] = {}
        self._group_of: dict[_Key, _Outer] = {}

    def put(self, group: _Outer, key: _Key, value: _Value) -> None:
        """Set the value of a key and move the key to the end of this group."""
        self.remove(key)
        self._group_of[key] = group
        put_under(self._groups, group, key, value)

    def remove(self, key: _Key) -> None:
        """Remove the key, if present."""
        if key in self._group_of:
            drop_under(self._groups, self._group_of[key], key)
            drop(self._group_of, key)

    def values(self, group: _Outer) -> Iterable[_Value]:
        """The values of a group."""
        return self._groups.get(group, {}).values()

    def sizes(self) -> dict[_Outer, int]:
        """The number of values of each group."""
        return {group: len(values) for group, values in self._groups.items()}


def drop(table: dict[_Key, _Value], key: _Key) -> _Value | None:
    """Remove and return a value, and release memory now and then. None if there is no such value."""
    value = table.pop(key, None)
    if not len(table) % _LOOK_EACH and getsizeof(table) > _ROOMY * (len(table) + _LOOK_EACH):
        kept = list(table.items())
        table.clear()
        dict.update(table, kept)  # Counter.update would count the entries.
    return value


def discard(members: set[_Value], member: _Value) -> None:
    """Remove a member. Rebuild the set if it is mostly empty, to release its memory."""
    members.discard(member)
    if not len(members) % _LOOK_EACH and getsizeof(members) > _ROOMY * (len(members) + _LOOK_EACH):
        kept = list(members)
        members.clear()
        members.update(kept)


def shared(text: str) -> str:
    """Return one shared string object for equal texts.

    Long texts are returned unchanged. The cache keeps only recently used texts. ``sys.intern`` keeps every text forever
    in some versions of Python.
    """
    return _shared(text) if len(text) <= _LONGEST_SHARED else text


@lru_cache(maxsize=8192)
def _shared(text: str) -> str:
    return text
