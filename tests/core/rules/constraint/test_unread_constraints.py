"""Constraints that nothing reads: where they stand, and what they were meant to be."""

import json

import pytest
from manifest import PLAIN
from msgspec.structs import replace

from webhook.core.api.version import RECORDED
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.context import Context
from webhook.core.json_edits import applied
from webhook.core.policy.policy import Mode
from webhook.core.review.examination import examine
from webhook.core.rules.constraint.api import wrong_type
from webhook.core.rules.frame.rule import Severity
from webhook.core.workloads.custom_kinds import EmbeddedKind

SELECTS = {"labelSelector": {"matchLabels": {"app": "web"}}}
ZONE = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", **SELECTS}
HOST = {**ZONE, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
BOTH = [ZONE, HOST]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}
RIGHT = "spec.template.spec.topologySpreadConstraints"
NOWHERE = "evenspread does not know where a Thing has constraints, so it did not check these"


def deployment(path=RIGHT, value=BOTH, **fields):
    """A Deployment with constraints at a path."""
    return {**put(DEPLOYMENT, path, value), **fields}


def thing(path, value=BOTH, **spec):
    """A resource that nothing knows, with constraints at a path."""
    made = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "web"}, "spec": spec}
    return put(made, path, value)


def put(value, path, given):
    """A copy of the object with a value at a path."""
    step, _, rest = path.partition(".")
    if isinstance(value, list):
        return [put(value[0], rest, given) if rest else given, *value[1:]]
    inner = value.get(step, {})
    return {**value, step: put(inner, rest, given) if rest else given}


def examined(value, policy=None):
    return examine(value, Context(policy=policy or PLAIN, version=RECORDED, now="2026-01-01"))


def unread(value, policy=None):
    found = [each.finding for each in examined(value, policy).findings if each.finding.rule == "unread-constraints"]
    assert all(each.severity in {None, Severity.HIGH} for each in found)
    return [(each.path, each.summary, each.fix) for each in found]


@pytest.mark.parametrize(
    ("path", "where"),
    [
        pytest.param("spec.topologySpreadConstraints", "spec.topologySpreadConstraints", id="beside the template"),
        pytest.param("topologySpreadConstraints", "topologySpreadConstraints", id="at the top"),
        pytest.param("metadata.topologySpreadConstraints", "metadata.topologySpreadConstraints", id="in metadata"),
        pytest.param(
            "spec.template.topologySpreadConstraints", "spec.template.topologySpreadConstraints", id="beside spec"
        ),
        pytest.param(
            "spec.template.spec.affinity.topologySpreadConstraints",
            "spec.template.spec.affinity.topologySpreadConstraints",
            id="in the affinity",
        ),
        pytest.param(
            "spec.template.spec.containers.0.topologySpreadConstraints",
            "spec.template.spec.containers[0].topologySpreadConstraints",
            id="in a container",
        ),
    ],
)
def test_a_wrong_place_in_a_deployment(path, where):
    value = deployment(path)
    told = "constraints do not belong here, so they reach no pod"
    assert unread(value) == [(where, told, "move to spec.template.spec")]
    [finding] = [each.finding for each in examined(value).findings]
    assert finding.severity is Severity.HIGH
    fixed = applied(value, finding.edits)
    assert fixed["spec"]["template"]["spec"]["topologySpreadConstraints"] == BOTH
    assert examined(fixed).findings == ()


