"""Where a command's cluster comes from, and what is said where it cannot be read."""

import json

import pytest
from build import pod_names
from cluster.api import NOT_INSTALLED, FakeApi, cut, refuse

from webhook.cli.cluster_source import read_cluster
from webhook.cli.live_cluster import ClusterSelection
from webhook.core.api.version import KubernetesVersion
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import Owner
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import EmbeddedKind

MANIFEST = b"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
"""


@pytest.fixture(name="api")
def _api():
    with FakeApi() as api:
        for name, zone in (("n1", "a"), ("n2", "b")):
            api.put("nodes", name, metadata={"labels": {"topology.kubernetes.io/zone": zone}})
        api.put("namespaces", "shop", metadata={"labels": {"team": "web"}})
        api.put("pods", "web-0", "shop", spec={"nodeName": "n1"})
        yield api


@pytest.fixture(name="faulty")
def _faulty(monkeypatch):
    """The name of pods, services and autoscalers that no index can take; no real object is known to be like that."""
    change = ClusterIndex.change

    def faulty(self, event, value):
        if (value.meta if isinstance(value, Owner) else value.metadata).name == "faulty" and event != "DELETED":
            raise OverflowError("too\nlarge")
        change(self, event, value)

    monkeypatch.setattr(ClusterIndex, "change", faulty)
    return "faulty"


def known(api, folder, policy=None, **given):
    counted = []
    file = api.kubeconfig(folder)
    return read_cluster(ClusterSelection(kubeconfig=file, **given), policy or Policy(), counted.append), counted


class TestALiveCluster:
    def test_the_index_holds_what_the_feed_would_read(self, api, tmp_path, capsys):
        found, counted = known(api, tmp_path)
        index = found.index

        assert sorted(node.name for node in index.nodes.all()) == ["n1", "n2"]
        assert index.namespaces.labels("shop")["team"] == "web"
        assert pod_names(index, "shop") == ("web-0",)
        assert index.lacks("nodes", "pods") == ""
        assert (found.source, found.version, found.namespace, found.missing) == (
            "cluster x",
            KubernetesVersion(1, 34, 2),
            "default",
            (),
        )
        assert counted[-1] == 4
        assert capsys.readouterr().err == ""

    def test_what_cannot_be_decoded_is_named_and_left_out(self, api, tmp_path, capsys):
        api.put("pods", "broken", "shop", spec={"nodeName": 5})
        api.put("nodes", "broken", metadata={"labels": 5})
        index = known(api, tmp_path)[0].index
        assert (pod_names(index, "shop"), len(index.nodes.all())) == (("web-0",), 2)
        assert sorted(capsys.readouterr().err.splitlines()) == [
            "cluster x: note: Node broken: Expected `object | null`, got `int` - at `$.metadata.labels`: left out",
            "cluster x: note: Pod shop/broken: Expected `str | null`, got `int` - at `$.spec.nodeName`: left out",
        ]

    def test_what_cannot_be_applied_is_named_and_left_out(self, api, tmp_path, capsys, faulty):
        api.put("pods", faulty, "shop", spec={"nodeName": "n1"})
        assert pod_names(known(api, tmp_path)[0].index, "shop") == ("web-0",)
        assert capsys.readouterr().err == f"cluster x: note: Pod shop/{faulty}: OverflowError: too large: left out\n"

    def test_it_is_only_read(self, api, tmp_path):
        known(api, tmp_path)
        assert {request.what for request in api.requests} == {"list", "other"}
        assert all("watch" not in request.query for request in api.requests)

    def test_a_kind_that_may_not_be_read_is_said_and_lacks(self, api, tmp_path, capsys):
        api.forbidden |= {"nodes", "horizontalpodautoscalers"}
        found, _ = known(api, tmp_path)

        assert found.index.lacks("pods", "nodes") == "nodes: 403 Forbidden"
        assert found.missing == (
            "nodes: 403 Forbidden: rules about nodes and domains are not evaluated",
            "horizontalpodautoscalers: 403 Forbidden: rules use the workload's replicas, not the autoscaler's maximum",
        )
        assert capsys.readouterr().err.splitlines() == [f"cluster x: note: {line}" for line in found.missing]

    def test_a_configured_kind_that_the_server_lacks_is_said(self, api, tmp_path):
        thing = EmbeddedKind(api_version="argoproj.io/v1alpha1", kind="Rollout", template_path="spec.template")
        found, _ = known(api, tmp_path, Policy(workloads=(thing,)))
        assert found.missing == ("Rollout.argoproj.io: 404 Not Found: answers that need them are unknown",)

    def test_the_context_has_a_name_and_a_namespace(self, api, tmp_path):
        file = tmp_path / "kubeconfig"
        api.kubeconfig(tmp_path)
        content = json.loads(file.read_text())
        content["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "u", "namespace": "shop"}})
        del content["current-context"]
        file.write_text(json.dumps(content))
        found = read_cluster(ClusterSelection(kubeconfig=str(file), context="y", user="jane"), Policy(), print)

        assert (found.source, found.namespace) == ("cluster y", "shop")
        assert api.requests[0].headers["Impersonate-User"] == "jane"

    def test_kubectls_own_variable_names_the_file(self, api, tmp_path, monkeypatch):
        monkeypatch.setenv("KUBECONFIG", api.kubeconfig(tmp_path))
        assert read_cluster(ClusterSelection(cluster=True), Policy(), print).source == "cluster x"

    def test_in_a_pod_the_cluster_around_it(self, api, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
        monkeypatch.setattr("webhook.cli.live_cluster.SERVICE_ACCOUNT", tmp_path)
        (tmp_path / "token").write_text("first")
        (tmp_path / "ca.crt").write_bytes(api.authority)
        assert read_cluster(ClusterSelection(cluster=True), Policy(), print).source == "cluster around this pod"

    @pytest.mark.parametrize(
        ("release", "said"),
        [
            ("v1.99.0", "Kubernetes v1.99.0 is not supported"),
            ("soon", "Kubernetes soon is not supported"),
            (None, "its Kubernetes release is unknown"),
        ],
    )
    def test_a_release_that_is_not_known_is_none_and_said(self, api, tmp_path, capsys, release, said):
        def odd(handler, _):
            handler.json(200, {"gitVersion": release})
            return True

        api.strike("other", odd)
        assert known(api, tmp_path)[0].version is None
        assert (
            capsys.readouterr().err
            == f"cluster x: note: {said}: checked as 1.37; --kube-version selects another release\n"
        )


ELSEWHERE = "use --context or --kubeconfig for another cluster, --snapshot for a file"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(
            ("other", cut),
            f"cluster x cannot be read: {{url}}: Remote end closed connection without response; {ELSEWHERE}",
            id="no answer",
        ),
        pytest.param(
            ("other", refuse(401)),
            "cluster x: {url}: 401 Unauthorized: log in again, or use another user",
            id="refused credentials",
        ),
        pytest.param(("list", refuse(418, "tea")), f"cluster x cannot be read: 418 tea; {ELSEWHERE}", id="no lists"),
        pytest.param(
            ("list", refuse(403, "nodes is forbidden")),
            "cluster x: you may not read anything: 403 nodes is forbidden",
            id="nothing allowed",
        ),
    ],
)
@pytest.mark.parametrize("command", [("check", "-"), ("audit",), ("explain", "--pending"), ("snapshot",)], ids=" ".join)
def test_a_cluster_that_cannot_be_read_ends_the_command(api, tmp_path, run, command, fault, said):  # noqa: PLR0917 fixtures and columns
    api.strike(*fault, times=99)
    code, out, err = run(*command, "--kubeconfig", api.kubeconfig(tmp_path), stdin=MANIFEST)
    assert (code, out) == (4, "")
    assert err.splitlines()[-1] == f"evenspread: {said.format(url=api.url)}"


@pytest.mark.parametrize("installed", [True, False], ids=["an extension", "no extension"])
def test_an_extension_that_is_not_there_permits_nothing(api, tmp_path, run, installed):
    """Where SpreadGroups are not installed, everybody is told that there are none."""
    api.absent |= set() if installed else {"spreadgroups"}
    api.strike("list", refuse(403, "nodes is forbidden"), times=99)
    code, out, err = run("audit", "--kubeconfig", api.kubeconfig(tmp_path))
    assert (code, out) == (4, "")
    assert err.splitlines()[-1] == "evenspread: cluster x: you may not read anything: 403 nodes is forbidden"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "no such kubeconfig", id="no file"),
        pytest.param("{}", "Invalid kube-config file. Expected key current-context in {file}", id="an empty one"),
        pytest.param("what is this", "not a kubeconfig", id="text"),
        pytest.param("a: [", "not a kubeconfig", id="no YAML"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_ends_the_command(tmp_path, run, content, said):
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    code, out, err = run("check", "-", "--kubeconfig", str(file), stdin=MANIFEST)
    assert (code, out) == (4, "")
    told = said.format(file=file)
    assert err == f"evenspread: {file}: {told}; add --kubeconfig FILE, or read a file with --snapshot FILE\n"


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path, run):
    file = tmp_path / "kubeconfig"
    for contexts, told in (([{"name": "prod"}, {"name": "test"}], "it has prod, test"), ([], "it has none")):
        file.write_text(json.dumps({"contexts": contexts, "current-context": "prod"}))
        code, _, err = run("audit", "--kubeconfig", str(file), "--context", "prdo")
        assert (code, err.partition("; ")[0]) == (4, f"evenspread: {file}: no context prdo: {told}")


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "faulty", "namespace": "shop"}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "faulty", "namespace": "shop"}}


class TestASnapshot:
    LINES = (
        {"kind": "Snapshot", "kubernetesVersion": "v1.32.2"},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
    )

    def test_a_snapshot_is_a_cluster(self, tmp_path):
        file = tmp_path / "prod.jsonl"
        file.write_text("\n".join(map(json.dumps, self.LINES)))
        found = read_cluster(ClusterSelection(snapshot=str(file)), Policy(), print)

        assert [node.name for node in found.index.nodes.all()] == ["n1"]
        assert (found.source, found.version, found.namespace) == (f"snapshot {file}", KubernetesVersion(1, 32, 2), "")

    @pytest.mark.parametrize(
        ("command", "written", "said"),
        [
            (("check", "-", "--snapshot", "c.jsonl"), POD, "c.jsonl:4: note: Pod"),
            (("audit", "--snapshot", "c.jsonl"), POD, "c.jsonl:4:1: note: Pod"),
            (("audit", "c.jsonl"), POD, "c.jsonl:4:1: note: Pod"),
            (("skew", "-A", "--snapshot", "c.jsonl"), POD, "c.jsonl:4: note: Pod"),
            (("simulate", "--all", "--snapshot", "c.jsonl"), POD, "c.jsonl:4: note: Pod"),
            (("explain", "--pending", "-A", "--snapshot", "c.jsonl"), POD, "c.jsonl:4: note: Pod"),
            (("simulate", "more.json", "-", "--snapshot", "c.jsonl"), SERVICE, "more.json: note: Service"),
            (("check", "--add-defaults", "--config", "policy.json", "more.json"), SERVICE, "more.json: note: Service"),
        ],
    )
    def test_a_command_names_each_object_that_cannot_be_applied(self, run, tmp_path, faulty, command, written, said):  # noqa: PLR0917 fixtures and columns
        node = {**self.LINES[1], "status": {"allocatable": {"pods": "9"}}}
        web = {**POD, "metadata": {"name": "web", "namespace": "shop"}}
        content = [self.LINES[0], node, web, *([written] if written is POD else [])]
        (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, content)))
        (tmp_path / "more.json").write_text(json.dumps(written))
        defaults = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]
        policy = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy"}
        policy["defaults"] = {"mode": "observe", "defaultConstraints": defaults}
        (tmp_path / "policy.json").write_text(json.dumps(policy))
        code, _, err = run(*command, stdin=MANIFEST)
        assert [line for line in err.splitlines() if faulty in line] == [
            f"{said} shop/{faulty}: OverflowError: too large: left out"
        ]
        assert code in {0, 1}

    def test_one_that_cannot_be_read(self, run):
        assert run("check", "-", "--snapshot", "absent", stdin=MANIFEST) == (
            3,
            "",
            "evenspread: absent: No such file or directory\n",
        )

    def test_a_file_and_a_live_cluster_are_two_clusters(self, run):
        code, _, err = run("check", "-", "--snapshot", "a", "--as", "jane", stdin=MANIFEST)
        assert code == 2
        assert "--snapshot and a live cluster exclude each other: remove one of them" in err


class TestCheck:
    def test_rules_see_the_cluster(self, api, tmp_path, run):
        file = api.kubeconfig(tmp_path)
        arguments = ("check", "-", "-o", "json", "--rule", "spread-without-effect", "--kubeconfig", file)
        code, out, err = run(*arguments, stdin=MANIFEST)
        assert (code, err) == (0, NOT_INSTALLED)
        assert [entry["message"] for entry in json.loads(out)] == ["zone[0] has no effect on a single replica"]

    def test_the_contexts_namespace_is_where_objects_would_go(self, api, tmp_path, run):
        target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
        api.put("horizontalpodautoscalers", "web", "default", spec={"scaleTargetRef": target, "maxReplicas": 9})
        api.put("namespaces", "other")
        file = api.kubeconfig(tmp_path)
        arguments = ("check", "-", "-o", "json", "--rule", "spread-without-effect", "--kubeconfig", file)
        assert json.loads(run(*arguments, stdin=MANIFEST)[1]) == []
        assert len(json.loads(run(*arguments, "-n", "other", stdin=MANIFEST)[1])) == 1

    @pytest.mark.parametrize(
        ("asked", "said"), [((), "Kubernetes 1.34"), (("--kube-version", "1.31"), "Kubernetes 1.31")]
    )
    def test_the_clusters_release_counts(self, api, tmp_path, run, asked, said):
        manifest = MANIFEST.replace(b"{matchLabels: {app: web}}\n\n", b"{}\n").replace(
            b"labelSelector: {matchLabels: {app: web}}", b"labelSelector: {}"
        )
        file = api.kubeconfig(tmp_path)
        _, out, _ = run(
            "check", "-", "-o", "json", "--rule", "selector-empty", "--kubeconfig", file, *asked, stdin=manifest
        )
        assert said in json.loads(out)[0]["message"]
