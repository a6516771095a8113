"""Check manifests: examine each object with `core.review.examination.examine`, and collect the results.

result = examine_files(read_files(["web.yaml"]), Frame(policy=Policy(), today="2026-01-01"))
result.rows[0].judged.finding.rule  # "selector-not-self"
"""

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from msgspec import structs

from webhook.answers.audited import SkippedRule
from webhook.cli.checking.finding_text import rule_url
from webhook.cli.checking.ignores import IgnoreLog
from webhook.cli.checking.input_objects import (
    autoscalers,
    configuration_faults,
    group_faults,
    is_configuration,
    same_file_indexes,
    spread_groups,
)
from webhook.cli.checking.patches import read_patch
from webhook.cli.checking.results import ReviewFailure, Row, RunResult
from webhook.cli.frame import Frame
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.budget import OF_SIZE, Missing
from webhook.core.index.objects import Autoscaler
from webhook.core.index.overlay import with_declared
from webhook.core.policy.options import TooLarge
from webhook.core.review.decision import Examination
from webhook.core.review.examination import examine, without_repeated_mistakes
from webhook.core.rules.constraint.api import WRONG_TYPE
from webhook.core.rules.rule_set import BY_ID
from webhook.core.text import plural
from webhook.core.workloads.custom_kinds import VALUES_KIND
from webhook.core.workloads.kind_fields import has_template
from webhook.manifests.reading.carried_texts import carried, with_values
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import PIPES, File
from webhook.manifests.reading.kustomizations import NAMES, inline_patches, patched_files, why_not_built
from webhook.manifests.reading.manifest import FieldPosition, Manifest, read_manifests
from webhook.manifests.reading.other_files import KUSTOMIZATION, LARGER_KUSTOMIZATION, chart_reads
from webhook.manifests.reading.unreadable import TEMPLATE


def examine_files(
    files: Iterable[File | InputFault], frame: Frame, *, progress: Callable[[int], None] = lambda _objects: None
) -> RunResult:
    """Examine every object of the files. ``progress`` gets the number of objects so far."""
    read = [*files]
    frame = with_input_objects(frame, [file for file in read if isinstance(file, File)])
    return examine_within(read, frame, progress=progress)


def examine_within(
    read: Sequence[File | InputFault],
    frame: Frame,
    *,
    progress: Callable[[int], None] = lambda _objects: None,
    examine: Callable[..., Examination] = examine,
) -> RunResult:
    """Examine every object of the files, within the frame of `with_input_objects`.

    ``progress`` gets the number of objects so far. ``examine`` is the function to examine an object, if not the core's.
    """
    readable, run = [file for file in read if isinstance(file, File)], CheckRun(examine)
    for manifest in run.manifests(read, duplicates=True, values=True, patches=frame.patches):
        run.examine(manifest, frame)
        progress(run.objects)
    for source, patch, target in ((file, *patch) for file in readable for patch in inline_patches(file)):
        if isinstance(patch, Manifest):
            run.examine(patch, structs.replace(frame, patches={os.path.realpath(patch.file): target}))
        else:
            run.faults.append(structs.replace(source.unquoted(patch), fatal=False))
    run.faults = [*map(as_note, run.faults)]
    return run.result()


def as_note(fault: InputFault) -> InputFault:
    """Turn a fault of a file without manifests into a note. Faults of piped input stay errors."""
    is_note = fault.foreign and not fault.file.startswith(PIPES)
    path = Path(fault.file)
    if KUSTOMIZATION in fault.message and path.name in NAMES and why_not_built(path.parent):
        fault = structs.replace(fault, message=fault.message.replace(KUSTOMIZATION, LARGER_KUSTOMIZATION))
    return structs.replace(fault, fatal=False) if is_note else fault


def with_input_objects(frame: Frame, files: Sequence[File]) -> Frame:
    """Add autoscalers, SpreadGroups, patches and neighbouring workloads of the input to the frame."""
    scalers = tuple(autoscalers(files, frame.namespace))
    declared, same_file = None, same_file_indexes(files, frame.namespace, frame.policy)
    if frame.index is not None:
        named = [scaler if scaler.meta.namespace else _in_default_namespace(scaler) for scaler in scalers]
        declared = with_declared(frame.index, named, [*spread_groups(files, frame.namespace)])
    return structs.replace(with_patches(frame, files), scalers=scalers, same_file=same_file, declared=declared)