def test_other_kinds_have_their_own_place():
    cron = {"jobTemplate": {"spec": {"topologySpreadConstraints": BOTH, "template": TEMPLATE}}}
    value = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"}, "spec": cron}
    [(path, _, fix)] = unread(value)
    assert (path, fix) == (
        "spec.jobTemplate.spec.topologySpreadConstraints",
        "move to spec.jobTemplate.spec.template.spec",
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": TEMPLATE["metadata"], "topologySpreadConstraints": BOTH}
    assert unread({**pod, "spec": TEMPLATE["spec"]}) == [
        ("topologySpreadConstraints", "constraints do not belong here, so they reach no pod", "move to spec")
    ]


def test_another_name():
    value = deployment("spec.template.spec.spreadConstraints")
    told = "a pod's spec has no field spreadConstraints, so these constraints reach no pod"
    assert unread(value) == [("spec.template.spec.spreadConstraints", told, "rename it to topologySpreadConstraints")]
    [finding] = [each.finding for each in examined(value).findings]
    assert applied(value, finding.edits) == deployment()


@pytest.mark.parametrize(
    "name",
    [
        "topologySpreadConstraint",
        "TopologySpreadConstraints",
        "topologySpreadContraints",
        "topology_spread_constraints",
    ],
)
@pytest.mark.parametrize("kind", [("apps/v1", "Deployment"), ("argoproj.io/v1alpha1", "Rollout")])
def test_a_misspelt_name_in_the_right_place_is_an_unknown_field(name, kind):
    value = deployment(f"spec.template.spec.{name}", apiVersion=kind[0], kind=kind[1])
    assert [each.finding.rule for each in examined(value).findings] == ["unknown-field"]


def test_a_misspelt_name_in_a_wrong_place():
    [(_, _, fix)] = unread(deployment("spec.topologySpreadConstraint"))
    assert fix == "move to spec.template.spec.topologySpreadConstraints"


def test_what_stands_in_the_right_place_already_is_not_written_over():
    value = put(deployment(), "spec.topologySpreadConstraints", [HOST])
    assert unread(value) == [
        (
            "spec.topologySpreadConstraints",
            "constraints do not belong here, so they reach no pod",
            f"move the missing constraints to {RIGHT} and remove this field",
        )
    ]
    assert examined(value).findings[0].finding.edits == ()


@pytest.mark.parametrize("value", [None, []], ids=["null", "an empty list"])
def test_a_wrong_place_without_constraints(value):
    assert unread(deployment("spec.topologySpreadConstraints", value)) == [
        (
            "spec.topologySpreadConstraints",
            "constraints do not belong here, so it has no effect",
            "remove topologySpreadConstraints",
        )
    ]


def test_constraints_that_are_wrong_in_their_right_place_too_are_moved_by_people():
    value = deployment("spec.topologySpreadConstraints", [{**ZONE, "maxSkew": 0}])
    [judged] = examined(value).findings
    assert judged.finding.fix.startswith("move to spec.template.spec; then max-skew: ")
    assert judged.finding.edits == ()


def test_constraints_that_cannot_be_decoded_where_they_belong_are_moved_by_people():
    value = deployment("spec.topologySpreadConstraints", [{**ZONE, "maxSkew": "x"}])
    [judged] = examined(value).findings
    assert (judged.finding.fix, judged.finding.edits) == ("move to spec.template.spec", ())


def test_an_old_version_without_constraints():
    assert unread({**DEPLOYMENT, "apiVersion": "apps/v1beta1"}) == []


def test_without_a_pod_spec_nothing_is_moved_by_programs():
    value = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    value = {**value, "spec": {"topologySpreadConstraints": BOTH}}
    assert examined(value).findings[0].finding.edits == ()
    assert examined(deployment("spec.topologySpreadConstraints", ZONE)).findings[0].finding.edits == ()


@pytest.mark.parametrize(
    ("stated", "path", "fix"),
    [
        pytest.param(("apps/v1", "deployment"), "kind", "kind: Deployment", id="lower case"),
        pytest.param(("apps/v1", "Deployments"), "kind", "kind: Deployment", id="plural"),
        pytest.param(("apps/v1", "Deploymnet"), "kind", "kind: Deployment", id="misspelt"),
        pytest.param(("apps/v1", "Statefulset"), "kind", "kind: StatefulSet", id="a StatefulSet"),
        pytest.param(("v1", "Deployment"), "apiVersion", "apiVersion: apps/v1", id="no group"),
        pytest.param(("apps", "Deployment"), "apiVersion", "apiVersion: apps/v1", id="no version"),
        pytest.param(("extensions/v1beta1", "Deployment"), "apiVersion", "apiVersion: apps/v1", id="an old group"),
        pytest.param(("apps/v1beta1", "Deployment"), "apiVersion", "apiVersion: apps/v1", id="an old version"),
        pytest.param(("batch/v1", "Deployment"), "apiVersion", "apiVersion: apps/v1", id="another group"),
        pytest.param(
            ("v1", "deployment"), "apiVersion", "set apiVersion: apps/v1 and set kind: Deployment", id="both are wrong"
        ),
        pytest.param(("argoproj.io/v1alpha1", "rollout"), "kind", "kind: Rollout", id="a custom resource"),
    ],
)
def test_a_type_that_no_api_server_has(stated, path, fix):
    value = deployment(apiVersion=stated[0], kind=stated[1])
    nobody = "no API server" if "." in stated[0] else "no supported Kubernetes release"
    told = f"{nobody} has kind {stated[1]} in {stated[0]}, so these constraints reach no pod"
    assert unread(value) == [(path, told, fix)]
    finding = next(each.finding for each in examined(value).findings if each.finding.rule == "unread-constraints")
    assert finding.severity is Severity.HIGH
    assert unread(applied(value, finding.edits)) == []


@pytest.mark.parametrize(
    ("max_skew", "kept"), [pytest.param(1, True, id="a note"), pytest.param(0, False, id="what is refused")]
)
def test_what_a_wrong_type_hides_speaks_against_its_fix_only_if_it_warns(max_skew, kept):
    soft = {**ZONE, "maxSkew": max_skew, "whenUnsatisfiable": "ScheduleAnyway"}
    value = deployment(value=[soft], kind="deployment")
    [judged] = examined(value).findings
    assert bool(judged.finding.edits) is kept
    after = {each.finding.rule for each in examined({**value, "kind": "Deployment"}).findings}
    assert after == {"system-defaults-lost"} | (set() if kept else {"max-skew"})


def test_an_old_deployment_without_a_selector_needs_more_than_a_version():
    spec = {"template": put(TEMPLATE, "spec.topologySpreadConstraints", BOTH)}
    value = {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    assert examined(value).findings[0].finding.edits == ()


def test_the_article_goes_by_the_sound():
    value = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}, "spec": {}}
    [(_, told, _)] = unread({**value, "spec": {"topologySpreadConstraints": BOTH}})
    assert "where an Ingress" in told


