"""Custom resources of operators: constraint paths, and labels of their pods.

The operator adds the other fields of the pods, so rules judge only the constraints and these labels. The objects
created by the operator (StatefulSets, pods) are reviewed as well.

Source: the types and label functions of the projects that are named above each group.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.types import LabelSelector, SpreadConstraint
from webhook.core.api.well_known import APP_COMPONENT, APP_INSTANCE, APP_MANAGED_BY, APP_NAME, APP_PART_OF, HOSTNAME
from webhook.core.api.written_selector import has_conditions
from webhook.core.workloads.custom_kinds import CONSTRAINTS, Layout, Site

_Labels = tuple[tuple[str, str], ...]


def _made(*sites: Site, filled: str = "", inherits: bool = False) -> Layout:
    return Layout(sites, selector=None, whole=False, filled=filled, inherits=inherits)


def _bare(path: str, labels: _Labels = (), replicas: str | None = None) -> Site:
    """Return the `Site` of constraints outside any pod template.

    Args:
        path: The path of the mapping with the constraints.
        labels: The labels that the operator adds to the pods.
        replicas: The path of the number of pods.
    """
    return Site("", replicas, f"{path}.{CONSTRAINTS}", labels)


def _prometheus(name: str, own: str) -> Layout:
    labels = ((APP_NAME, name), *_INSTANCE, (APP_MANAGED_BY, "prometheus-operator"))
    site = _bare("spec", (*labels, (own, "{name}")), "spec.replicas")
    return _made(site, filled="prometheus")


def _strimzi(kind: str, *components: tuple[str, str]) -> Layout:
    """Return the layout of a Strimzi kind: where its objects have constraints.

    Args:
        kind: The value of the pods' label ``strimzi.io/kind``.
        components: For each component, the path of the mapping with the constraints, and the suffix of the pods' label
            ``strimzi.io/name``.
    """
    labels = (("strimzi.io/cluster", "{name}"), ("strimzi.io/kind", kind))
    return _made(*(_bare(path, (*labels, ("strimzi.io/name", f"{{name}}-{suffix}"))) for path, suffix in components))


def _elastic(owner: str, *templates: str) -> Layout:
    labels = ((owner, "{name}"),)
    return _made(*(Site(template, labels=labels) for template in templates))


def _redis(name: str, setup: str, role: str) -> _Labels:
    return (("app", name), ("redis_setup_type", setup), ("role", role))


def _failover(part: str) -> Site:
    labels = ((APP_NAME, "{name}"), (APP_COMPONENT, part), (APP_PART_OF, "redis-failover"))
    return _bare(f"spec.{part}", labels, f"spec.{part}.replicas")


def _of_percona(name: str, path: str, component: str = "", replicas: str | None = None) -> Site:
    labels = ((APP_NAME, name), *_INSTANCE)
    own = ((APP_COMPONENT, component),) if component else ()
    return _bare(path, (*labels, *own), replicas)


_INSTANCE: _Labels = ((APP_INSTANCE, "{name}"),)
_MONGODB = "percona-server-mongodb"
_PXC = "percona-xtradb-cluster"
_CRUNCHY: _Labels = (("postgres-operator.crunchydata.com/cluster", "{name}"),)
_VMI = "spec.template"

OPERATOR_LAYOUTS: Mapping[tuple[str, str], Layout] = {
    # github.com/cloudnative-pg/cloudnative-pg: api/v1/cluster_types.go, pkg/specs/pods.go buildInstance,
    # pkg/specs/pgbouncer/deployments.go.
    ("postgresql.cnpg.io", "Cluster"): _made(
        _bare("spec", (("cnpg.io/cluster", "{name}"), ("cnpg.io/podRole", "instance")), "spec.instances")
    ),
    ("postgresql.cnpg.io", "Pooler"): _made(
        Site("spec.template", "spec.instances", labels=(("cnpg.io/poolerName", "{name}"),))
    ),
    # github.com/CrunchyData/postgres-operator: internal/controller/postgrescluster instance.go, pgbouncer.go,
    # pgadmin.go, pgbackrest.go.
    ("postgres-operator.crunchydata.com", "PostgresCluster"): _made(
        _bare("spec.instances[*]", (*_CRUNCHY, ("postgres-operator.crunchydata.com/data", "postgres")), "replicas"),
        _bare("spec.proxy.pgBouncer", _CRUNCHY, "spec.proxy.pgBouncer.replicas"),
        _bare("spec.userInterface.pgAdmin", _CRUNCHY),
        _bare("spec.backups.pgbackrest.repoHost", _CRUNCHY),
    ),
    # github.com/zalando/postgres-operator: pkg/cluster/k8sres.go generateTopologySpreadConstraints. Its labels come
    # from the operator's configuration.
    ("acid.zalan.do", "postgresql"): _made(_bare("spec"), filled="zalando"),
    # github.com/prometheus-operator/prometheus-operator: pkg/apis/monitoring/v1, makeSelectorLabels of pkg/prometheus,
    # pkg/alertmanager and pkg/thanos, pkg/prometheus/common.go MakeK8sTopologySpreadConstraint.
    ("monitoring.coreos.com", "Prometheus"): _prometheus("prometheus", "operator.prometheus.io/name"),
    ("monitoring.coreos.com", "PrometheusAgent"): _prometheus("prometheus-agent", "operator.prometheus.io/name"),
    ("monitoring.coreos.com", "Alertmanager"): _prometheus("alertmanager", "alertmanager"),
    ("monitoring.coreos.com", "ThanosRuler"): _prometheus("thanos-ruler", "thanos-ruler"),
    # github.com/strimzi/strimzi-kafka-operator: the templates of io.strimzi.api.kafka.model, Labels.java
    # generateDefaultLabels, KafkaPool.java.
    ("kafka.strimzi.io", "Kafka"): _strimzi(
        "Kafka",
        ("spec.kafka.template.pod", "kafka"),
        ("spec.zookeeper.template.pod", "zookeeper"),
        ("spec.entityOperator.template.pod", "entity-operator"),
        ("spec.cruiseControl.template.pod", "cruise-control"),
        ("spec.kafkaExporter.template.pod", "kafka-exporter"),
    ),
    ("kafka.strimzi.io", "KafkaNodePool"): _made(
        _bare("spec.template.pod", (("strimzi.io/pool-name", "{name}"), ("strimzi.io/kind", "Kafka")), "spec.replicas")
    ),
    ("kafka.strimzi.io", "KafkaConnect"): _strimzi("KafkaConnect", ("spec.template.pod", "connect")),
    ("kafka.strimzi.io", "KafkaMirrorMaker2"): _strimzi("KafkaMirrorMaker2", ("spec.template.pod", "mirrormaker2")),
    ("kafka.strimzi.io", "KafkaBridge"): _strimzi("KafkaBridge", ("spec.template.pod", "bridge")),
    # github.com/elastic/cloud-on-k8s: pkg/apis, the labels of pkg/controller.
    ("elasticsearch.k8s.elastic.co", "Elasticsearch"): _made(
        Site(
            "spec.nodeSets[*].podTemplate", "count", labels=(("elasticsearch.k8s.elastic.co/cluster-name", "{name}"),)
        ),
        filled="elasticsearch",
    ),
    ("kibana.k8s.elastic.co", "Kibana"): _elastic("kibana.k8s.elastic.co/name", "spec.podTemplate"),
    ("apm.k8s.elastic.co", "ApmServer"): _elastic("apm.k8s.elastic.co/name", "spec.podTemplate"),
    ("maps.k8s.elastic.co", "ElasticMapsServer"): _elastic("maps.k8s.elastic.co/name", "spec.podTemplate"),
    ("enterprisesearch.k8s.elastic.co", "EnterpriseSearch"): _elastic(
        "enterprisesearch.k8s.elastic.co/name", "spec.podTemplate"
    ),
    ("logstash.k8s.elastic.co", "Logstash"): _elastic("logstash.k8s.elastic.co/name", "spec.podTemplate"),
    ("agent.k8s.elastic.co", "Agent"): _elastic(
        "agent.k8s.elastic.co/name",
        *("spec.deployment.podTemplate", "spec.daemonSet.podTemplate", "spec.statefulSet.podTemplate"),
    ),
    ("beat.k8s.elastic.co", "Beat"): _elastic(
        "beat.k8s.elastic.co/name", "spec.deployment.podTemplate", "spec.daemonSet.podTemplate"
    ),
    # github.com/kubevirt/api: core/v1/types.go, pool/v1beta1/types.go. Each virtual machine has one pod.
    ("kubevirt.io", "VirtualMachine"): _made(Site(_VMI)),
    ("kubevirt.io", "VirtualMachineInstance"): _made(_bare("spec")),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _made(Site(_VMI, "spec.replicas")),
    ("pool.kubevirt.io", "VirtualMachinePool"): _made(
        Site("spec.virtualMachineTemplate.spec.template", "spec.replicas")
    ),
    # github.com/OT-CONTAINER-KIT/redis-operator: api, internal/k8sutils labels.go, redis-cluster.go,
    # redis-replication.go, redis-sentinel.go. Its standalone Redis has no constraints.
    ("redis.redis.opstreelabs.in", "RedisCluster"): _made(
        _bare("spec.redisLeader", _redis("{name}-leader", "cluster", "leader")),
        _bare("spec.redisFollower", _redis("{name}-follower", "cluster", "follower")),
        inherits=True,
    ),
    ("redis.redis.opstreelabs.in", "RedisReplication"): _made(
        _bare("spec", _redis("{name}", "replication", "replication"), "spec.clusterSize"),
        _bare("spec.sentinel"),
        inherits=True,
    ),
    ("redis.redis.opstreelabs.in", "RedisSentinel"): _made(
        _bare("spec", _redis("{name}-sentinel", "sentinel", "sentinel"), "spec.clusterSize"),
        inherits=True,
    ),
    # github.com/spotahome/redis-operator: operator/redisfailover/service generator.go, client.go.
    ("databases.spotahome.com", "RedisFailover"): _made(_failover("redis"), _failover("sentinel")),
    # github.com/rabbitmq/cluster-operator: api/v1beta1/rabbitmqcluster_types.go, internal/metadata/label.go.
    ("rabbitmq.com", "RabbitmqCluster"): _made(
        Site(
            "spec.override.statefulSet.spec.template",
            "spec.replicas",
            labels=((APP_NAME, "{name}"), (APP_COMPONENT, "rabbitmq"), (APP_PART_OF, "rabbitmq")),
        )
    ),
    # github.com/mongodb/mongodb-kubernetes-operator: api/v1, controllers/construct/mongodbstatefulset.go. The label app
    # is the name of a service, and the object may change it.
    ("mongodbcommunity.mongodb.com", "MongoDBCommunity"): _made(Site("spec.statefulSet.spec.template", "spec.members")),
    # github.com/percona/percona-server-mongodb-operator: pkg/psmdb/statefulset.go PodTopologySpreadConstraints,
    # pkg/naming/labels.go, pkg/apis/psmdb/v1/psmdb_defaults.go.
    ("psmdb.percona.com", "PerconaServerMongoDB"): _made(
        _of_percona(_MONGODB, "spec.replsets[*]", replicas="size"),
        _of_percona(_MONGODB, "spec.replsets[*].nonvoting"),
        _of_percona(_MONGODB, "spec.replsets[*].hidden"),
        _of_percona(_MONGODB, "spec.replsets[*].arbiter"),
        _of_percona(_MONGODB, "spec.sharding.configsvrReplSet", replicas="spec.sharding.configsvrReplSet.size"),
        _of_percona(_MONGODB, "spec.sharding.mongos", "mongos", "spec.sharding.mongos.size"),
        filled="percona-mongodb",
    ),
    # github.com/percona/percona-xtradb-cluster-operator: pkg/pxc/statefulset.go PodTopologySpreadConstraints,
    # pkg/naming/labels.go.
    ("pxc.percona.com", "PerconaXtraDBCluster"): _made(
        _of_percona(_PXC, "spec.pxc", "pxc", "spec.pxc.size"),
        _of_percona(_PXC, "spec.haproxy", "haproxy", "spec.haproxy.size"),
        _of_percona(_PXC, "spec.proxysql", "proxysql", "spec.proxysql.size"),
        filled="percona-xtradb",
    ),
    # github.com/minio/operator: pkg/resources/statefulsets/minio-statefulset.go, pkg/apis/minio.min.io/v2.
    ("minio.min.io", "Tenant"): _made(_bare("spec.pools[*]", (("v1.min.io/tenant", "{name}"),), "servers")),
    # github.com/open-telemetry/opentelemetry-operator: apis, internal/manifests/manifestutils/labels.go. The label
    # app.kubernetes.io/instance consists of namespace and name.
    ("opentelemetry.io", "OpenTelemetryCollector"): _made(
        _bare(
            "spec",
            (
                (APP_MANAGED_BY, "opentelemetry-operator"),
                (APP_PART_OF, "opentelemetry"),
                (APP_COMPONENT, "opentelemetry-collector"),
            ),
            "spec.replicas",
        ),
        _bare("spec.targetAllocator"),
    ),
}


class OperatorConstraint(SpreadConstraint, frozen=True):
    """A Prometheus operator's constraint, which may add labels to its selector."""

    additional_label_selectors: str | None = None


