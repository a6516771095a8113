"""Manifests -> a result: every object is examined by `core.review.examination.examine`."""

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from msgspec import structs

from webhook.cli.checking.input_objects import (
    autoscalers,
    configuration_faults,
    group_faults,
    is_configuration,
    same_file_indexes,
    spread_groups,
)
from webhook.cli.checking.patches import read_patch
from webhook.cli.checking.results import Failure, Gap, Row, RunResult, rank
from webhook.cli.cluster_source import put
from webhook.cli.frame import Frame
from webhook.core.api.well_known import DEFAULT_NAMESPACE
from webhook.core.budget import OF_SIZE, Missing
from webhook.core.policy.options import TooLarge
from webhook.core.review.decision import Examination
from webhook.core.review.examination import examine
from webhook.core.rules.constraint.api import WRONG_TYPE
from webhook.core.rules.constraint.unknown_fields import right_paths
from webhook.core.text import plural
from webhook.core.workloads.custom_kinds import VALUES_KIND
from webhook.core.workloads.kind_fields import has_template
from webhook.manifests.reading.carried_texts import carried, with_values
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import PIPES, File
from webhook.manifests.reading.kustomizations import NAMES, inline_patches, patched_files, why_not_built
from webhook.manifests.reading.manifest import FieldPosition, Manifest, read_manifests
from webhook.manifests.reading.other_files import KUSTOMIZATION, LARGER_KUSTOMIZATION, TEMPLATE, chart_reads


def look(
    files: Iterable[File | InputFault], frame: Frame, *, progress: Callable[[int], None] = lambda _objects: None
) -> RunResult:
    """Examine every object of the files; ``progress`` is called with the number of objects so far."""
    asked = [*files]
    readable = [each for each in asked if isinstance(each, File)]
    frame = of_input(frame, readable)
    seen = CheckRun()
    for manifest in seen.manifests(asked, duplicates=True, values=True, patches=frame.patches):
        seen.examine(manifest, frame)
        progress(seen.objects)
    for file, patch, target in ((given, *each) for given in readable for each in inline_patches(given)):
        if isinstance(patch, Manifest):
            seen.examine(patch, structs.replace(frame, patches={os.path.realpath(patch.file): target}))
        else:
            seen.faults.append(structs.replace(file.unquoted(patch), fatal=False))
    seen.faults = [*map(as_note, seen.faults)]
    return seen.result()


def as_note(fault: InputFault) -> InputFault:
    """The fault as a note, if it is about a file that never claimed to be a manifest.

    What you pipe in is meant as manifests, so there it stays an error.
    """
    is_note = fault.foreign and not fault.file.startswith(PIPES)
    path = Path(fault.file)
    if KUSTOMIZATION in fault.message and path.name in NAMES and why_not_built(path.parent):
        fault = structs.replace(fault, message=fault.message.replace(KUSTOMIZATION, LARGER_KUSTOMIZATION))
    return structs.replace(fault, fatal=False) if is_note else fault


def of_input(frame: Frame, files: Sequence[File]) -> Frame:
    """The frame with what the input states about other objects.

    Autoscalers and SpreadGroups of the input count as if they were in the cluster.
    """
    scalers = tuple(autoscalers(files, frame.namespace))
    if frame.index is not None:
        for scaler in scalers:
            meta = structs.replace(scaler.meta, namespace=scaler.meta.namespace or DEFAULT_NAMESPACE)
            put(frame.index, structs.replace(scaler, metadata=meta), "autoscaler")
        for group in spread_groups(files, frame.namespace):
            put(frame.index, group, "SpreadGroup")
    same_file = same_file_indexes(files, frame.namespace, frame.policy)
    return structs.replace(with_patches(frame, files), scalers=scalers, same_file=same_file)


def with_patches(frame: Frame, files: Iterable[File]) -> Frame:
    """The frame with the files that kustomizations in reach name as patches."""
    names = (file.name for file in files if Path(file.name).is_file())
    return structs.replace(frame, patches=patched_files(names))


def as_written(manifest: Manifest, path: str) -> str:
    """A number or a boolean as written in the text; parsed JSON may have 1 for 1.0."""
    return _field_text(manifest.locate(path)).rpartition(":")[2].strip()


def _field_text(place: FieldPosition) -> str:
    return place.text[place.caret :][: place.width]


_UNFILLED = "a placeholder ${…} that nobody has filled in; check what envsubst, kustomize or helm template prints"


def _too_large(manifest: Manifest, examined: Examination, frame: Frame) -> Iterator[InputFault]:
    """An error for each exceeded limit of admission. No rule is skipped silently."""
    workload, rules = examined.workload, Counter(each.reason for each in examined.not_evaluated)
    if workload is None:
        return
    for limit in sorted((each for each in rules if each.kind in OF_SIZE), key=attrgetter("text")):
        path = workload.templates[0].constraints_path
        skipped = "all rules" if limit.kind is Missing.IMMENSE else plural(rules[limit], "rule")
        message = f"{manifest.title}: {limit.text}: {skipped} skipped this object"
        yield manifest.fault(path, message, fatal=frame.policy.too_large != TooLarge.ALLOW)