def test_an_object_that_makes_no_pods():
    value = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    assert unread({**value, "spec": {"topologySpreadConstraints": BOTH}}) == [
        (
            "spec.topologySpreadConstraints",
            "a Service creates no pods, so these constraints have no effect",
            "move them to a workload's pod template",
        )
    ]


TEMPLATED = "spec.template.spec.topologySpreadConstraints"
START = "add to workloads in the configuration: - {apiVersion: example.com/v1, kind: Thing, "


@pytest.mark.parametrize(
    ("value", "line"),
    [
        pytest.param(thing(TEMPLATED, template=TEMPLATE), "templatePath: spec.template}", id="a template"),
        pytest.param(
            thing(TEMPLATED, template=TEMPLATE, replicas=3, selector={"matchLabels": {"app": "web"}}),
            "templatePath: spec.template, replicasPath: spec.replicas, selectorPath: spec.selector}",
            id="with replicas and a selector",
        ),
        pytest.param(
            thing("spec.engine.spec.topologySpreadConstraints", engine={"spec": {"containers": []}}),
            "templatePath: spec.engine}",
            id="containers beside them",
        ),
        pytest.param(
            thing("spec.topologySpreadConstraints", replicas=3),
            "constraintsPath: spec.topologySpreadConstraints, replicasPath: spec.replicas}",
            id="no template",
        ),
        pytest.param(
            thing("spec.podSpec.topologySpreadConstraints", podSpec={"containers": []}),
            "constraintsPath: spec.podSpec.topologySpreadConstraints}",
            id="a pod's spec that is called otherwise",
        ),
        pytest.param(
            thing(
                "spec.roles.0.template.spec.topologySpreadConstraints", roles=[{"template": TEMPLATE, "replicas": 2}]
            ),
            'templatePath: "spec.roles[*].template", replicasPath: replicas}',
            id="in a list",
        ),
    ],
)
def test_a_kind_that_nobody_knows_gets_its_line_of_the_configuration(value, line):
    [(path, told, fix)] = unread(value)
    assert told == NOWHERE
    assert fix == f"{START}{line}"
    entry = dict(part.split(": ") for part in line.replace('"', "").removesuffix("}").split(", "))
    kind = EmbeddedKind(
        api_version="example.com/v1",
        kind="Thing",
        template_path=entry.get("templatePath"),
        constraints_path=entry.get("constraintsPath"),
        replicas_path=entry.get("replicasPath"),
    )
    assert path.endswith("topologySpreadConstraints")
    assert unread(value, replace(PLAIN, workloads=(kind,))) == [], "with this line they are read"


