"""Resources of operators: where each has its constraints, which labels its pods get, what the operator fills in."""

import json

import pytest

from webhook.core.api.types import LabelSelector
from webhook.core.api.version import RECORDED
from webhook.core.context import Context
from webhook.core.policy.policy import Policy
from webhook.core.review.examination import examine
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.core.workloads.kind_fields import constraint_paths, has_template
from webhook.core.workloads.kinds import KINDS
from webhook.core.workloads.operators import FILLS, OPERATOR_LAYOUTS
from webhook.core.workloads.reading import read_workload

ZONE = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
INSTANCE = {"app.kubernetes.io/instance": "db"}
PSMDB = {"app.kubernetes.io/name": "percona-server-mongodb", **INSTANCE}
PXC = {"app.kubernetes.io/name": "percona-xtradb-cluster", **INSTANCE}
CRUNCHY = {"postgres-operator.crunchydata.com/cluster": "db"}
FAILOVER = {"app.kubernetes.io/name": "db", "app.kubernetes.io/part-of": "redis-failover"}


def strimzi(kind, suffix):
    return {"strimzi.io/cluster": "db", "strimzi.io/kind": kind, "strimzi.io/name": f"db-{suffix}"}


def prometheus(name, own):
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "prometheus-operator"}
    return {**labels, **INSTANCE, own: "db"}


def elastic(key):
    return {f"{key}.k8s.elastic.co/{'cluster-name' if key == 'elasticsearch' else 'name'}": "db"}


def redis(name, setup, role):
    return {"app": name, "redis_setup_type": setup, "role": role}


