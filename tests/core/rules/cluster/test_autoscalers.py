"""Where Karpenter and the descheduler read a constraint in another way than kube-scheduler."""

import pytest
from build import cluster, index, node, owner
from manifest import DENY, decide, examined, said, web, workload
from manifest import told as told_by
from msgspec.structs import replace

from webhook.core.api.types import NodeSpec, Taint
from webhook.core.api.version import KubernetesVersion
from webhook.core.policy.policy import Mode, Policy
from webhook.core.review.messages import WARNING_CHARS

RULE = "autoscaler-reads-it-differently"
KARPENTER = "karpenter.sh/nodepool=default"
ALONE = cluster("a: n1 n2 | b: n3", labelled=KARPENTER)
DESCHEDULER = replace(
    owner("Deployment/descheduler"), meta=replace(owner("Deployment/descheduler").meta, namespace="kube-system")
)


def told(manifest, found=ALONE, **more):
    return told_by(RULE, manifest, found, **more)


@pytest.mark.parametrize(
    ("constraint", "replicas", "more", "expected"),
    [
        pytest.param(
            "hostname hard 1 app=web",
            6,
            {},
            ["warn hostname[0]: Karpenter asks for 6 nodes, 3 exist; use maxSkew: 2"],
            id="a node for each pod",
        ),
        pytest.param(
            "hostname hard 2 app=web",
            7,
            {},
            ["warn hostname[0]: Karpenter asks for 4 nodes, 3 exist; use maxSkew: 3"],
            id="a node for two pods",
        ),
        pytest.param(
            "hostname soft 1 app=web",
            6,
            {},
            ["audit hostname[0]: Karpenter first wants 6 nodes, 3 exist; use maxSkew: 2"],
            id="softly",
        ),
        pytest.param("hostname hard 1 app=web", 3, {}, [], id="there are enough"),
        pytest.param("hostname hard 2 app=web", 6, {}, [], id="there are enough for two on each"),
        pytest.param("zone hard 1 app=web", 6, {}, [], id="zones are read alike"),
        pytest.param("hostname hard 0 app=web", 6, {}, [], id="a maxSkew that is refused"),
        pytest.param(
            "hostname hard 1 app=web",
            3,
            {"nodeSelector": {"topology.kubernetes.io/zone": "a"}},
            ["warn hostname[0]: Karpenter asks for 3 nodes, 2 exist; use maxSkew: 2"],
            id="pods choose two of the three",
        ),
        pytest.param("hostname hard 1 app=web", 6, {"nodeSelector": {"pool": "x"}}, [], id="a pool without nodes"),
    ],
)
def test_karpenter_takes_the_minimum_over_hosts_as_none(constraint, replicas, more, expected):
    assert told(web(constraint, replicas=replicas, **more)) == expected


@pytest.mark.parametrize(
    "labels", ["", "eks.amazonaws.com/nodegroup=x", "cloud.google.com/gke-nodepool=x", "agentpool=x"], ids=str
)
def test_without_karpenter_nothing_is_said(labels):
    found = cluster("a: n1 n2 | b: n3", labelled=labels)
    manifest = web("hostname hard 1 app=web", "zone soft 1 {}", "rack hard 1 null", replicas=6)
    assert told(manifest, found) == []


@pytest.mark.parametrize("kind", ["Pod", "DaemonSet"])
def test_pods_that_are_alone_on_their_node_ask_for_no_other(kind):
    assert told(workload(kind, "app=web", "hostname hard 1 app=web")) == []


def test_replicas_that_nobody_wrote_are_not_guessed():
    manifest = web("hostname hard 1 app=web")
    del manifest["spec"]["replicas"]
    assert told(manifest) == []


@pytest.mark.parametrize(
    ("constraint", "version", "speaks"),
    [
        ("zone soft 1 null", (1, 37), True),
        ("zone soft 1 {}", (1, 37), True),
        ("zone soft 1 {}", (1, 38), False),
        ("zone soft 1 null", (1, 38), True),
        ("zone soft 1 {} keys:pod-template-hash", (1, 37), False),
        ("zone soft 1 app=web", (1, 37), False),
    ],
)
def test_karpenter_lists_every_pod_for_a_selector_without_conditions(constraint, version, speaks):
    expected = ["audit zone[0]: Karpenter counts every pod in the namespace; set labelSelector"] if speaks else []
    assert told(web(constraint), version=KubernetesVersion(*version)) == expected