def test_a_path_that_the_configuration_cannot_say():
    assert unread(thing("spec.a/b.topologySpreadConstraints")) == [
        (
            "spec.[a/b].topologySpreadConstraints".replace(".[", "["),
            NOWHERE,
            "add the kind to workloads in the configuration",
        )
    ]


def test_one_line_for_all_entries_of_a_list():
    roles = [{"topologySpreadConstraints": BOTH}, {"topologySpreadConstraints": BOTH}]
    assert [path for path, _, _ in unread(thing("spec.x", 1, roles=roles))] == [
        "spec.roles[0].topologySpreadConstraints"
    ]


def test_a_configured_path_that_finds_nothing():
    kind = EmbeddedKind(api_version="example.com/v1", kind="Thing", template_path="spec.tmpl")
    assert unread(thing(TEMPLATED, template=TEMPLATE), replace(PLAIN, workloads=(kind,))) == [
        (
            TEMPLATED,
            "the configuration's workloads entry for Thing points to spec.tmpl, so these constraints are not read",
            (
                "change the entry in workloads in the configuration to: - "
                "{apiVersion: example.com/v1, kind: Thing, templatePath: spec.template}"
            ),
        )
    ]
    kind = EmbeddedKind(api_version="example.com/v1", kind="Thing", constraints_path="spec.other")
    [(_, told, fix)] = unread(thing("spec.a/b.topologySpreadConstraints"), replace(PLAIN, workloads=(kind,)))
    assert "points to spec.other" in told
    assert fix == "correct the path in workloads"


def test_a_known_custom_resource_has_its_place():
    rollout = deployment("spec.topologySpreadConstraints", apiVersion="argoproj.io/v1alpha1", kind="Rollout")
    told = "evenspread does not read or check constraints of a Rollout at this path"
    assert unread(rollout) == [("spec.topologySpreadConstraints", told, "move to spec.template.spec")]
    kafka = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "k"}}
    [(_, _, fix)] = unread(put(kafka, "spec.kafka.topologySpreadConstraints", BOTH))
    assert fix == "move to spec.kafka.template.pod"
    [(_, _, fix)] = unread(put(kafka, "spec.topologySpreadConstraints", BOTH))
    assert fix == ("move to spec.kafka.template.pod or spec.zookeeper.template.pod or spec.entityOperator.template.pod")


CHARTS = [
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "spec.values.topologySpreadConstraints"),
    ("argoproj.io/v1alpha1", "Application", "spec.source.helm.valuesObject.topologySpreadConstraints"),
    ("argoproj.io/v1alpha1", "ApplicationSet", "spec.template.spec.source.helm.valuesObject.topologySpreadConstraints"),
    ("helm.cattle.io/v1", "HelmChart", "spec.values.a.topologySpreadConstraints"),
]