AT = "topologySpreadConstraints"
# Group, kind, where the constraints stand, the labels of the pods.
ROWS = [
    ("postgresql.cnpg.io", "Cluster", f"spec.{AT}", {"cnpg.io/cluster": "db", "cnpg.io/podRole": "instance"}),
    ("postgresql.cnpg.io", "Pooler", f"spec.template.spec.{AT}", {"cnpg.io/poolerName": "db"}),
    (
        *("postgres-operator.crunchydata.com", "PostgresCluster", f"spec.instances[*].{AT}"),
        {**CRUNCHY, "postgres-operator.crunchydata.com/data": "postgres"},
    ),
    ("postgres-operator.crunchydata.com", "PostgresCluster", f"spec.proxy.pgBouncer.{AT}", CRUNCHY),
    ("postgres-operator.crunchydata.com", "PostgresCluster", f"spec.userInterface.pgAdmin.{AT}", CRUNCHY),
    ("postgres-operator.crunchydata.com", "PostgresCluster", f"spec.backups.pgbackrest.repoHost.{AT}", CRUNCHY),
    ("acid.zalan.do", "postgresql", f"spec.{AT}", {}),
    ("monitoring.coreos.com", "Prometheus", f"spec.{AT}", prometheus("prometheus", "operator.prometheus.io/name")),
    (
        *("monitoring.coreos.com", "PrometheusAgent", f"spec.{AT}"),
        prometheus("prometheus-agent", "operator.prometheus.io/name"),
    ),
    ("monitoring.coreos.com", "Alertmanager", f"spec.{AT}", prometheus("alertmanager", "alertmanager")),
    ("monitoring.coreos.com", "ThanosRuler", f"spec.{AT}", prometheus("thanos-ruler", "thanos-ruler")),
    ("kafka.strimzi.io", "Kafka", f"spec.kafka.template.pod.{AT}", strimzi("Kafka", "kafka")),
    ("kafka.strimzi.io", "Kafka", f"spec.zookeeper.template.pod.{AT}", strimzi("Kafka", "zookeeper")),
    ("kafka.strimzi.io", "Kafka", f"spec.entityOperator.template.pod.{AT}", strimzi("Kafka", "entity-operator")),
    ("kafka.strimzi.io", "Kafka", f"spec.cruiseControl.template.pod.{AT}", strimzi("Kafka", "cruise-control")),
    ("kafka.strimzi.io", "Kafka", f"spec.kafkaExporter.template.pod.{AT}", strimzi("Kafka", "kafka-exporter")),
    (
        *("kafka.strimzi.io", "KafkaNodePool", f"spec.template.pod.{AT}"),
        {"strimzi.io/pool-name": "db", "strimzi.io/kind": "Kafka"},
    ),
    ("kafka.strimzi.io", "KafkaConnect", f"spec.template.pod.{AT}", strimzi("KafkaConnect", "connect")),
    ("kafka.strimzi.io", "KafkaMirrorMaker2", f"spec.template.pod.{AT}", strimzi("KafkaMirrorMaker2", "mirrormaker2")),
    ("kafka.strimzi.io", "KafkaBridge", f"spec.template.pod.{AT}", strimzi("KafkaBridge", "bridge")),
    (
        *("elasticsearch.k8s.elastic.co", "Elasticsearch", f"spec.nodeSets[*].podTemplate.spec.{AT}"),
        elastic("elasticsearch"),
    ),
    ("kibana.k8s.elastic.co", "Kibana", f"spec.podTemplate.spec.{AT}", elastic("kibana")),
    ("apm.k8s.elastic.co", "ApmServer", f"spec.podTemplate.spec.{AT}", elastic("apm")),
    ("maps.k8s.elastic.co", "ElasticMapsServer", f"spec.podTemplate.spec.{AT}", elastic("maps")),
    (
        *("enterprisesearch.k8s.elastic.co", "EnterpriseSearch", f"spec.podTemplate.spec.{AT}"),
        elastic("enterprisesearch"),
    ),
    ("logstash.k8s.elastic.co", "Logstash", f"spec.podTemplate.spec.{AT}", elastic("logstash")),
    ("agent.k8s.elastic.co", "Agent", f"spec.deployment.podTemplate.spec.{AT}", elastic("agent")),
    ("agent.k8s.elastic.co", "Agent", f"spec.daemonSet.podTemplate.spec.{AT}", elastic("agent")),
    ("agent.k8s.elastic.co", "Agent", f"spec.statefulSet.podTemplate.spec.{AT}", elastic("agent")),
    ("beat.k8s.elastic.co", "Beat", f"spec.deployment.podTemplate.spec.{AT}", elastic("beat")),
    ("beat.k8s.elastic.co", "Beat", f"spec.daemonSet.podTemplate.spec.{AT}", elastic("beat")),
    ("kubevirt.io", "VirtualMachine", f"spec.template.spec.{AT}", {}),
    ("kubevirt.io", "VirtualMachineInstance", f"spec.{AT}", {}),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet", f"spec.template.spec.{AT}", {}),
    ("pool.kubevirt.io", "VirtualMachinePool", f"spec.virtualMachineTemplate.spec.template.spec.{AT}", {}),
    ("redis.redis.opstreelabs.in", "RedisCluster", f"spec.redisLeader.{AT}", redis("db-leader", "cluster", "leader")),
    (
        *("redis.redis.opstreelabs.in", "RedisCluster", f"spec.redisFollower.{AT}"),
        redis("db-follower", "cluster", "follower"),
    ),
    (
        *("redis.redis.opstreelabs.in", "RedisReplication", f"spec.{AT}"),
        redis("db", "replication", "replication"),
    ),
    ("redis.redis.opstreelabs.in", "RedisReplication", f"spec.sentinel.{AT}", {}),
    ("redis.redis.opstreelabs.in", "RedisSentinel", f"spec.{AT}", redis("db-sentinel", "sentinel", "sentinel")),
    (
        "databases.spotahome.com",
        "RedisFailover",
        f"spec.redis.{AT}",
        {**FAILOVER, "app.kubernetes.io/component": "redis"},
    ),
    (
        *("databases.spotahome.com", "RedisFailover", f"spec.sentinel.{AT}"),
        {**FAILOVER, "app.kubernetes.io/component": "sentinel"},
    ),
    (
        *("rabbitmq.com", "RabbitmqCluster", f"spec.override.statefulSet.spec.template.spec.{AT}"),
        {
            "app.kubernetes.io/name": "db",
            "app.kubernetes.io/component": "rabbitmq",
            "app.kubernetes.io/part-of": "rabbitmq",
        },
    ),
    ("mongodbcommunity.mongodb.com", "MongoDBCommunity", f"spec.statefulSet.spec.template.spec.{AT}", {}),
    ("psmdb.percona.com", "PerconaServerMongoDB", f"spec.replsets[*].{AT}", PSMDB),
    ("psmdb.percona.com", "PerconaServerMongoDB", f"spec.replsets[*].nonvoting.{AT}", PSMDB),
    ("psmdb.percona.com", "PerconaServerMongoDB", f"spec.replsets[*].hidden.{AT}", PSMDB),
    ("psmdb.percona.com", "PerconaServerMongoDB", f"spec.replsets[*].arbiter.{AT}", PSMDB),
    ("psmdb.percona.com", "PerconaServerMongoDB", f"spec.sharding.configsvrReplSet.{AT}", PSMDB),
    (
        *("psmdb.percona.com", "PerconaServerMongoDB", f"spec.sharding.mongos.{AT}"),
        {**PSMDB, "app.kubernetes.io/component": "mongos"},
    ),
    ("pxc.percona.com", "PerconaXtraDBCluster", f"spec.pxc.{AT}", {**PXC, "app.kubernetes.io/component": "pxc"}),
    (
        *("pxc.percona.com", "PerconaXtraDBCluster", f"spec.haproxy.{AT}"),
        {**PXC, "app.kubernetes.io/component": "haproxy"},
    ),
    (
        *("pxc.percona.com", "PerconaXtraDBCluster", f"spec.proxysql.{AT}"),
        {**PXC, "app.kubernetes.io/component": "proxysql"},
    ),
    ("minio.min.io", "Tenant", f"spec.pools[*].{AT}", {"v1.min.io/tenant": "db"}),
    (
        *("opentelemetry.io", "OpenTelemetryCollector", f"spec.{AT}"),
        {
            "app.kubernetes.io/managed-by": "opentelemetry-operator",
            "app.kubernetes.io/part-of": "opentelemetry",
            "app.kubernetes.io/component": "opentelemetry-collector",
        },
    ),
    ("opentelemetry.io", "OpenTelemetryCollector", f"spec.targetAllocator.{AT}", {}),
    ("", "PodTemplate", f"template.spec.{AT}", {}),
]
IDS = [f"{kind} {path}" for _, kind, path, _ in ROWS]
RABBIT = "RabbitmqCluster spec.override.statefulSet.spec.template.spec.topologySpreadConstraints"


