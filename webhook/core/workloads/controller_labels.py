"""Labels added to pods by controllers, at binding, or by other webhooks.

A selector on such a label may match, so rules must not report it.

Source: each project's own code; Kubernetes: the PodTopologyLabels admission plugin.
"""

from functools import cache

from webhook.core.api.well_known import REGION, ZONE
from webhook.core.workloads.kinds import BUILT_IN_KINDS, GROUP_LABELS, KINDS, GroupKind, traits
from webhook.core.workloads.workload import Workload

# Labels of service meshes and of binding, on pods of any kind.
_INJECTED = ("service.istio.io/", "security.istio.io/", "topology.istio.io/", "linkerd.io/")
_BOUND = (ZONE, REGION)
ADDED_TO_ANY = (*_BOUND, *_INJECTED)
ADDED_KEYS = frozenset(
    key
    for keys in (ADDED_TO_ANY, *(row.added or () for row in KINDS.values()))
    for key in keys
    if not key.endswith("/")
)
"""Labels added by controllers, without prefixes."""


def may_be_added(workload: Workload, key: str, *, in_template: bool) -> bool:
    """Whether pods may get the label although the template lacks it, or has another value of it.

    Kinds from the configuration may add any label, but rarely change a label of the template.
    """
    if _among(key, ADDED_TO_ANY) or key in workload.late_labels:
        return True
    added = _added_to(workload.group_kind)
    if added is None:
        return not in_template and not workload.built_in
    return _among(key, added)


def may_be_added_to(kind: GroupKind, key: str) -> bool:
    """Whether pods of this kind may get the label, although their template lacks it.

    Controllers, other webhooks and binding add labels. Unlike `may_be_added`, this needs only the kind.
    """
    if _among(key, ADDED_TO_ANY):
        return True
    added = _added_to(kind)
    return kind not in BUILT_IN_KINDS if added is None else _among(key, added)


def _added_to(kind: GroupKind) -> tuple[str, ...] | None:
    added = traits(kind).added
    return GROUP_LABELS.get(kind[0]) if added is None else added


def may_be_created_with(workload: Workload, key: str) -> bool:
    """Whether new pods may, but need not, have the label.

    For built-in kinds, `labels_at_creation` has the labels added by the controller.
    """
    if workload.built_in:
        return _among(key, _INJECTED)
    return not _among(key, _BOUND) and may_be_added(workload, key, in_template=False)


def _among(key: str, names: tuple[str, ...]) -> bool:
    return key in names or key.startswith(_prefixes(names))


@cache  # one entry for each kind of workload
def _prefixes(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name.endswith("/"))
