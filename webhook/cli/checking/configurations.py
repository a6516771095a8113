"""Configuration in the input: evenspread's own, and kube-scheduler's, also in the texts of a ConfigMap."""

import json
import re
from collections.abc import Iterator, Sequence

from msgspec import structs

from webhook.config import ConfigError, ConfigFault, parse_policy, read_profiles
from webhook.core.workloads.kinds import group_kind
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.manifest import Manifest, read_manifests

_POLICY = ("config.evenspread.io", "SpreadPolicy")
_SCHEDULER = ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration")
_WORDS = (_POLICY[1].encode(), _SCHEDULER[1].encode())
_KIND_LINE = re.compile(rf"""^[{{ \t]*["']?kind["']?[ \t]*:[ \t]*["']?({_POLICY[1]}|{_SCHEDULER[1]})\b""", re.MULTILINE)
_SCHEDULER_FILE = "schedulerConfiguration"


def is_configuration(manifest: Manifest) -> bool:
    """Whether an object is configuration that evenspread can check."""
    group, kind = group_kind(manifest.api_version, manifest.kind)
    # A wrong group of evenspread's own is a fault to report, not another project's kind.
    return (group, kind) == _SCHEDULER or (kind == _POLICY[1] and group.endswith("evenspread.io"))


def configuration_faults(manifest: Manifest, today: str) -> Iterator[InputFault]:
    """What is wrong with an object that is configuration, or with the configuration in a ConfigMap's texts.

    Args:
        manifest: An object of any kind.
        today: An ISO date, for exemptions that are over.
    """
    if is_configuration(manifest):
        yield from _faults(manifest, today)
    elif (manifest.api_version, manifest.kind) == ("v1", "ConfigMap") and any(
        word in manifest.json_text for word in _WORDS
    ):
        yield from _carried(manifest, today)


def _faults(manifest: Manifest, today: str) -> Iterator[InputFault]:
    """Faults as errors, warnings as notes. The scheduler file of a policy is not opened: it may be elsewhere."""
    in_place = not (manifest.prefix or manifest.document.json)
    text = manifest.document.text.decode("utf-8", "replace") if in_place else json.dumps(json.loads(manifest.json_text))
    found: Sequence[ConfigFault] = ()
    is_wrong = False
    try:
        if manifest.kind == _SCHEDULER[1]:
            read_profiles(text, file=manifest.file)
        else:
            found = parse_policy(text, file=manifest.file, today=today, read=lambda _path: None).warnings
            # Others compare the policy with the profiles of the file that is not opened.
            found = () if any(each.path == _SCHEDULER_FILE for each in found) else found
    except ConfigError as error:
        found, is_wrong = error.faults, True
    for fault in found:
        place = manifest.locate(fault.path or "kind")
        line, column = place.line, place.column
        if in_place and fault.line:
            line, column = manifest.document.line + fault.line - 1, fault.column
        message = ": ".join(part for part in (manifest.kind, fault.path, fault.message) if part)
        fatal = is_wrong and "${" not in place.text  # a placeholder that envsubst or Flux fills in
        if manifest.kind == _SCHEDULER[1] and fault.path == "apiVersion":
            fatal = False  # older kube-schedulers read other versions
        yield InputFault(file=manifest.file, message=message, line=line, column=column, fatal=fatal)


def _carried(manifest: Manifest, today: str) -> Iterator[InputFault]:
    data = json.loads(manifest.json_text).get("data")
    for key, text in data.items() if isinstance(data, dict) else ():
        if not isinstance(text, str) or not _KIND_LINE.search(text):
            continue
        place = manifest.locate(f"data[{key}]")
        for inner in read_manifests(key, text.encode()):
            if isinstance(inner, Manifest):
                faults = [*_faults(inner, today)] if is_configuration(inner) else []
            else:
                faults = [] if inner.foreign else [inner]
            for fault in faults:
                yield structs.replace(
                    fault,
                    file=manifest.file,
                    message=f"{manifest.title}: {fault}",
                    line=place.line,
                    column=place.column,
                )