def operated(group, kind, path, constraint, **meta):
    """A resource with one constraint where this kind has it."""
    value = [constraint]
    for step in reversed(path.split(".")):
        value = {step.removesuffix("[*]"): [value] if step.endswith("[*]") else value}
    return {"apiVersion": f"{group}/v1".removeprefix("/"), "kind": kind, "metadata": {"name": "db", **meta}, **value}


def selecting(labels, **fields):
    return {**ZONE, "labelSelector": {"matchLabels": labels}, **fields}


def findings(value, policy=None):
    return [
        each.finding for each in examine(value, Context(policy=policy or Policy(), version=RECORDED, now="")).findings
    ]


def rules(value, policy=None):
    return [each.rule for each in findings(value, policy)]


def test_every_place_of_every_kind_has_a_row_here():
    parts = {**OPERATOR_LAYOUTS, **{kind: row.layout for kind, row in KINDS.items() if not row.layout.whole}}
    assert {(group, kind, path) for group, kind, path, _ in ROWS} == {
        (*key, site.constraints) for key, layout in parts.items() for site in layout.sites
    }
    assert not OPERATOR_LAYOUTS.keys() & KINDS.keys()
    assert {layout.filled for layout in OPERATOR_LAYOUTS.values()} == {"", *FILLS}