@pytest.mark.parametrize(("api_version", "kind", "path"), CHARTS, ids=lambda each: each)
def test_values_of_a_chart_have_constraints_under_the_right_name_alone(api_version, kind, path):
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}}
    assert unread(put(value, path, BOTH)) == []
    wrong = path.replace("SpreadC", "Spreadc")
    assert unread(put(value, wrong, BOTH)) == [
        (
            wrong,
            ("topologySpreadconstraints looks like a misspelt topologySpreadConstraints, and Helm drops unused values"),
            "rename it to topologySpreadConstraints, unless the chart uses topologySpreadconstraints",
        )
    ]
    assert len(unread(put(value, "spec.other.topologySpreadConstraints", BOTH))) == 1, "which are no values"


def owned(api_version, kind):
    owner = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "1", "controller": True}
    return {"name": "web", "ownerReferences": [owner]}


SCHEMA = {"type": "array", "items": {"properties": {"maxSkew": {"type": "integer"}}}}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(deployment(), id="in the right place"),
        pytest.param(thing("status.topologySpreadConstraints"), id="in the status"),
        pytest.param(thing("metadata.annotations.topologySpreadConstraints", "[]"), id="an annotation"),
        pytest.param(thing("spec.topologySpreadConstraints", "maxSkew: 1"), id="a text"),
        pytest.param(thing("spec.topologySpreadConstraints", []), id="an empty list in an unknown kind"),
        pytest.param(thing("spec.topologySpreadConstraints", SCHEMA), id="a schema"),
        pytest.param(
            {**thing("spec.topologySpreadConstraints"), "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy"},
            id="a pattern",
        ),
        pytest.param(
            {**thing("data.spec.template.spec.topologySpreadConstraints"), "metadata": owned("apps/v1", "StatefulSet")},
            id="what a known controller made",
        ),
        pytest.param(deployment("spec.template.spec.nodeSelector", {"topologySpreadConstraints": "x"}), id="a label"),
    ],
)
def test_nothing_is_said(value):
    assert unread(value) == []
    assert unread(json.loads(json.dumps(value))) == []


def test_the_text_of_an_object_gives_the_same():
    value = deployment("spec.topologySpreadConstraints")
    assert unread(json.dumps(value).encode()) == unread(value)
    assert unread(b'{"apiVersion": "v1", "kind": "Service", "spec": {}}') == []


def test_an_object_of_no_known_kind_is_exempted_by_its_annotation():
    value = put(thing("spec.topologySpreadConstraints"), "metadata.annotations", {})
    value["metadata"]["annotations"]["evenspread.io/exempt"] = "unread-constraints"
    [judged] = examined(value).findings
    assert (judged.mode, judged.severity) == (Mode.AUDIT, Severity.MEDIUM)
    assert judged.waived == "exempted by evenspread.io/exempt"


@pytest.mark.slow
def test_a_deep_or_large_object_is_walked_as_far_as_its_bounds():
    deep = inner = {}
    for _ in range(200):
        inner["a"] = inner = {}
    inner["topologySpreadConstraints"] = BOTH
    for value in (thing("spec.x", deep), thing("spec.y.topologySpreadConstraints", x=[[]] * 300_001)):
        assert unread(value) == []
        [gap] = examined(value).not_evaluated
        assert (gap.rule, gap.missing) == (
            "unread-constraints",
            "more than 300,000 lists and mappings in an object, or 128 levels",
        )
    many = {f"a{number}": {"topologySpreadConstraints": BOTH} for number in range(20)}
    assert len(unread(thing("spec.x", many))) == 16


def test_a_wrong_type_beside_bytes_that_are_no_text_has_no_fix():
    """The decoder stopped before them; who asks for the whole object comes upon them."""
    text = "json: cannot unmarshal string into Go struct field PodSpec.priority of type int32"
    error = DecodeError(path="spec.priority", text=text, message=text)

    def unreadable():
        raise DecodeError(path="", text="no UTF-8", message="no UTF-8")

    assert (wrong_type(error, unreadable).fix, wrong_type(error, unreadable).edits) == ("", ())
    assert wrong_type(error, lambda: {"spec": {"priority": "1"}}).fix == "priority: 1"