def _in_default_namespace(scaler: Autoscaler) -> Autoscaler:
    return structs.replace(scaler, metadata=structs.replace(scaler.meta, namespace=DEFAULT_NAMESPACE))


def with_patches(frame: Frame, files: Iterable[File]) -> Frame:
    """Return the frame, with the patch files of the kustomizations above the files.

    Kustomizations are searched in the directories of the files and in their parent directories.
    """
    names = (file.name for file in files if Path(file.name).is_file())
    return structs.replace(frame, patches=patched_files(names))


def as_written(manifest: Manifest, path: str) -> str:
    """Return a number or boolean as written in the file, such as 1.0. Parsed JSON may have 1."""
    return _field_text(manifest.locate(path)).rpartition(":")[2].strip()


def _field_text(place: FieldPosition) -> str:
    return place.text[place.caret :][: place.width]


_UNFILLED = "an unfilled placeholder ${…}; check the output of envsubst, kustomize or helm template instead"


def _too_large(manifest: Manifest, examined: Examination, frame: Frame) -> Iterator[InputFault]:
    """Yield an error for each exceeded size limit. Rules skip such objects."""
    workload, rules = examined.workload, Counter(gap.reason for gap in examined.not_evaluated)
    if workload is None:
        return
    for limit in sorted((reason for reason in rules if reason.kind in OF_SIZE), key=attrgetter("text")):
        path = workload.templates[0].constraints_path
        skipped = "all rules" if limit.kind is Missing.IMMENSE else plural(rules[limit], "rule")
        message = f"{manifest.title}: {limit.text}: {skipped} skipped this object"
        yield manifest.fault(path, message, fatal=frame.policy.too_large != TooLarge.ALLOW)