class CheckRun:
    """The results of a run so far."""

    def __init__(self) -> None:
        self.objects = 0
        self._files = 0
        self.faults: list[InputFault] = []
        self._workloads = 0
        self._owned = 0
        self._kinds: Counter[str] = Counter()
        self._clean: list[tuple[str, str]] = []
        self.rows: list[Row] = []
        self._gaps: Counter[tuple[str, str]] = Counter()
        self._failures: list[Failure] = []

    def manifests(
        self,
        files: Iterable[File | InputFault],
        *,
        duplicates: bool,
        values: bool = False,
        patches: Container[str] = (),
    ) -> Iterator[Manifest]:
        """Yield the objects of the files. Collect faults and count files.

        Args:
            files: The files.
            duplicates: As in `read_manifests`.
            values: As in `read_manifests`.
            patches: Resolved paths of the files that are patches.
        """
        for file in files:
            if isinstance(file, InputFault):
                self.faults.append(file)
                continue
            self._files += 1
            empty = True
            is_patch = bool(patches) and os.path.realpath(file.name) in patches
            for found in read_manifests(file.name, file.data, duplicates=duplicates, values=values, is_patch=is_patch):
                empty = False
                if isinstance(found, InputFault):
                    self.faults.append(file.unquoted(found))
                else:
                    yield found
            if empty:
                message = "no Kubernetes object in it"
                self.faults.append(InputFault(file=file.name, message=message, line=1, column=1, fatal=False))

    def leave_out(self, manifest: Manifest) -> None:
        """Count an object without examining it. Values of a chart are no object."""
        if manifest.kind == VALUES_KIND and not manifest.api_version:
            return
        self.objects += 1
        self._kinds[manifest.kind] += 1

    def pass_by(self, manifest: Manifest) -> None:
        """Count an object that is skipped because its controller is examined."""
        self.leave_out(manifest)
        self._owned += 1

    def examine(self, manifest: Manifest, frame: Frame) -> Examination:
        """Examine one object and collect the results."""
        self.leave_out(manifest)
        try:
            self.faults += configuration_faults(manifest, frame.today)
            if is_configuration(manifest):
                return Examination()
            patch = read_patch(manifest, frame)
            manifest = manifest if patch is None else patch.manifest
            examined = examine(
                with_values(manifest) if patch is None else manifest.value,
                frame.context(manifest.namespace or frame.namespace, manifest.file),
                as_written=lambda path: as_written(manifest, path),
            )
        except Exception as error:  # noqa: BLE001 whatever one object does to us, the others are looked at
            self.fail(manifest, "the review", error)
            return Examination()
        if patch is not None:
            examined = patch.judged(examined)
        self.collect(manifest, examined, frame)
        return examined

    def fail(self, manifest: Manifest, part: str, error: Exception) -> None:
        """Note that a part of the program raised on an object; ``part`` as in `Failure`."""
        self._failures.append(Failure(manifest.file, manifest.title, part, error))

    def collect(self, manifest: Manifest, examined: Examination, frame: Frame) -> None:
        """Collect the findings of one object, without counting it."""
        told = [each for each in examined.findings if not frame.rules or each.finding.rule in frame.rules]
        misspelt = right_paths(each.finding for each in told if not each.waived)
        told = [each for each in told if each.finding.path not in misspelt]
        if manifest.kind == VALUES_KIND:
            told = [each for each in told if not chart_reads(manifest.file, each.finding.path.rpartition(".")[2])]
        if examined.workload is None and examined.decode_error is None:
            if has_template(manifest.api_version, manifest.kind, frame.policy.workloads):
                self.faults.append(manifest.document.fault(f"{manifest.title}: cannot be decoded"))
        else:
            self._workloads += 1
            if not told:
                self._clean.append((manifest.file, manifest.title))
        self.faults += (*carried(manifest), *group_faults(manifest), *_too_large(manifest, examined, frame))
        reported = manifest.without_text()
        rows = [Row(manifest=reported, judged=each, place=manifest.locate(each.finding.path)) for each in told]
        misfit = next((row for row in rows if row.judged.finding.rule == WRONG_TYPE.id), None)
        text = "" if misfit is None else _field_text(misfit.place)
        # A field that another program fills in.
        if misfit is not None and (note := _UNFILLED if "${" in text else TEMPLATE if "{{" in text else ""):
            self.faults.append(manifest.fault(misfit.judged.finding.path, note, fatal=False))
            if not manifest.file.startswith(PIPES):
                rows.remove(misfit)
        # Worst first, then in the order of the text; the sort is stable, so that one place keeps the order of rules.
        self.rows += sorted(rows, key=lambda row: (-rank(row.severity), row.place.line, row.place.column))
        # A rule that lacks the same fact for several constraints of an object counts once.
        asked = [gap for gap in examined.not_evaluated if not frame.rules or gap.rule in frame.rules]
        self._gaps.update({(gap.rule, gap.missing) for gap in asked})
        self._failures += (
            Failure(manifest.file, manifest.title, f"the rule {gap.rule}", gap.fault)
            for gap in asked
            if gap.fault is not None
        )

    def result(self) -> RunResult:
        """The result of the run; if there was no object and no fault, a fault says so."""
        if not self.objects and not self.faults:
            self.faults.append(InputFault(file="evenspread", message="nothing to check: no file was read", fatal=False))
        return RunResult(
            rows=tuple(self.rows),
            faults=tuple(self.faults),
            gaps=tuple(Gap(rule, missing, count) for (rule, missing), count in sorted(self._gaps.items())),
            failures=tuple(self._failures),
            files=self._files,
            kinds=self._kinds,
            workloads=self._workloads,
            owned=self._owned,
            clean=tuple(self._clean),
        )
