"""Replace names, labels and ids in objects without changing any verdict.

The same word always gets the same replacement (``payments-db-0`` -> ``n3-n7-0``). Replacements sort in the same order
as the original words. These stay: names of Kubernetes and well-known projects, quantities, times, enumerated values,
numbers compared by a selector, and ordinals of StatefulSets.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from webhook.core.api import spread_group
from webhook.core.api.label_syntax import MAX_LABEL_VALUE_BYTES
from webhook.core.api.well_known import (
    ARCH,
    BETA_ARCH,
    BETA_OS,
    CAPACITY_TYPE,
    EXEMPT_ANNOTATION,
    JOB_COMPLETION_INDEX,
    NODE_NAME_FIELD,
    NODE_STATES,
    OS,
    OUR_PREFIX,
    POD_INDEX,
    WORKER_INDEX,
)
from webhook.core.index.key_suggestions import intended
from webhook.core.policy.capacity import POOL_LABELS
from webhook.core.rules.rule_set import BY_ID
from webhook.core.workloads.controller_labels import ADDED_KEYS
from webhook.core.workloads.kinds import KINDS
from webhook.manifests.reading.go_yaml import Json

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD = re.compile(rf"{_UID.pattern}|[A-Za-z0-9]+")

# Domains with the same labels, taints, resources and drivers in every cluster.
_PUBLIC_DOMAINS = (
    *("kubernetes.io", "k8s.io", "karpenter.sh", "evenspread.io", "amazonaws.com", "aws.com", "eksctl.io", "gke.io"),
    *("cloud.google.com", "azure.com", "openstack.org", "vmware.com", "openshift.io", "nvidia.com", "amd.com"),
    *("intel.com", "argoproj.io", "kruise.io", "kubeflow.org", "volcano.sh", "knative.dev", "ray.io", "istio.io"),
    "linkerd.io",
)
_PUBLIC_KEYS = frozenset({"app", "k8s-app", "name", *POOL_LABELS, *ADDED_KEYS, *NODE_STATES})
_PUBLIC_RESOURCES = ("cpu", "memory", "pods", "storage", "ephemeral-storage", "hugepages-", "attachable-volumes-")
# Kinds whose pods carry the name of their owner. A tuple, because the kind in a file may be unhashable.
_ORDERED = tuple({name: None for (_, name), row in KINDS.items() if row.ordered})
_QUOTA = "requests."  # no extended resource begins so
# Labels with values other than names.
_PLAIN_VALUES = {OS, ARCH, BETA_OS, BETA_ARCH, POD_INDEX, JOB_COMPLETION_INDEX, CAPACITY_TYPE, WORKER_INDEX}
_PUBLIC_TEXTS = frozenset(
    {
        *("", "true", "false", "default", "kube-system", "kube-public", "kube-node-lease", "default-scheduler"),
        *("0.0.0.0", "::", "127.0.0.1"),  # noqa: S104 compared, not bound
        "both",  # zones and nodes: what the pods of a shard do not share
    }
)
# Words of volume ids. The scheduler reads ids by their form.
_PUBLIC_WORDS = frozenset({"aws", "vol", "projects", "zones", "regions", "disks", "UNSPECIFIED"})

_LABELS = frozenset({"labels", "matchLabels", "nodeSelector"})
_RESOURCES = frozenset(
    {
        *("requests", "limits", "allocatable", "capacity", "overhead", "podFixed", "allocatedResources"),
        *("default", "defaultRequest", "min", "max", "maxLimitRequestRatio"),
    }
)
_NO_RESOURCES = ({"count"}, {"podFixed"})  # members of a CSI driver's allocatable and of a RuntimeClass's overhead
_KEYS = frozenset({"topologyKey", "matchLabelKeys", "mismatchLabelKeys", "label", "neverShare"})
_WITH_KEYS = frozenset({"matchExpressions", "matchLabelExpressions", "matchFields", "tolerations", "taints"})
_DRIVERS = frozenset({"provisioner", "driver", "attacher"})
_DRIVER_NAME = ("drivers", "name")  # of a CSINode
_ENUMERATED = frozenset(
    {
        *("apiVersion", "kind", "operator", "effect", "whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy"),
        *("phase", "status", "restartPolicy", "protocol", "volumeBindingMode", "accessModes", "volumeMode"),
        *("maxSurge", "maxUnavailable", "creationTimestamp", "deletionTimestamp", "timeAdded", "revision"),
        "lastTransitionTime",
        *("capacity", "maximumVolumeSize", "preemptionPolicy"),
        *("lessThan", "atMost", "enforce", "delivery"),
    }
)
_CONDITIONS = frozenset(
    {"Ready", "PodScheduled", "Initialized", "ContainersReady", "DisruptionTarget", "PodResizePending"}
)
_REASONS = frozenset({"Unschedulable", "SchedulingGated", "SchedulerError", "Infeasible", "Deferred"})
_STRATEGIES = frozenset({"RollingUpdate", "Recreate", "OnDelete", "InPlaceIfPossible", "InPlaceOnly", "ReCreate"})
_LIMITED = frozenset({"Container", "Pod", "PersistentVolumeClaim"})  # LimitRangeItem.type
_PUBLIC_TYPES = {"type": _CONDITIONS | _STRATEGIES | _LIMITED | spread_group.CONDITIONS, "reason": _REASONS}


class Names:
    """A replacement for every word in a set of objects.

    A word is a run of letters and digits, or a UID.

    Args:
        objects: JSON objects. Only these objects can be anonymised, because other objects can have further words.
    """

    def __init__(self, objects: Iterable[Mapping[str, Json]]) -> None:
        kept = [*objects]
        self._compared = frozenset(key for value in kept for key in _compared_keys(value))
        self._sets = frozenset(tuple(_WORD.findall(name)) for value in kept for name in _stateful_sets(value))
        self._lengths = sorted({len(words) for words in self._sets})
        words: dict[str, None] = {}

        def learned(text: str) -> str:
            words.update(dict.fromkeys(_WORD.findall(text)))
            return text

        self._said: Callable[[str], str] = learned
        for value in kept:
            self._object(value)
        self.words: Mapping[str, str] = _numbered([word for word in words if word not in _PUBLIC_WORDS])
        self._long: dict[str, str] = {}
        self._said = self._text

    def replaced(self, value: Mapping[str, Json]) -> dict[str, Json]:
        """Return the object with its names replaced."""
        return self._object(value)

    def _object(self, value: Mapping[str, Json]) -> dict[str, Json]:
        if value.get("kind") != "CSIDriver" or not isinstance(value.get("metadata"), dict):
            return self._members(value)
        # A CSIDriver carries the name of its driver. Classes and nodes refer to it.
        meta = {("driver" if name == "name" else name): each for name, each in value["metadata"].items()}
        replaced = self._members({**value, "metadata": meta})
        name = replaced["metadata"].pop("driver", None)
        return replaced if name is None else {**replaced, "metadata": {"name": name, **replaced["metadata"]}}

    def _text(self, text: str) -> str:
        if text in _PUBLIC_TEXTS:
            return text
        pieces, end, before = list[str](), 0, list[str]()
        for match in _WORD.finditer(text):
            word = match[0]
            ordinal = word.isdigit() and text[end : match.start()] == "-" and self._ends_in_set(before)
            pieces += (text[end : match.start()], word if ordinal else self.words.get(word, word))
            end = match.end()
            before.append(word)
        return "".join((*pieces, text[end:]))

    def _ends_in_set(self, words: list[str]) -> bool:
        return any(tuple(words[-length:]) in self._sets for length in self._lengths)

    def key(self, key: str) -> str:
        """Replace the key of a label or a taint. Well-known keys and misspelt well-known keys stay."""
        domain = key.rpartition("/")[0]
        public = key in _PUBLIC_KEYS or key == NODE_NAME_FIELD or _is_public(domain) or intended(key) != key
        return key if public else self._said(key)

    def value(self, key: str, value: Json) -> Json:
        """Replace the value of a label or a taint with this key."""
        if not isinstance(value, str) or key in _PLAIN_VALUES or key.startswith(OUR_PREFIX):
            return value
        if key in self._compared and value.lstrip("+-").isdigit():
            return value
        text = self._said(value)
        if len(text) > MAX_LABEL_VALUE_BYTES >= len(value):
            text = self._long.setdefault(value, f"long-{len(self._long)}")
        return text

    def _members(self, members: Mapping[str, Json]) -> dict[str, Json]:
        return {name: self._member(name, value) for name, value in members.items()}

    def _member(self, name: str, value: Json) -> Json:  # noqa: PLR0911 one line a kind of field
        if isinstance(value, dict):
            if name in _LABELS or (name == "selector" and not value.keys() & {"matchLabels", "matchExpressions"}):
                return {self.key(key): self.value(key, each) for key, each in value.items()}
            if name == "annotations":
                return {key: self._annotation(key, each) for key, each in value.items()}
            if name in _RESOURCES and value.keys() not in _NO_RESOURCES:
                return {self._resource(key): each for key, each in value.items()}
            return {
                each: self._member("driver" if (name, each) == _DRIVER_NAME else each, of) for each, of in value.items()
            }
        if isinstance(value, list):
            if name in _WITH_KEYS:
                return [self._with_key(item) for item in value]
            # The limits of a LimitRange are a list. Its entries are not maps of resources.
            return [self._member("" if name == "limits" else name, item) for item in value]
        if not isinstance(value, str) or name in _ENUMERATED:
            return value
        if name in _KEYS:
            return self.key(value)
        if name in _DRIVERS:
            return value if _is_public(value.partition("/")[0]) else self._said(value)
        return value if value in _PUBLIC_TYPES.get(name, ()) else self._said(value)

    def _with_key(self, entry: Json) -> Json:
        """Replace the names in a requirement of a selector, a toleration or a taint."""
        if not isinstance(entry, dict):
            return entry
        written = entry.get("key")
        key = written if isinstance(written, str) else ""
        changed: dict[str, Json] = {}
        for name, value in entry.items():
            if name == "key" and key:
                changed[name] = self.key(key)
            elif name == "value" and isinstance(value, str):
                changed[name] = self.value(key, value)
            elif name == "values" and isinstance(value, list):
                changed[name] = [
                    self.value(key, item) if isinstance(item, str) else self._member(name, item) for item in value
                ]
            else:
                changed[name] = self._member(name, value)
        return changed

    def _resource(self, name: str) -> str:
        if name.startswith(_QUOTA):
            return _QUOTA + self._resource(name.removeprefix(_QUOTA))
        public = name.startswith(_PUBLIC_RESOURCES) or _is_public(name.rpartition("/")[0])
        return name if public else self._said(name)

    def _annotation(self, key: str, value: Json) -> Json:
        if not isinstance(value, str) or value.removeprefix("-").isdigit():
            return value
        if key == EXEMPT_ANNOTATION:
            return ",".join(part if part.strip() in BY_ID else self._said(part) for part in value.split(","))
        if all(_is_public(part.partition("/")[0]) for part in value.split(",")):
            return value  # names of volume plugins
        try:
            record = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return self._said(value)
        return msgspec.json.encode(self._member("", record)).decode() if isinstance(record, dict) else self._said(value)


def _is_public(domain: str) -> bool:
    return domain.endswith(_PUBLIC_DOMAINS) and any(f".{domain}".endswith(f".{public}") for public in _PUBLIC_DOMAINS)


def _numbered(words: Sequence[str]) -> Mapping[str, str]:
    """Return a replacement for each word: ``n07``, ``07n`` for a word with a leading digit, ``u3`` for a UID.

    Replacements sort like their words, except for UIDs.
    """
    uids = [word for word in words if _UID.fullmatch(word)]
    plain = set(words).difference(uids)
    lettered = sorted(word for word in plain if not word[0].isdigit())
    numeric = sorted(plain.difference(lettered))
    named = {word: f"n{number:0{len(str(len(lettered)))}}" for number, word in enumerate(lettered)}
    named |= {word: f"{number:0{len(str(len(numeric)))}}n" for number, word in enumerate(numeric)}
    return named | {word: f"u{number}" for number, word in enumerate(uids)}


def _compared_keys(value: Json) -> Iterator[str]:
    """Yield the label keys with values compared as numbers by a selector."""
    if isinstance(value, dict):
        if value.get("operator") in ("Gt", "Lt") and isinstance(value.get("key"), str):
            yield value["key"]
        for inner in value.values():
            yield from _compared_keys(inner)
    elif isinstance(value, list):
        for item in value:
            yield from _compared_keys(item)


def _stateful_sets(value: Mapping[str, Json]) -> Iterator[str]:
    """Yield the names of StatefulSets: of the object itself and of its owners. Their pods' names end in ordinals."""
    meta = value.get("metadata")
    if not isinstance(meta, dict):
        return
    owners = meta.get("ownerReferences")
    own = {"kind": value.get("kind"), "name": meta.get("name")}
    for reference in (own, *(owners if isinstance(owners, list) else ())):
        if isinstance(reference, dict) and reference.get("kind") in _ORDERED:
            yield str(reference.get("name"))
