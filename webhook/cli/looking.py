"""Manifests in, an outcome out: every object through `core.review.examine`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from webhook.cli.documents import Fault
from webhook.cli.manifests import Manifest, read_manifests
from webhook.cli.outcome import Gap, Outcome, Row
from webhook.cli.sources import File
from webhook.core.policy import Policy
from webhook.core.review import examine
from webhook.core.version import KubernetesVersion


class Frame(Struct, frozen=True, kw_only=True):
    """What objects are looked at with.

    Shape: ``today`` is an ISO date; ``namespace`` is for objects that name none; ``rules`` are the only ones to
    report, all where it is empty.
    """

    policy: Policy
    version: KubernetesVersion
    today: str
    namespace: str = ""
    rules: frozenset[str] = frozenset()


def look(
    files: Iterable[File | Fault],
    frame: Frame,
    *,
    duplicates: bool = True,
    progress: Callable[[int], None] = lambda _objects: None,
) -> Outcome:
    """Examine every object of the files.

    Shape: ``duplicates`` as in `read_manifests`; ``progress`` is told the number of objects so far.
    """
    seen = _Seen()
    for file in files:
        if isinstance(file, Fault):
            seen.faults.append(file)
            continue
        seen.files += 1
        empty = True
        for found in read_manifests(file.name, file.data, duplicates=duplicates):
            empty = False
            if isinstance(found, Fault):
                seen.faults.append(found)
            else:
                seen.examine(found, frame)
                progress(seen.objects)
        if empty:
            seen.faults.append(
                Fault(file=file.name, message="no Kubernetes object in it", line=1, column=1, fatal=False)
            )
    if not seen.objects and not any(fault.fatal for fault in seen.faults):
        seen.faults.append(Fault(file="evenspread", message="nothing to check: no Kubernetes object in the input"))
    return seen.outcome()


class _Seen:
    """What a run has come to so far."""

    def __init__(self) -> None:
        self.files = 0
        self.objects = 0
        self.faults: list[Fault] = []
        self._workloads = 0
        self._kinds: Counter[str] = Counter()
        self._rows: list[Row] = []
        self._gaps: Counter[tuple[str, str]] = Counter()

    def examine(self, manifest: Manifest, frame: Frame) -> None:
        self.objects += 1
        self._kinds[manifest.kind] += 1
        examined = examine(
            manifest.value,
            frame.policy,
            None,
            version=frame.version,
            today=frame.today,
            namespace=manifest.namespace or frame.namespace,
        )
        self._workloads += examined.workload is not None or examined.decode_error is not None
        for judged in examined.findings:
            if not frame.rules or judged.finding.rule in frame.rules:
                place = manifest.locate(judged.finding.path)
                self._rows.append(Row(manifest=manifest, judged=judged, place=place))
        # A rule that lacks the same fact for several constraints of an object is one gap of that object.
        missing = {(gap.rule, gap.missing) for gap in examined.not_evaluated}
        self._gaps.update(gap for gap in missing if not frame.rules or gap[0] in frame.rules)

    def outcome(self) -> Outcome:
        return Outcome(
            rows=tuple(self._rows),
            faults=tuple(self.faults),
            gaps=tuple(Gap(rule, missing, count) for (rule, missing), count in sorted(self._gaps.items())),
            files=self.files,
            kinds=self._kinds,
            workloads=self._workloads,
        )


def selected(outcome: Outcome) -> Iterator[Row]:
    """The rows that count: those that no exemption waives."""
    return (row for row in outcome.rows if not row.waived)
