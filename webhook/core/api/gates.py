"""Changes between Kubernetes releases, each with its first release and source.

Call ``gates.SHOWS_JSON.holds(version)``. No other module compares versions. For a new release, read this list, add the
changes, and move ``ANNOUNCED`` in `version`. docs/releases.md lists the changes with their users and tests (``make
docs``).
"""

from msgspec import Struct

from webhook.core.api.version import KubernetesVersion


class Gate(Struct, frozen=True):
    """One change of behaviour between releases. ``what`` and ``source`` are Markdown.

    Attributes:
        since: The first release with the change.
        until: The first release without the change again.
        case: A recorded case of the change, ``file#id`` below conformance/vectors, or "".
        announced: True for a merged change of an unreleased version.
    """

    since: KubernetesVersion
    what: str
    source: str
    until: KubernetesVersion | None = None
    case: str = ""
    announced: bool = False

    def holds(self, version: KubernetesVersion) -> bool:
        """Whether this Kubernetes release has the changed behaviour."""
        return self.since <= version and (self.until is None or version < self.until)


_1_31 = KubernetesVersion(1, 31, 0)
_1_32 = KubernetesVersion(1, 32, 0)
_1_33 = KubernetesVersion(1, 33, 0)
_1_34 = KubernetesVersion(1, 34, 0)
_1_35 = KubernetesVersion(1, 35, 0)
_1_36 = KubernetesVersion(1, 36, 0)
_1_37 = KubernetesVersion(1, 37, 0)
_1_38 = KubernetesVersion(1, 38, 0)