@pytest.mark.parametrize(("group", "kind", "path", "labels"), ROWS, ids=IDS)
def test_what_is_read(group, kind, path, labels):
    value = operated(group, kind, path, selecting({"x": "y"}))
    for raw in (value, json.dumps(value).encode()):
        workload = read_workload(raw)
        [template] = workload.templates
        assert template.constraints_path == path.replace("[*]", "[0]")
        assert template.pod.labels == labels
        assert not workload.whole
    assert not has_template(value["apiVersion"], kind), "what its operator makes is looked at too"
    assert path in constraint_paths(value["apiVersion"], kind)


@pytest.mark.parametrize(("group", "kind", "path", "labels"), ROWS, ids=IDS)
def test_what_is_said(group, kind, path, labels):
    right = operated(group, kind, path, selecting(labels or {"app": "db"}))
    assert rules(right) == []
    wrong = operated(group, kind, path, {**selecting(labels or {"app": "db"}), "maxSkew": -1})
    [finding] = findings(wrong)
    assert (finding.rule, finding.path) == ("max-skew", f"{path.replace('[*]', '[0]')}[0].maxSkew")
    typed = operated(group, kind, path, {**ZONE, "maxSkew": "x"})
    [finding] = findings(typed)
    assert (finding.rule, finding.path) == ("wrong-type", f"{path.replace('[*]', '[0]')}[0].maxSkew")
    for key in labels:
        other = operated(group, kind, path, selecting({key: "another"}))
        expected = [] if kind == "postgresql" else ["selector-not-self"]
        assert rules(other) == expected, key
    unknown = examine(
        operated(group, kind, path, selecting({"team": "a"})),
        Context(policy=Policy(), version=RECORDED, now=""),
    )
    assert unknown.findings == ()
    gaps = {gap.rule: gap.missing for gap in unknown.not_evaluated}
    assert gaps["selector-not-self"] == "labels that controllers add to the pods"
    assert gaps["selector-too-wide"] == "an operator completes the pods; check the objects it creates"
    assert gaps["replicas-do-not-fit"] == "an operator completes the pods; check the objects it creates"


FILLED = {"postgresql", "PerconaServerMongoDB", "PerconaXtraDBCluster"}


@pytest.mark.parametrize(("group", "kind", "path"), [row[:3] for row in ROWS], ids=IDS)
def test_a_constraint_without_a_selector(group, kind, path):
    said = rules(operated(group, kind, path, ZONE))
    assert said == ([] if kind in FILLED else ["selector-null"])


@pytest.mark.parametrize("kind", ["Prometheus", "PrometheusAgent"])
@pytest.mark.parametrize("adds", ["OnResource", "OnShard"])
def test_the_prometheus_operator_adds_its_labels_where_it_is_asked_to(kind, adds):
    path = "spec.topologySpreadConstraints"
    constraint = {**ZONE, "additionalLabelSelectors": adds}
    assert rules(operated("monitoring.coreos.com", kind, path, constraint)) == []
    assert rules(operated("monitoring.coreos.com", kind, path, ZONE)) == ["selector-null"]
    [template] = read_workload(operated("monitoring.coreos.com", kind, path, constraint)).templates
    [read] = template.pod.pod_spec.constraints
    assert read.label_selector == LabelSelector(match_labels=template.pod.labels)


def test_what_the_prometheus_operator_would_not_take_is_left_out():
    path = "spec.topologySpreadConstraints"
    assert rules(operated("monitoring.coreos.com", "Prometheus", path, {**ZONE, "additionalLabelSelectors": 5})) == [
        "selector-null"
    ]


def test_elasticsearch_fills_selectors_beside_zone_awareness_only():
    path = "spec.nodeSets[*].podTemplate.spec.topologySpreadConstraints"
    plain = operated("elasticsearch.k8s.elastic.co", "Elasticsearch", path, ZONE)
    aware = operated("elasticsearch.k8s.elastic.co", "Elasticsearch", path, ZONE)
    aware["spec"]["nodeSets"][0]["zoneAwareness"] = {}
    assert rules(plain) == ["selector-null"]
    assert rules(aware) == []
    own = operated("elasticsearch.k8s.elastic.co", "Elasticsearch", path, selecting({"app": "x"}))
    own["spec"]["nodeSets"][0]["zoneAwareness"] = {}
    [template] = read_workload(own).templates
    assert template.pod.pod_spec.constraints[0].label_selector.match_labels == {"app": "x"}