class SiblingFields(Struct, frozen=True, rename="camel"):
    """The fields beside a pod template with an effect on the template's constraints.

    Attributes:
        zone_awareness: The field zoneAwareness. None if absent.
    """

    zone_awareness: Mapping[str, object] | None = None


_Fill = Callable[[OperatorConstraint, Mapping[str, str], SiblingFields], SpreadConstraint]


def _prometheus_labels(constraint: OperatorConstraint, labels: Mapping[str, str], _: SiblingFields) -> SpreadConstraint:
    if constraint.additional_label_selectors is None:
        return constraint
    selector = constraint.selector or LabelSelector()
    return replace(
        constraint, label_selector=replace(selector, match_labels={**(selector.match_labels or {}), **labels})
    )


def _zone_aware(constraint: OperatorConstraint, labels: Mapping[str, str], siblings: SiblingFields) -> SpreadConstraint:
    """Return the constraint with the pod labels as selector.

    Only if the operator's zoneAwareness is on, and the selector has no conditions. The operator itself chooses the
    topology key.
    """
    selector = constraint.selector
    if siblings.zone_awareness is None or has_conditions(selector):
        return constraint
    return replace(constraint, label_selector=LabelSelector(match_labels=labels))


def _percona(when_unsatisfiable: str) -> _Fill:
    def fill(constraint: OperatorConstraint, labels: Mapping[str, str], _siblings: SiblingFields) -> SpreadConstraint:
        selector = constraint.label_selector
        if constraint.selector is None and constraint.match_label_keys is None:
            selector = LabelSelector(match_labels=labels)
        return replace(
            constraint,
            max_skew=constraint.max_skew or 1,
            topology_key=constraint.topology_key or HOSTNAME,
            when_unsatisfiable=constraint.when_unsatisfiable or when_unsatisfiable,
            label_selector=selector,
        )

    return fill


def _zalando(constraint: OperatorConstraint, _labels: Mapping[str, str], _siblings: SiblingFields) -> SpreadConstraint:
    """Replace the selector by the operator's labels."""
    return replace(constraint, label_selector=LabelSelector(match_labels={"cluster-name": ""}))


FILLS: Mapping[str, _Fill] = {
    "prometheus": _prometheus_labels,
    "elasticsearch": _zone_aware,
    "percona-mongodb": _percona("DoNotSchedule"),
    "percona-xtradb": _percona("ScheduleAnyway"),
    "zalando": _zalando,
}
"""Functions to complete constraints like the operator, by `Layout.filled`. They get the pods' labels."""