RESIZES_IN_PLACE = Gate(
    _1_33,
    "a pod being resized in place holds the largest of its spec, allocated and actual resources. Up to 1.36, for each"
    " container with resources in its status",
    "gate InPlacePodVerticalScaling; component-helpers v0.33.13 `resource/helpers.go` AggregateContainerRequests",
    case="1.31/answers.jsonl.gz#filters-20261121-144",
)
RESIZES_AS_A_WHOLE = Gate(
    _1_37,
    "for a pod being resized in place, the sums over its containers are compared. Allocated resources count even"
    " without actual ones",
    "component-helpers v0.36.0 and v0.37.1 `resource/helpers.go` AggregateContainerRequests",
    case="1.33/answers.jsonl.gz#scores-904-140",
)
BALANCE_IGNORES_NO_REQUEST = Gate(
    _1_33,
    "NodeResourcesBalancedAllocation does not score nodes for a pod without requests",
    "kubernetes v1.32.0 and v1.33.0 `noderesources/balanced_allocation.go` isBestEffortPod",
    case="1.33/answers.jsonl.gz#scores-904-2",
)
MERGES_SPREAD_KEYS = Gate(
    _1_34,
    "matchLabelKeys are merged into the selector when a Pod is created; keys are checked against the merged selector."
    " Before: against the written selector, also in templates",
    "kubernetes #129874; `ValidateMatchLabelKeysInTopologySpread` is still used in 1.37 with the gate off",
    case="1.31/answers.jsonl.gz#mutate-validate-7-70",
)
SIDECARS_HAVE_PORTS = Gate(
    KubernetesVersion(1, 33, 6),
    "host ports of sidecars count",
    "kubernetes v1.33.5, v1.33.6 `nodeports/node_ports.go`, `framework/types.go` updateUsedPorts; #132040, #133390",
    case="1.31/answers.jsonl.gz#filters-20261121-535",
)
NAMES_LEFT_OUT = Gate(
    _1_32,
    "FailedScheduling gives a reason for nodes excluded by PreFilter",
    "kubernetes v1.31.0 and v1.32.0 `pkg/scheduler/schedule_one.go` findNodesThatFitPod",
    case="1.31/answers.jsonl.gz#defaults-20261121-56",
)
COUNTS_SIDECAR_RESTARTS = Gate(
    _1_32,
    "of two equal pods, a scale-in first removes the pod whose sidecars restarted more often. Before, these restarts do"
    " not count",
    "kubernetes v1.31.3 and v1.32.13 `pkg/controller/controller_utils.go` maxContainerRestarts",
)
LOCAL_VOLUMES_NAME_NODES = Gate(
    _1_31,
    "bound local volumes limit the pod to the nodes in their affinity, before any filter",
    "kubernetes v1.31.2 and v1.31.3 `volumebinding/volume_binding.go` PreFilter; #125398, #127584",
    until=KubernetesVersion(1, 31, 3),
)
VOLUME_AFFINITY_REASON = Gate(
    _1_33,
    "the reason for a volume on other nodes is `node(s) didn't match PersistentVolume's node affinity`. Before:"
    " `node(s) had volume node affinity conflict`",
    "kubernetes v1.32.0 and v1.33.0 `volumebinding/binder.go`",
    case="1.31/answers.jsonl.gz#filters-20261121-65",
)
CLAIM_IN_USE_REASON = Gate(
    _1_34,
    "the reason for a ReadWriteOncePod claim in use is `node(s) unavailable due to PersistentVolumeClaim with …`."
    " Before: `node has pod using PersistentVolumeClaim with the same name and …`",
    "kubernetes v1.33.0 and v1.34.0 `volumerestrictions/volume_restrictions.go`",
    case="1.31/answers.jsonl.gz#filters-20261121-93",
)
FIT_IS_UNRESOLVABLE = Gate(
    _1_34,
    "a node that could never have enough of a resource is UnschedulableAndUnresolvable. Before: Unschedulable",
    "kubernetes v1.33.0 and v1.34.0 `noderesources/fit.go` fitsRequest",
    case="1.31/answers.jsonl.gz#filters-20261121-505",
)
NAMESPACES_NOT_MERGED = Gate(
    _1_34,
    "the namespaceSelector of an incoming pod's term is not replaced by its namespaces. A selector that no labels can"
    " satisfy applies to every namespace",
    "kubernetes v1.33.0, v1.34.12, v1.36.5, v1.37.1 `interpodaffinity/plugin.go` mergeAffinityTermNamespacesIfNotEmpty;"
    " #132457, #141526",
    until=_1_37,
    case="1.31/answers.jsonl.gz#filters-20261121-458",
)
VALIDATES_STATEFUL_SETS = Gate(
    _1_34,
    "the spec of a StatefulSet's template is validated. Before: not validated, so its pods are refused",
    "kubernetes v1.33.0 and v1.34.0 `pkg/apis/apps/validation` ValidatePodTemplateSpecForStatefulSet",
    case="1.31/answers.jsonl.gz#mutate-validate-7-137",
)
SHOWS_JSON = Gate(
    _1_34,
    "values of named types (whenUnsatisfiable, policies, operators) are shown as JSON. Before: in Go syntax. They"
    " differ only for `<`, `>`, `&` and unprintable characters",
    "apimachinery v0.33.0 and v0.34.0 `field/errors.go`",
    case="1.33/answers.jsonl.gz#mutate-args-904-198",
)
POD_LEVEL_RESOURCES = Gate(
    _1_34,
    "pod-level resources replace the containers' requests, also for LimitRanges. Missing pod-level requests are filled"
    " in from pod-level limits. Before, the field is dropped",
    "gate PodLevelResources",
    case="1.31/answers.jsonl.gz#filters-20261121-505",
)
MATCHES_ATTRIBUTES_CLASS = Gate(
    _1_34,
    "claims and free volumes must have the same volume attributes class. Before: a volume with a class never matched,"
    " and a claim with a class was an error",
    "gate VolumeAttributesClass; component-helpers v0.33.13 `storage/volume/pv_helpers.go` FindMatchingVolume",
)
SHORT_TAINT_REASON = Gate(
    KubernetesVersion(1, 34, 2),
    "the reason of TaintToleration does not name the taint",
    "kubernetes v1.34.1 and v1.34.2 `tainttoleration/taint_toleration.go`; #134740, #135023",
    case="1.31/answers.jsonl.gz#defaults-20261121-375",
)
NAMES_EMBEDDED_FIELDS = Gate(
    _1_35,
    "decoding errors name embedded structs, as in `spec.volumes.VolumeSource.emptyDir`. Before:"
    " `spec.volumes.emptyDir`",
    "sigs.k8s.io/json v0.0.0-20241014173422 and v0.0.0-20250730193827 `encoding/json/decode.go`",
)
SCHEME_LINE_110 = Gate(
    _1_33,
    "errors from decoding the scheduler's configuration contain `pkg/runtime/scheme.go:110`. Up to 1.32: `:100`",
    "apimachinery v0.32.13 and v0.33.13 `pkg/runtime/scheme.go`",
    case="1.31/answers.jsonl.gz#args-20261121-52",
)
SCHEME_LINE_111 = Gate(
    _1_35,
    "errors from decoding the scheduler's configuration contain `pkg/runtime/scheme.go:111`",
    "apimachinery v0.34.4 and v0.35.4 `pkg/runtime/scheme.go`",
    case="1.31/answers.jsonl.gz#args-20261121-52",
)
SCHEME_LINE_110_AGAIN = Gate(
    _1_38,
    "errors from decoding the scheduler's configuration contain `pkg/runtime/scheme.go:110` again",
    "apimachinery v0.37.1 and v0.38.0-alpha.2 `pkg/runtime/scheme.go`",
    announced=True,
)
FINDS_CLAIMS_BY_LISTER = Gate(
    _1_35,
    "the reason for a claim that VolumeBinding cannot get is `persistentvolumeclaims … not found`. Before: `could not"
    " find v1.PersistentVolumeClaim …`",
    "kubernetes v1.34.0 and v1.35.0 `volumebinding/binder.go`, `util/assumecache`",
    case="1.33/answers.jsonl.gz#odd-filters-905-40",
)
DYNAMIC_ARGS = Gate(
    _1_34,
    "DynamicResourcesArgs are a kind of the scheduler's configuration",
    "kubernetes v1.33.0 and v1.34.0 `pkg/scheduler/apis/config/register.go`",
)
LABEL_KEYS_IN_BYTES = Gate(
    _1_35,
    'errors about label keys contain "valid label key" and "bytes". Before: "qualified name" and "characters"',
    "apimachinery v0.34.0 `util/validation` and v0.35.0 `api/validate/content`",
    case="1.31/answers.jsonl.gz#args-20261121-98",
)
SCORES_CHANGE_OF_BALANCE = Gate(
    _1_36,
    "NodeResourcesBalancedAllocation scores the pod's change of a node's balance. Before: the balance with the pod",
    "kubernetes #135573",
    case="1.33/answers.jsonl.gz#scores-904-47",
)
RESIZES_POD_LEVEL = Gate(
    _1_36,
    "a pod being resized in place also holds its pod-level resources",
    "gate InPlacePodLevelResourcesVerticalScaling",
)
FILLS_POD_LEVEL_REQUESTS = Gate(
    _1_37,
    "missing pod-level requests are filled in even without pod-level limits, and missing limits if all containers have"
    " one. Both happen after the mutating admission plugins and before the validating ones",
    "gate PodLevelResourcesFixDefaulting",
    case="1.35/answers.jsonl.gz#admit-906-272",
)
NEEDS_THE_DRIVER = Gate(
    _1_37,
    "a node without the CSI driver is rejected, if the driver's CSIDriver object demands this",
    "gate VolumeLimitScaling",
    case="1.33/answers.jsonl.gz#storage-904-128",
)
ORDINALS_UNAVAILABLE = Gate(
    _1_37,
    "maxUnavailable of a StatefulSet's rolling update takes effect. Before: 1",
    "gate MaxUnavailableStatefulSet",
)
DISTINCT_CAUSES = Gate(
    _1_37,
    "`details.causes` of an answer lists each cause once, as its message always did",
    "apiserver v0.36.0 and v0.37.1 `registry/rest/create.go`",
    case="1.34/answers.jsonl.gz#validate-901-169",
)
NODE_NAME_BEFORE_FILTERS = Gate(
    _1_37,
    "spec.nodeName of a pod excludes all other nodes before any filter",
    "kube-scheduler 1.37 `node_name.go`",
    case="1.33/answers.jsonl.gz#odd-defaults-905-4",
)
COUNTS_EMPTY_SELECTOR = Gate(
    _1_38,
    "a constraint with an empty selector counts the namespace's pods. Before: none",
    "kubernetes #141340",
    announced=True,
)
HAS_MUTATING_POLICIES = Gate(
    _1_34,
    "MutatingAdmissionPolicies exist in `admissionregistration.k8s.io/v1beta1`, off by default",
    "gate MutatingAdmissionPolicy",
)
MUTATING_POLICIES_ARE_STABLE = Gate(
    _1_36,
    "MutatingAdmissionPolicies exist in `admissionregistration.k8s.io/v1`, on by default",
    "gate MutatingAdmissionPolicy",
)
