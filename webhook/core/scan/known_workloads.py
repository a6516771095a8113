"""Keep the last scan of each workload, and choose workloads to scan again."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from webhook.core.scan.facts import Facts, Outdated, Recording, Topic
from webhook.core.scan.scan_context import ObjectKey, ScanContext, key_of
from webhook.core.scan.scan_results import ScannedWorkload
from webhook.core.workloads.reading import read_meta, stated_type

# So few workloads are scanned at once after a change of the whole cluster. More wait for `KnownWorkloads.due`.
_FEW = 50

Scan = Callable[[bytes, ScanContext], ScannedWorkload | None]


class _KnownWorkload(Struct, frozen=True):
    """A scanned object as JSON, and its scan. The scan is None for an object without pods."""

    raw: bytes
    scanned: ScannedWorkload | None


class KnownWorkloads:
    """The scanned workloads, with their latest scan results. Callers hold the lock of the index.

    Call `note` before `scan`, without a change of the index between the calls.
    """

    def __init__(self) -> None:
        self._known: dict[ObjectKey, _KnownWorkload] = {}
        self._facts = Facts()
        self._near: set[ObjectKey] = set()
        self._far: set[ObjectKey] = set()
        self._failed: set[ObjectKey] = set()  # with an exception in the last scan; a full scan tries them again
        self._differing: list[ObjectKey] = []

    def note(self, topics: Iterable[Topic], within: ScanContext) -> Outdated:
        """Return the workloads to scan again after events of these topics.

        A fact of each such workload changed. `due` then includes the workloads. A topic is a kind of cluster data and a
        namespace.
        """
        outdated = self._facts.outdated(topics, within)
        self._near |= outdated.near
        self._far |= outdated.far
        return outdated

    def due(self, *, every: bool) -> list[ObjectKey]:
        """Return the keys of the workloads to scan again.

        A change to the whole cluster can affect many workloads. If it affects more than a few, return them only with
        ``every``.
        """
        if every or len(self._far) <= _FEW:
            return [*(self._near | self._far)]
        return [*self._near]

    def scan(self, raw: bytes, within: ScanContext, scan: Scan) -> ScannedWorkload | None:
        """Scan an object, and keep the result. If ``scan`` raises, the earlier result stays."""
        key, recording = key_of_object(raw), Recording(within)
        expected = None if self._is_outdated(key) or key in self._failed else self._known.get(key)
        for keys in (self._near, self._far):
            keys.discard(key)
        self._failed.add(key)
        scanned = scan(raw, recording.within)
        if scanned is None or not scanned.failures:
            self._failed.discard(key)
        self._near |= self._facts.put(key, recording)
        if expected is not None and expected.raw == raw and not _same(expected.scanned, scanned):
            self._differing.append(key)
        self._known[key] = _KnownWorkload(raw, scanned)
        return scanned

    def is_current(self, raw: bytes) -> bool:
        """Whether the stored scan was made of this exact object, and its facts have not changed since."""
        key = key_of_object(raw)
        known = self._known.get(key)
        return known is not None and known.raw == raw and not self._is_outdated(key)

    def _is_outdated(self, key: ObjectKey) -> bool:
        return key in self._near or key in self._far

    def raw(self, key: ObjectKey) -> bytes | None:
        """Return the object as scanned. None for an unknown workload."""
        known = self._known.get(key)
        return None if known is None else known.raw

    def scan_of(self, key: ObjectKey) -> ScannedWorkload | None:
        """Return the last scan of a workload. None for an unknown workload, and for an object without pods."""
        known = self._known.get(key)
        return None if known is None else known.scanned

    def drop(self, keys: Iterable[ObjectKey]) -> None:
        """Forget these workloads."""
        for key in keys:
            self._known.pop(key, None)
            self._facts.drop(key)
            for marked in (self._near, self._far, self._failed):
                marked.discard(key)

    def keys(self) -> frozenset[ObjectKey]:
        """Return the scanned objects."""
        return frozenset(self._known)

    def scans(self) -> list[ScannedWorkload]:
        """Return the last scan of each workload."""
        return [known.scanned for known in self._known.values() if known.scanned is not None]

    def take_differing(self) -> Sequence[ObjectKey]:
        """Return and clear the list of workloads with inconsistent scan results.

        A repeated scan of such a workload had another result although no recorded fact had changed. Normally empty.
        """
        taken, self._differing = self._differing, []
        return taken


def key_of_object(raw: bytes) -> ObjectKey:
    """Return the key of a JSON object, from its namespace, apiVersion, kind and name."""
    stated, meta = stated_type(raw), read_meta(raw)
    return key_of(meta.namespace, stated.api_version or "", stated.kind or "", meta.name)


def _same(one: ScannedWorkload | None, other: ScannedWorkload | None) -> bool:
    """Whether two scans are equal. A scan with an exception is incomplete, and counts as equal to any scan."""
    if one is None or other is None:
        return one is other
    return bool(other.failures) or one == other