class CheckRun:
    """A check run: reads manifests, examines objects, and collects the results."""

    def __init__(self, examine: Callable[..., Examination] = examine) -> None:
        self._examine = examine
        self.objects = 0
        self._files = 0
        self.faults: list[InputFault] = []
        self._workloads = 0
        self._owned = 0
        self._kinds: Counter[str] = Counter()
        self._clean: list[tuple[str, str]] = []
        self.rows: list[Row] = []
        self._gaps: Counter[tuple[str, str]] = Counter()
        self._failures: list[ReviewFailure] = []
        self.ignores = IgnoreLog()

    def manifests(
        self,
        files: Iterable[File | InputFault],
        *,
        duplicates: bool,
        values: bool = False,
        patches: Container[str] = (),
    ) -> Iterator[Manifest]:
        """Yield the objects of the files, with the arguments of `read_manifests`. Collect faults and count files.

        ``patches`` are the resolved paths of patch files.
        """
        for file in files:
            if isinstance(file, InputFault):
                self.faults.append(file)
                continue
            self._files += 1
            empty = True
            is_patch = bool(patches) and os.path.realpath(file.name) in patches
            for item in read_manifests(file.name, file.data, duplicates=duplicates, values=values, is_patch=is_patch):
                empty = False
                if isinstance(item, InputFault):
                    self.faults.append(file.unquoted(item))
                else:
                    yield item
            if empty:
                message = "no Kubernetes object in this file"
                self.faults.append(InputFault(file=file.name, message=message, line=1, column=1, fatal=False))

    def count_object(self, manifest: Manifest) -> None:
        """Add an object to the counts. A Helm values file is not counted."""
        if manifest.kind == VALUES_KIND and not manifest.api_version:
            return
        self.objects += 1
        self._kinds[manifest.kind] += 1

    def count_owned(self, manifest: Manifest) -> None:
        """Count an object represented by its controller. Only the controller is examined."""
        self.count_object(manifest)
        self._owned += 1

    def examine(self, manifest: Manifest, frame: Frame) -> Examination:
        """Count and examine an object. Add the findings and faults to this run's results."""
        self.count_object(manifest)
        try:
            self.faults += configuration_faults(manifest, frame.today)
            if is_configuration(manifest):
                return Examination()
            patch = read_patch(manifest, frame)
            manifest = manifest if patch is None else patch.manifest
            examined = self._examine(
                with_values(manifest) if patch is None else manifest.value,
                frame.context(manifest.namespace or frame.namespace, manifest.file),
                as_written=lambda path: as_written(manifest, path),
            )
        except Exception as error:  # noqa: BLE001 a bug on one object must not stop the others
            self.fail(manifest, "the review", error)
            return Examination()
        if patch is not None:
            examined = patch.judged(examined)
        self.collect(manifest, examined, frame)
        return examined

    def fail(self, manifest: Manifest, part: str, error: Exception) -> None:
        """Record an exception (a bug) during the review of an object.

        ``part`` is the failed part of evenspread, for example ``the rule selector-empty``.
        """
        self._failures.append(ReviewFailure(manifest.file, manifest.title, part, error))

    def collect(self, manifest: Manifest, examined: Examination, frame: Frame) -> None:
        """Collect the findings of an object, without counting it."""
        reported = [judged for judged in examined.findings if not frame.rules or judged.finding.rule in frame.rules]
        reported = without_repeated_mistakes(reported)
        if manifest.kind == VALUES_KIND:
            reported = [
                judged for judged in reported if not chart_reads(manifest.file, judged.finding.path.rpartition(".")[2])
            ]
        if examined.workload is None and examined.decode_error is None:
            if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
                self.faults.append(manifest.document.fault(f"{manifest.title}: cannot be decoded"))
        else:
            self._workloads += 1
            if not reported:
                self._clean.append((manifest.file, manifest.title))
        self.faults += (*carried(manifest), *group_faults(manifest), *_too_large(manifest, examined, frame))
        stripped = manifest.without_text()
        rows = [
            Row(
                manifest=stripped,
                judged=judged,
                place=manifest.locate(judged.finding.path),
                url=rule_url(judged.finding.rule, frame.policy.messages.docs_url),
            )
            for judged in reported
        ]
        not_evaluated = BY_ID.keys() if examined.workload is None else {gap.rule for gap in examined.not_evaluated}
        unasked = BY_ID.keys() - frame.rules if frame.rules else set[str]()
        rows = self.ignores.apply(manifest, rows, not_evaluated | unasked, frame)
        wrong_type = next((row for row in rows if row.judged.finding.rule == WRONG_TYPE.id), None)
        text = "" if wrong_type is None else _field_text(wrong_type.place)
        # Another program fills in placeholders.
        if wrong_type is not None and (note := _UNFILLED if "${" in text else TEMPLATE if "{{" in text else ""):
            self.faults.append(manifest.fault(wrong_type.judged.finding.path, note, fatal=False))
            if not manifest.file.startswith(PIPES):
                rows.remove(wrong_type)
        # Worst first, then in the order of the text. The sort is stable and keeps the order of rules.
        self.rows += sorted(rows, key=lambda row: (row.severity.rank, row.place.line, row.place.column))
        # A fact missing for several constraints of an object counts once.
        gaps = [gap for gap in examined.not_evaluated if not frame.rules or gap.rule in frame.rules]
        self._gaps.update({(gap.rule, gap.missing) for gap in gaps})
        self._failures += (
            ReviewFailure(manifest.file, manifest.title, f"the rule {gap.rule}", gap.fault)
            for gap in gaps
            if gap.fault is not None
        )

    def result(self) -> RunResult:
        """The result of the check run. If no file was read, the result has a fault "nothing to check"."""
        if not self.objects and not self.faults:
            self.faults.append(InputFault(file="evenspread", message="nothing to check: no file was read", fatal=False))
        return RunResult(
            rows=tuple(self.rows),
            faults=(*self.faults, *self.ignores.faults()),
            gaps=tuple(SkippedRule(rule, missing, count) for (rule, missing), count in sorted(self._gaps.items())),
            failures=tuple(self._failures),
            files=self._files,
            kinds=self._kinds,
            workloads=self._workloads,
            owned=self._owned,
            clean=tuple(self._clean),
        )