@pytest.mark.parametrize(
    ("group", "kind", "path", "unsatisfiable"),
    [
        ("psmdb.percona.com", "PerconaServerMongoDB", "spec.replsets[*]", "DoNotSchedule"),
        ("pxc.percona.com", "PerconaXtraDBCluster", "spec.pxc", "ScheduleAnyway"),
    ],
)
def test_percona_fills_in_what_is_missing(group, kind, path, unsatisfiable):
    value = operated(group, kind, f"{path}.topologySpreadConstraints", {})
    assert rules(value) == []
    [template] = read_workload(value).templates
    [read] = template.pod.pod_spec.constraints
    assert (read.max_skew, read.topology_key, read.when_unsatisfiable) == (1, "kubernetes.io/hostname", unsatisfiable)
    keyed = operated(group, kind, f"{path}.topologySpreadConstraints", {"matchLabelKeys": ["a"]})
    assert "match-label-keys" in rules(keyed), "no selector is filled in beside matchLabelKeys"


def test_pods_inherit_the_labels_of_a_redis():
    value = operated(
        *("redis.redis.opstreelabs.in", "RedisReplication", "spec.topologySpreadConstraints"),
        selecting({"app": "cache", "team": "a"}),
        labels={"app": "cache", "team": "a"},
    )
    assert rules(value) == []


def test_labels_of_a_template_come_before_those_of_the_operator():
    value = operated("rabbitmq.com", "RabbitmqCluster", ROWS[IDS.index(RABBIT)][2], selecting({"app": "mq"}))
    value["spec"]["override"]["statefulSet"]["spec"]["template"]["metadata"] = {"labels": {"app": "mq"}}
    assert rules(value) == []


def test_what_stands_in_the_index_does_not_count_a_part_of_a_pod():
    """A rule that would have to know the whole pod is not asked."""
    value = operated(
        "postgresql.cnpg.io", "Cluster", "spec.topologySpreadConstraints", selecting({"cnpg.io/cluster": "db"})
    )
    value["spec"]["instances"] = 3
    workload = read_workload(value)
    assert (workload.replicas, workload.templates[0].replicas) == (3, 3)
    examined = examine(value, Context(policy=Policy(), version=RECORDED, now=""))
    gaps = {gap.rule: gap.missing for gap in examined.not_evaluated}
    assert gaps["replicas-can-get-stuck"] == "an operator completes the pods; check the objects it creates"
    nothing = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "db"}, "spec": {}}
    assert examine(nothing, Context(policy=Policy(), version=RECORDED, now="")).not_evaluated == ()


DB = EmbeddedKind(
    api_version="db.example.com/v1",
    kind="Db",
    constraints_path="spec.parts[*].spread",
    replicas_path="size",
    pod_labels=(("db.example.com/name", "{name}"),),
)


def test_a_configured_path_of_constraints():
    policy = Policy(workloads=(DB,))
    value = operated("db.example.com", "Db", "spec.parts[*].spread", selecting({"db.example.com/name": "db"}))
    value["spec"]["parts"][0]["size"] = 3
    assert rules(value, policy) == []
    assert read_workload(value, (DB,)).replicas == 3
    other = operated("db.example.com", "Db", "spec.parts[*].spread", selecting({"db.example.com/name": "other"}))
    [finding] = findings(other, policy)
    assert finding.path == "spec.parts[0].spread[0].labelSelector"
    assert finding.summary.startswith(
        "zone[0] counts db.example.com/name=other but the pods have db.example.com/name=db"
    )
    assert not has_template("db.example.com/v1", "Db", (DB,))
