"""Commands on a live cluster use the policy that is installed in it, unless --config names another."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster.api import NOT_INSTALLED, FakeApi

HEAD = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
LABELS = {"app.kubernetes.io/component": "webhook", "helm.sh/chart": "evenspread-0.1.0"}
DENY = "ceiling: deny\nrules: {selector-not-self: deny}\n"
INJECT = """defaults:
  mode: inject
  defaultingType: List
  defaultConstraints: [{maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
"""
THINGS = """workloads:
- {apiVersion: example.com/v1, kind: Thing, templatePath: spec.template, replicasPath: spec.replicas}
"""
SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""
USED = "cluster x: policy of ConfigMap spread/evenspread-webhook"
BUILT_IN = "using the built-in policy; --config FILE selects another"


def deployment(*constraints):
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}], "topologySpreadConstraints": list(constraints)},
    }
    return {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}


STRANGER = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "other"}},
}


@pytest.fixture(name="api")
def _api():
    with FakeApi(tls=False) as api:
        for name, zone in (("n1", "a"), ("n2", "b")):
            labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
            allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            api.put("nodes", name, metadata={"labels": labels}, status={"allocatable": allocatable})
        api.put("namespaces", "default")
        yield api


@pytest.fixture(name="install")
def _install(api):
    def install(policy, *, namespace="spread", labels=LABELS, **files):
        data = {"policy.yaml": HEAD + policy, **{key.replace("_", "."): value for key, value in files.items()}}
        api.put("configmaps", "evenspread-webhook", namespace, metadata={"labels": labels}, data=data)

    return install


@pytest.fixture(name="ask")
def _ask(api, run, tmp_path):
    return lambda command, *arguments, **more: run(
        command, *arguments, "--kubeconfig", api.kubeconfig(tmp_path), **more
    )


def web(**metadata):
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", **metadata}}
    Path("web.json").write_text(json.dumps({**made, "spec": deployment(STRANGER)}))


class TestEachCommand:
    """Each one answers by the installed policy, says which ConfigMap that is, and lets --config override it."""

    def test_audit(self, api, install, ask):
        api.put("deployments", "web", "default", spec=deployment(STRANGER))
        modes = {}
        for name, policy in (("installed", DENY), ("other", "ceiling: audit\n")):
            install(policy)
            _, out, err = ask("audit", "-o", "json", "--rule", "selector-not-self")
            modes[name] = [each["mode"] for each in json.loads(out) if "mode" in each]
            assert err == USED + "\n"
        assert modes == {"installed": ["deny"], "other": ["audit"]}

    def test_check(self, install, ask):
        install(DENY)
        web()
        arguments = ("check", "web.json", "-o", "json", "--rule", "selector-not-self")
        _, out, err = ask(*arguments)
        assert ([each["mode"] for each in json.loads(out)], err) == (["deny"], USED + "\n")
        Path("own.yaml").write_text(HEAD + "ceiling: audit\n")
        _, out, err = ask(*arguments, "--config", "own.yaml")
        assert ([each["mode"] for each in json.loads(out)], err) == (["audit"], "")

    def test_compile(self, install, ask):
        install("ceiling: 'off'\n")
        _, out, err = ask("compile")
        assert (out.count("no-rule-has-this-mode"), err) == (3, USED + "\n")
        Path("own.yaml").write_text(HEAD)
        _, out, err = ask("compile", "--config", "own.yaml")
        assert (out.count("no-rule-has-this-mode"), err) == (0, "")

    def test_skew(self, api, install, ask):
        install(INJECT)
        api.put("deployments", "web", "default", spec=deployment())
        _, out, err = ask("skew", "-o", "json")
        assert ([each["maxSkew"] for each in json.loads(out)], err) == ([2], USED + "\n")
        Path("own.yaml").write_text(HEAD)
        _, out, _ = ask("skew", "-o", "json", "--config", "own.yaml")
        assert [each["maxSkew"] for each in json.loads(out)] == [3, 5]  # the scheduler's own defaults

    @pytest.mark.parametrize("command", ["explain", "simulate"])
    def test_a_kind_that_only_the_policy_knows(self, install, ask, command):
        code, _, err = ask(command, "thing/web")
        assert (code, "is neither a file nor a workload" in err) == (2, True)
        install(THINGS)
        code, _, err = ask(command, "thing/web")
        first, *_, last = err.splitlines()
        assert (code, first, last.split(";")[0]) == (3, USED, "evenspread: cluster x: no Thing default/web")

    @pytest.mark.parametrize("command", ["explain", "simulate"])
    def test_a_scheduler_configuration_that_the_config_map_holds(self, api, install, ask, command):
        """The cluster's scheduler ignores taints, which keep the pod away by the built-in policy."""
        for name in ("n1", "n2"):
            node = api.objects["nodes"]["", name]
            taints = [{"key": "a", "effect": "NoSchedule"}]
            api.put(
                "nodes",
                name,
                metadata={"labels": node["metadata"]["labels"]},
                status=node["status"],
                spec={"taints": taints},
            )
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
        Path("pod.json").write_text(json.dumps(pod))
        assert ask(command, "pod.json")[0] == 1
        install("schedulerConfiguration: scheduler.yaml\n", scheduler_yaml=SCHEDULER)
        assert ask(command, "pod.json")[::2] == (0, USED + "\n")

    def test_plan_and_snapshot_say_it_too(self, install, ask):
        install(THINGS)
        assert ask("plan")[2].splitlines()[0] == USED
        assert ask("snapshot", "-o", "taken.jsonl")[2].splitlines()[0] == USED

    def test_skew_watches_with_it(self, api, install, ask, monkeypatch):
        install(INJECT)
        api.put("deployments", "web", "default", spec=deployment())

        def enough(_seconds):
            raise KeyboardInterrupt

        monkeypatch.setattr("webhook.cli.commands.skew.command.time", SimpleNamespace(sleep=enough))
        code, out, err = ask("skew", "--watch")
        assert (code, err.strip()) == (130, USED)
        assert "zone[0]" in out


class TestWhichOne:
    @pytest.mark.parametrize(
        "labels",
        [
            pytest.param({}, id="without labels"),
            pytest.param({**LABELS, "helm.sh/chart": "redis-1.0.0"}, id="of another chart"),
            pytest.param({**LABELS, "app.kubernetes.io/component": "controller"}, id="of another role"),
        ],
    )
    def test_other_config_maps_are_none(self, install, ask, labels):
        install(DENY, labels=labels)
        assert ask("skew")[2] == NOT_INSTALLED

    def test_of_several_installations_one_is_named_and_so_is_how_to_choose(self, install, ask):
        for namespace in ("two", "one", "three"):
            install(DENY, namespace=namespace)
        line = (
            "cluster x: policy of ConfigMap one/evenspread-webhook, one of 3 installations; "
            "--config configmap:NAMESPACE/NAME selects another: three/evenspread-webhook, two/evenspread-webhook\n"
        )
        assert ask("skew")[2] == line

    def test_of_several_the_registered_one_is_taken(self, api, install, ask):
        """Whoever may write a ConfigMap can label it; its name may come first, too."""
        install("ceiling: audit\n", namespace="a-tenant")
        install(DENY)
        service = {"namespace": "spread", "name": "evenspread-webhook"}
        webhooks = [{"name": "validate.evenspread.io", "clientConfig": {"service": service}}]
        api.put("validatingwebhookconfigurations", "evenspread", webhooks=webhooks)
        api.put("validatingwebhookconfigurations", "other", webhooks=[{"name": "x", "clientConfig": {"url": "x"}}])
        assert ask("skew")[2].startswith(f"{USED}, one of 2 installations; ")

    def test_one_is_chosen_by_its_name(self, install, ask):
        for namespace in ("one", "two"):
            install(DENY, namespace=namespace)
        _, _, err = ask("skew", "--config", "configmap:two/evenspread-webhook")
        assert err == "cluster x: policy of ConfigMap two/evenspread-webhook\n"

    @pytest.mark.parametrize(
        ("name", "code", "told"),
        [
            pytest.param("a/absent", 2, "cluster x: ConfigMap a/absent: 404 Not Found", id="not there"),
            pytest.param("a", 2, "--config configmap:a: write it as configmap:NAMESPACE/NAME", id="no namespace"),
            pytest.param("a/b/c", 2, "write it as configmap:NAMESPACE/NAME", id="too much"),
        ],
    )
    def test_a_name_that_is_none(self, ask, name, code, told):
        found, _, err = ask("skew", "--config", f"configmap:{name}")
        assert (found, told in err) == (code, True)

    def test_a_config_map_needs_a_live_cluster(self, run):
        code, _, err = run("check", "x.yaml", "--config", "configmap:a/b")
        assert (code, "needs a live cluster" in err) == (2, True)

    def test_where_config_maps_may_not_be_read(self, api, install, ask):
        install(DENY)
        api.forbidden.add("configmaps")
        assert ask("skew")[2] == f"cluster x: note: ConfigMaps cannot be read (403 Forbidden): {BUILT_IN}\n"

    def test_where_only_those_of_its_namespace_may_be_read(self, api, install, ask):
        install(DENY, namespace="evenspread")
        api.strike("list", lambda handler, _: handler.status(403, "no") or True, resource="configmaps")
        assert ask("skew")[2] == "cluster x: policy of ConfigMap evenspread/evenspread-webhook\n"
        api.delete("configmaps", "evenspread-webhook", "evenspread")
        api.strike("list", lambda handler, _: handler.status(403, "no") or True, resource="configmaps")
        assert ask("skew")[2] == (
            f"cluster x: note: no ConfigMap of the evenspread chart in namespace evenspread: {BUILT_IN}\n"
        )


class TestAPolicyThatIsRefused:
    def test_it_is_an_error_with_its_path(self, install, ask):
        install("ceilng: warn\n")
        code, out, err = ask("skew")
        assert (code, out) == (2, "")
        refused = "evenspread: cluster x: the policy in ConfigMap spread/evenspread-webhook is invalid"
        assert err.splitlines()[1:] == [
            f"{refused}; correct it, or add --config FILE",
            'ConfigMap spread/evenspread-webhook/policy.yaml:3:1: ceilng: unknown field; did you mean "ceiling"?',
        ]
        Path("own.yaml").write_text(HEAD)
        assert ask("skew", "--config", "own.yaml")[::2] == (0, "")

    @pytest.mark.parametrize(
        ("policy", "files", "told"),
        [
            pytest.param(
                "schedulerConfiguration: absent.yaml\n",
                {},
                "policy.yaml:3:25: schedulerConfiguration: "
                "ConfigMap spread/evenspread-webhook/absent.yaml: the ConfigMap has no key absent.yaml",
                id="a file that it does not hold",
            ),
            pytest.param(
                "schedulerConfiguration: scheduler.yaml\n",
                {"scheduler_yaml": "kind: Scheduler\n"},
                "scheduler.yaml:1:7: kind: must be KubeSchedulerConfiguration",
                id="a fault in the file",
            ),
        ],
    )
    def test_of_the_other_files_too(self, install, ask, policy, files, told):
        install(policy, **files)
        code, _, err = ask("skew")
        assert (code, told in err) == (2, True), err

    @pytest.mark.parametrize("path", ["/etc/kubernetes/scheduler.yaml", "../x.yaml", "/etc/hostname"])
    def test_a_file_that_only_replicas_have_is_never_read_from_this_machine(self, install, ask, path):
        install(f"schedulerConfiguration: {path}\n")
        code, _, err = ask("skew")
        place = "ConfigMap spread/evenspread-webhook/policy.yaml:3:25: schedulerConfiguration"
        told = f'warning: {place}: "{path}" is not in the ConfigMap and was not read'
        assert (code, err.splitlines()[1]) == (0, told)

    @pytest.mark.parametrize(
        "path", ["./scheduler.yaml", "/run/evenspread/policy/scheduler.yaml", "a/../scheduler.yaml"]
    )
    def test_other_ways_to_name_a_file_of_the_config_map(self, install, ask, path):
        install(f"schedulerConfiguration: {path}\n", scheduler_yaml=SCHEDULER)
        assert ask("skew")[::2] == (0, USED + "\n")


def test_a_cluster_that_is_not_there_is_one_error(run):
    code, _, err = run("skew", "--kubeconfig", "absent")
    assert (code, err.count("\n")) == (4, 1)
    assert err.startswith("evenspread: absent: no such kubeconfig")


def test_a_cluster_that_is_lost_meanwhile(api, install, ask):
    install(DENY)
    for _ in range(2):
        api.strike("list", lambda handler, _: bool(handler.connection.shutdown(2)) or True, resource="configmaps")
    _, _, err = ask("skew")
    assert err.startswith("cluster x: note: ConfigMaps cannot be read (")
