"""What changed between Kubernetes releases: each change once, with its first release and the source that says so.

Nothing else compares a version: ``version >= gates.SHOWS_JSON.since``. For a new release, read this list, add what it
changes, and move ``NEWEST`` in `version`. docs/exactness.md shows the list with the places that ask and the tests
(``make docs``).
"""

from msgspec import Struct

from webhook.core.api.version import KubernetesVersion


class Gate(Struct, frozen=True):
    """One change: ``since`` is the first release that behaves as ``what`` says, in Markdown."""

    since: KubernetesVersion
    what: str
    source: str


_1_27 = KubernetesVersion(1, 27)
_1_31 = KubernetesVersion(1, 31)
_1_33 = KubernetesVersion(1, 33)
_1_34 = KubernetesVersion(1, 34)
_1_35 = KubernetesVersion(1, 35)
_1_36 = KubernetesVersion(1, 36)
_1_37 = KubernetesVersion(1, 37)
_1_38 = KubernetesVersion(1, 38)

READS_MATCH_LABEL_KEYS = Gate(
    _1_27,
    "matchLabelKeys are looked at at all",
    "gate MatchLabelKeysInPodTopologySpread, beta in 1.27",
)
MERGES_AFFINITY_KEYS = Gate(
    _1_31,
    "matchLabelKeys and mismatchLabelKeys of affinity terms are merged when a Pod is created",
    "gate MatchLabelKeysInPodAffinity, beta in 1.31",
)
RESIZES_IN_PLACE = Gate(
    _1_33,
    "a pod that is resized in place holds the largest of spec, allocated and actual resources. Up to 1.36 upstream took"
    " the largest container by container, which differs only for a container that grows while another shrinks",
    "gate InPlacePodVerticalScaling",
)
BALANCE_IGNORES_NO_REQUEST = Gate(
    _1_33,
    "NodeResourcesBalancedAllocation does not score nodes for a pod without requests",
    "kubernetes v1.32.0 and v1.33.0 `noderesources/balanced_allocation.go` isBestEffortPod",
)
MERGES_SPREAD_KEYS = Gate(
    _1_34,
    "matchLabelKeys are merged into the selector when a Pod is created; keys are checked against the merged selector."
    " Before: against the selector as written, also in templates",
    "kubernetes #129874; `ValidateMatchLabelKeysInTopologySpread` still stands in 1.37 for the gate switched off",
)
VALIDATES_STATEFUL_SETS = Gate(
    _1_34,
    "the spec of a StatefulSet's template is validated. Before: nothing of it, so that its pods are refused",
    "kubernetes v1.33.0 and v1.34.0 `pkg/apis/apps/validation` ValidatePodTemplateSpecForStatefulSet",
)
SHOWS_JSON = Gate(
    _1_34,
    "values of named types (whenUnsatisfiable, policies, operators) are shown as JSON; before in Go syntax, which"
    " differs for `<`, `>`, `&` and unprintable characters only",
    "apimachinery v0.33.0 and v0.34.0 `field/errors.go`",
)
POD_LEVEL_RESOURCES = Gate(
    _1_34,
    "pod-level resources replace what containers request; missing pod-level requests are filled in beside pod-level"
    " limits",
    "gate PodLevelResources",
)
MATCHES_ATTRIBUTES_CLASS = Gate(
    _1_34,
    "claims and free volumes must have the same volume attributes class; before, a volume with one was never taken",
    "gate VolumeAttributesClass",
)
SHORT_TAINT_REASON = Gate(
    _1_35,
    "the reason of TaintToleration does not name the taint",
    "kube-scheduler 1.34 and 1.37 `taint_toleration.go`",
)
LABEL_KEYS_IN_BYTES = Gate(
    _1_35,
    '"valid label key" and "bytes"; before "qualified name" and "characters"',
    "apimachinery v0.34.0 `util/validation` and v0.35.0 `api/validate/content`",
)
SCORES_CHANGE_OF_BALANCE = Gate(
    _1_36,
    "NodeResourcesBalancedAllocation scores how much the pod changes a node's balance; before, the balance with it",
    "kubernetes #135573",
)
RESIZES_POD_LEVEL = Gate(
    _1_36,
    "a pod that is resized in place holds the resources of the pod as a whole too",
    "gate InPlacePodLevelResourcesVerticalScaling",
)
FILLS_POD_LEVEL_REQUESTS = Gate(
    _1_37,
    "missing pod-level requests are filled in without pod-level limits too",
    "gate PodLevelResourcesFixDefaulting",
)
NEEDS_THE_DRIVER = Gate(
    _1_37,
    "a node on which a CSI driver is not installed is rejected, if the driver's CSIDriver object asks for that",
    "gate VolumeLimitScaling",
)
ORDINALS_UNAVAILABLE = Gate(
    _1_37,
    "maxUnavailable of a StatefulSet's rolling update counts; before it is 1",
    "gate MaxUnavailableStatefulSet",
)
NODE_NAME_BEFORE_FILTERS = Gate(
    _1_37,
    "a pod with spec.nodeName leaves only that node, before any filter",
    "kube-scheduler 1.37 `node_name.go`",
)
COUNTS_EMPTY_SELECTOR = Gate(
    _1_38,
    "a constraint with an empty selector counts the namespace's pods; before it counts none",
    "kubernetes #141340",
)
