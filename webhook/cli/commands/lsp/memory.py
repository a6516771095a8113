"""Cache the examinations of a file's objects, so that a keystroke only examines the edited object."""

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from webhook.core.context import Context
from webhook.core.review.decision import Examination
from webhook.core.review.examination import examine


class _Known(Struct, frozen=True):
    """An examination and its input. ``raw`` stays alive, so that its identity belongs to no other object."""

    raw: bytes | Mapping[str, object]
    context: Context
    examination: Examination


class Memory:
    """Stores the examinations of a file's objects.

    After an edit, only the changed objects are examined. The examination of an unchanged object can depend on other
    objects of the file. If these change, the stored examination is returned, and a function to examine the object again
    is added to ``outdated``.
    """

    def __init__(self) -> None:
        self._known: dict[int | bytes, _Known] = {}
        self._seen: dict[int | bytes, _Known] = {}
        self.outdated: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Start a new check of the file. Forget the examinations of all objects absent from the previous check."""
        self._known, self._seen, self.outdated = self._seen, {}, []

    def examine(
        self, raw: bytes | Mapping[str, object], context: Context, *, as_written: Callable[[str], str]
    ) -> Examination:
        """Return the remembered examination of an object, or examine it."""
        key = raw if isinstance(raw, bytes) else id(raw)
        known = self._known.get(key)
        if known is None:
            self._renew(key, raw, context, as_written)
        else:
            self._seen[key] = known
            if known.context != context:
                self.outdated.append(partial(self._renew, key, raw, context, as_written))
        return self._seen[key].examination

    def _renew(
        self, key: int | bytes, raw: bytes | Mapping[str, object], context: Context, as_written: Callable[[str], str]
    ) -> None:
        self._seen[key] = _Known(raw, context, examine(raw, context, as_written=as_written))