def test_karpenter_counts_each_constraint_alone():
    racked = index(node("n1", "a", rack="r", karpenter__sh__nodepool="x"), node("n2", "a", rack="r"), node("n3", "b"))
    both = web("zone hard 1 app=web", "rack hard 1 app=web")
    assert told(both, racked) == ["audit zone[0]: Karpenter also counts 1 node that lacks another label; label it"]
    racked.apply("ADDED", node("n4", "b"))
    assert told(both, racked) == ["audit zone[0]: Karpenter also counts 2 nodes that lack another label; label them"]
    assert told(web("zone hard 1 app=web", "rack soft 1 app=web"), racked) == []
    chosen = web("zone hard 1 app=web", "rack hard 1 app=web", nodeSelector={"rack": "r"})
    assert told(chosen, racked) == []


@pytest.mark.parametrize(
    ("soft", "speaks"),
    [
        ("zone soft 1 app=web", True),
        ("zone soft 2 app=web", False),
        ("zone soft 1 app=web tier=x", False),
        ("hostname soft 1 app=web", False),
    ],
)
def test_karpenter_takes_constraints_for_one_that_differ_in_min_domains(soft, speaks):
    expected = ["audit Karpenter treats zone[0] and zone[1] as one constraint; use another maxSkew"] if speaks else []
    assert told(web("zone hard 1 app=web minDomains:2", soft)) == expected
    assert told(web("zone hard 1 app=web", soft)) == []


@pytest.mark.parametrize(("policy", "speaks"), [("", True), (" nodeAffinityPolicy:Ignore", False)])
def test_karpenter_leaves_match_fields_out(policy, speaks):
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    expected = ["audit zone[0]: Karpenter ignores matchFields; use matchExpressions"] if speaks else []
    assert told(web(f"zone hard 1 app=web{policy}", affinity=affinity)) == expected
    terms["nodeSelectorTerms"][0]["matchExpressions"] = terms["nodeSelectorTerms"][0].pop("matchFields")
    assert told(web(f"zone hard 1 app=web{policy}", affinity=affinity)) == []


def tainted(name, zone, effect, **more):
    spec = NodeSpec(taints=(Taint(key="dedicated", effect=effect),))
    return replace(node(name, zone, karpenter__sh__nodepool="x", **more), spec=spec)


@pytest.mark.parametrize(
    ("constraints", "more", "expected"),
    [
        pytest.param(
            ["zone hard 1 app=web", "zone soft 2 app=web"],
            {},
            ["audit zone[0]: Karpenter skips 1 PreferNoSchedule node; tolerate the taint"],
            id="once, of the first constraint",
        ),
        pytest.param(
            ["zone hard 1 app=web"],
            {"tolerations": [{"effect": "PreferNoSchedule", "operator": "Exists"}]},
            [],
            id="fixed",
        ),
        pytest.param(
            ["zone hard 1 app=web"], {"nodeSelector": {"topology.kubernetes.io/zone": "b"}}, [], id="nodes of others"
        ),
    ],
)
def test_karpenter_skips_nodes_that_kube_scheduler_only_avoids(constraints, more, expected):
    found = index(tainted("n1", "a", "PreferNoSchedule"), node("n2", "b"))
    assert told(web(*constraints, **more), found) == expected
    found.apply("ADDED", tainted("n3", "a", "PreferNoSchedule"))
    assert told(web(*constraints, **more), found) == [
        each.replace("1 PreferNoSchedule node", "2 PreferNoSchedule nodes") for each in expected
    ]
    found.apply("MODIFIED", node("n1", "a", karpenter__sh__nodepool="x"))
    found.apply("DELETED", node("n3"))
    assert told(web(*constraints, **more), found) == []


def required(*terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def of_zone(*zones, key="topology.kubernetes.io/zone"):
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(zones)}]}


@pytest.mark.parametrize(
    ("terms", "speaks"),
    [
        pytest.param([of_zone("a"), of_zone("b")], True, id="nodes of a later term"),
        pytest.param([of_zone("b"), of_zone("a")], True, id="several nodes of a later term"),
        pytest.param([of_zone("a", "b"), of_zone("b")], False, id="none that the first leaves out"),
        pytest.param([of_zone("a", "b")], False, id="one term"),
        pytest.param([{}, of_zone("a")], False, id="a first term without conditions matches nothing"),
    ],
)
def test_karpenter_tries_alternatives_one_by_one(terms, speaks):
    expected = ["audit zone[0]: Karpenter tries node affinity terms one by one; use one term"] if speaks else []
    assert told(web("zone hard 1 app=web", affinity=required(*terms))) == expected


@pytest.mark.parametrize(
    ("constraint", "chosen", "speaks"),
    [
        ("zone hard 1 app=web nodeAffinityPolicy:Ignore", {"affinity": required(of_zone("a"))}, True),
        ("zone hard 1 app=web nodeAffinityPolicy:Ignore", {"nodeSelector": {"topology.kubernetes.io/zone": "a"}}, True),
        ("zone hard 1 app=web nodeAffinityPolicy:Ignore", {"affinity": required(of_zone("a", "b"))}, False),
        ("zone hard 1 app=web nodeAffinityPolicy:Ignore", {"affinity": required(of_zone("x", key="pool"))}, False),
        ("zone hard 1 app=web nodeAffinityPolicy:Ignore", {}, False),
        ("zone hard 1 app=web", {"affinity": required(of_zone("a"))}, False),
        ("zone soft 1 app=web nodeAffinityPolicy:Ignore", {"affinity": required(of_zone("a"))}, False),
        ("hostname hard 9 app=web nodeAffinityPolicy:Ignore", {"affinity": required(of_zone("a"))}, False),
    ],
)
def test_karpenter_counts_no_domain_that_the_pods_exclude_themselves(constraint, chosen, speaks):
    said = "audit zone[0]: Karpenter ignores excluded domains; use nodeAffinityPolicy: Honor"
    found = [each for each in told(web(constraint, **chosen)) if "excluded domains" in each]
    assert found == ([said] if speaks else [])


@pytest.mark.parametrize(
    ("constraint", "closed", "expected"),
    [
        ("zone soft 1 app=web", "NoSchedule", 1),
        ("zone soft 1 app=web nodeTaintsPolicy:Honor", "NoSchedule", 0),
        ("zone hard 1 app=web", "NoSchedule", 0),
        ("hostname soft 9 app=web", "NoSchedule", 0),
        ("zone soft 1 app=web", None, 0),
    ],
)
def test_karpenter_first_wants_a_node_in_each_domain(constraint, closed, expected):
    found = index(
        node("n1", "a", karpenter__sh__nodepool="x"), tainted("n2", "b", closed) if closed else node("n2", "b")
    )
    said = ["audit zone[0]: Karpenter first wants nodes in 1 unusable zone; tolerate the taints"] * expected
    assert told(web(constraint), found) == said
    found.apply("MODIFIED", replace(node("n2", "b"), spec=NodeSpec(unschedulable=True)))
    assert told(web(constraint), found) == []
    found.apply("MODIFIED", tainted("n1", "a", "NoSchedule"))
    found.apply("MODIFIED", tainted("n2", "b", "NoSchedule"))
    assert told(web(constraint), found) == []


@pytest.mark.parametrize(
    ("constraint", "pods", "expected"),
    [
        pytest.param(
            "hostname hard 1 app=web", "a: n1=2 n2=1 | b: n3=1", 2, id="pods of others, or of another revision"
        ),
        pytest.param("hostname soft 1 app=web", "a: n1=2 n2=1 | b: n3=1", 2, id="softly"),
        pytest.param("hostname hard 2 app=web", "a: n1=5 n2=2 | b: n3=2", 4, id="two on each"),
        pytest.param("hostname hard 1 app=web", "a: n1=1 n2=1 | b: n3=1", None, id="its own"),
        pytest.param("hostname hard 1 app=web", "a: n1=4 n2=1 | b: n3", None, id="a host without one"),
        pytest.param(
            "hostname hard 1 app=web keys:pod-template-hash", "a: n1=2 n2=1 | b: n3=1", None, id="one revision"
        ),
        pytest.param("zone hard 1 app=web", "a: n1=2 n2=1 | b: n3=1", None, id="zones"),
        pytest.param("hostname hard 1 app=web", "a: ~n1=2 ~n2=1 | b: ~n3=1", None, id="no node is open"),
        pytest.param("hostname hard 0 app=web", "a: n1=2 n2=1 | b: n3=1", None, id="a maxSkew that is refused"),
    ],
)
def test_hosts_that_are_full_to_karpenter(constraint, pods, expected):
    found = cluster(pods, labelled=KARPENTER)
    said = [] if expected is None else [f"audit hostname[0]: Karpenter treats 3 nodes as full; use maxSkew: {expected}"]
    assert told(web(constraint), found) == said
    assert told(workload("DaemonSet", "app=web", constraint), found) == []
    unreadable = web(constraint)
    written = unreadable["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    written["labelSelector"]["matchExpressions"] = [{"key": "app", "operator": "Is"}]
    assert told(unreadable, found) == []


def test_of_full_hosts_nothing_is_said_where_more_are_asked_for():
    found = cluster("a: n1=4 | b: n2=2", labelled=KARPENTER)
    said = ["warn hostname[0]: Karpenter asks for 3 nodes, 2 exist; use maxSkew: 2"]
    assert told(web("hostname hard 1 app=web"), found) == said


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        (
            ["zone hard 1 app=web", "hostname hard 1 app=web"],
            ["audit the descheduler handles zone and hostname separately; use ScheduleAnyway"],
        ),
        (["zone hard 1 app=web", "hostname soft 1 app=web"], []),
        (["zone hard 1 app=web", "zone hard 2 app=web"], []),
        (["zone soft 1 app=web", "hostname soft 1 app=web"], []),
        (["zone hard 1 app=web"], []),
        (
            ["zone hard 1 {}"],
            [
                (
                    "audit zone[0]: with labelSelector {} the descheduler counts every pod in the namespace,"
                    " kube-scheduler none; set its labelSelector"
                )
            ],
        ),
        (["zone hard 1 null"], []),
        (["zone hard 1 {} keys:pod-template-hash"], []),
        (["zone soft 1 {}"], []),
    ],
    ids=[
        *("hard on both", "hard on zones", "twice on zones", "soft on both", "one"),
        *("an empty selector", "no selector", "one revision", "softly an empty selector"),
    ],
)
def test_the_descheduler_balances_one_constraint_at_a_time(constraints, expected):
    plain = index(node("n1", "a"), node("n2", "b"), DESCHEDULER)
    assert told(web(*constraints), plain) == expected
    assert not [
        each for each in told(web(*constraints), plain, version=KubernetesVersion(1, 38)) if "every pod" in each
    ]
    plain.apply("DELETED", DESCHEDULER)
    assert told(web(*constraints), plain) == []


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("n1", "a", rack="r"), node("n2", "b", rack="r")], ""),
        ([node("n1", "a", rack="r"), node("n2", "b")], "; it also counts 1 node that lacks one of the two labels"),
        ([node("n1", "a"), node("n2", None, rack="r")], "; it also counts 2 nodes that lack one of the two labels"),
    ],
)
def test_the_descheduler_counts_nodes_that_lack_another_key(nodes, expected):
    found = examined(web("zone hard 1 app=web", "rack hard 1 app=web"), DENY, index=index(*nodes, DESCHEDULER)).findings
    [detail] = [each.finding.detail for each in found if each.finding.rule == RULE]
    assert detail.removeprefix(
        "the descheduler checks zone[0] and rack[1] separately: it can evict a pod for one of them even if no node"
        " satisfies both"
    ).startswith(expected)
    assert bool(expected) == ("in every run" in detail)


def test_each_template_is_asked_by_itself():
    hard = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spec = {"topologySpreadConstraints": [{**hard, "labelSelector": {"matchLabels": {"app": "web"}}}]}
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {}}
    groups = {"replicas": 2, "template": pods}, {"replicas": 9, "template": {**pods, "spec": spec}}
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"workerGroupSpecs": [{"groupName": str(n), **group} for n, group in enumerate(groups)]},
    }
    assert told(manifest) == ["warn hostname[0]: Karpenter asks for 9 nodes, 3 exist; use maxSkew: 3"]


def test_what_could_not_be_looked_at_is_said():
    manifest = web("hostname hard 1 app=web", replicas=6)
    assert said(RULE, manifest) == ["not evaluated: no cluster"]
    assert said(RULE, manifest, index=index()) == ["not evaluated: no nodes known"]
    assert said(RULE, web(), index=index()) == []
    partly = cluster("a: n1", labelled=KARPENTER)
    partly.mark_missing("deployments", "403 Forbidden")
    assert said(RULE, manifest, index=partly) == [
        "hostname[0]: Karpenter asks for 6 nodes, 1 exists",
        "not evaluated: deployments: 403 Forbidden",
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        web("hostname hard 1 app=web", replicas=9999),
        web("hostname soft 1 {}", replicas=9999),
        web("zone hard 1 app=web minDomains:2", "zone soft 1 app=web"),
        web("zone hard 1 app=web", "hostname hard 9 app=web"),
        web("zone hard 1 app=web nodeAffinityPolicy:Ignore", affinity=required(of_zone("a"))),
        web("zone hard 1 app=web", affinity=required(of_zone("a"), of_zone("b"))),
        web("zone soft 1 app=web"),
    ],
    ids=[
        "many replicas, hard on hosts",
        "many replicas, an empty selector",
        "minDomains beside a soft one",
        "zones beside hosts",
        "domains that pods exclude",
        "alternatives",
        "a closed zone, and nodes that are avoided",
    ],
)
def test_warnings_are_one_short_line(manifest):
    policy = Policy(rules={RULE: Mode.WARN})
    found = cluster("a: n1 | b: n2 | c: ~n3", labelled=KARPENTER)
    found.apply("ADDED", DESCHEDULER)
    found.apply("ADDED", tainted("n4", "b", "PreferNoSchedule"))
    lines = [line for line in decide(manifest, policy=policy, index=found).warnings if RULE in line]
    assert lines
    assert all(len(line) <= WARNING_CHARS and "…" not in line for line in lines)
