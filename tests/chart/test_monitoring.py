"""Alerts and the dashboard ask only for what is counted."""

import json
import re

import pytest
from chart.rendered import CERT_MANAGER, CHART, EXISTING, INJECT, ZERO, objects, one
from controller.test_figures import whole

from webhook.cluster.reflector import WatchState
from webhook.controller.run import Controller
from webhook.metrics import Metrics

SCAN = {
    "EvenspreadNoController",
    "EvenspreadScanLate",
    "EvenspreadNoScan",
    "EvenspreadScanDiffers",
    "EvenspreadReportsNotWritten",
    "EvenspreadReportsRefused",
    "EvenspreadGroupCapExceeded",
    "EvenspreadPodsPending",
}
OF_REPORTS = {"EvenspreadReportsNotWritten", "EvenspreadReportsRefused"}
NO_SCAN = {"controller": {"scan": {"enabled": False}}}
EVERY = {"webhook": {"failurePolicy": "Fail"}, "admission": {"static": "policies"}}
WATCHED = {"prometheusRule": {"enabled": True}, "grafanaDashboard": {"enabled": True}}
# Of the API server (k8s.io/apiserver/pkg/admission/metrics), and of Prometheus itself.
OTHERS = {
    "apiserver_admission_webhook_fail_open_count": {"name", "type"},
    "apiserver_admission_webhook_rejection_count": {"name", "error_type"},
    "up": set(),
    # Of the kubelet (cAdvisor): all processes of a container.
    "container_memory_working_set_bytes": {"namespace", "pod", "container"},
}
KNOWN = WatchState(
    resource="pods",
    required=True,
    objects=1,
    left_out=0,
    events=1,
    age=0.0,
    synced=True,
    tried=True,
    off=False,
    fault="",
    left_out_example="",
)
# Labels that a ServiceMonitor gives, and what a label of ours with the name of one is called then.
SCRAPED = {"namespace", "job", "instance", "pod", "exported_namespace"}
FUNCTIONS = {
    "absent",
    "sum",
    "min",
    "max",
    "count",
    "increase",
    "rate",
    "time",
    "scalar",
    "histogram_quantile",
    "topk",
    "vector",
}


def exposed():
    """The names in /metrics of both roles with the labels of each, from what they publish."""
    metrics = Metrics()
    metrics.follow_cluster(lambda: [KNOWN])
    metrics.answered("validate", "allow", dry_run=False, seconds=0.001)
    metrics.rules([("max-skew", "warn")], ["zone-missing"])
    metrics.count("injections", "inject")
    metrics.count("injections_skipped", "owner-unknown")
    metrics.count("deliveries", "delivered")
    metrics.count("connections_ended", "webhook", "late")
    metrics.count("admission_refusals", "429")
    found = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", metrics.text().decode(), re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found | {name: set() for name in _of_the_controller()} | _of_the_scan()


def _of_the_controller():
    names = Controller.collect.__code__.co_consts
    return {name for name in names if isinstance(name, str) and name.startswith("evenspread_")}


def _of_the_scan():
    """The names that the controller's scan publishes, with the labels of each."""
    return {sample.name: {*sample.labels} for family in whole().collect() for sample in family.samples}


def rules(values):
    (group,) = one("PrometheusRule", {**values, **WATCHED})["spec"]["groups"]
    return {each["alert"]: each for each in group["rules"]}


def dashboard():
    (text,) = one("ConfigMap", WATCHED, ending="dashboard")["data"].values()
    return json.loads(text)


def queries():
    shown = dashboard()
    yield from (target["expr"] for panel in shown["panels"] for target in panel["targets"])
    yield "evenspread_build_info"  # of the variable
    for values in (ZERO, CERT_MANAGER, EXISTING, EVERY):
        yield from (each["expr"] for each in rules(values).values())


def asked(query):
    """The names of a query with the labels that it selects or sums by."""
    bare = re.sub(r'"[^"]*"', '""', query)
    by = {name for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", bare) for name in group.split(", ")}
    for name, labels in re.findall(r"([a-z]\w+)(?:\{([^}]*)\})?", re.sub(r"\b(?:by|on) \([^)]*\)|\[[^]]*\]", "", bare)):
        if name not in {*FUNCTIONS, "or", "and", "unless", "le"}:
            yield name, {*re.findall(r"(\w+)(?:=~|!=|=)", labels)}, by


@pytest.mark.parametrize("query", sorted({*queries()}))
def test_a_query_asks_for_what_is_counted(query):
    known = exposed() | OTHERS
    found = [*asked(query)]
    assert found
    for name, labels, _by in found:
        assert name in known, name
        assert labels <= known[name] | SCRAPED, name
    assert {name for *_, by in found for name in by} <= {
        *SCRAPED,
        *(label for name, *_ in found for label in known[name]),
    }


def test_alerts_say_what_is_wrong_and_how_bad_it_is():
    for name, rule in rules(EVERY).items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}, name
        assert rule["annotations"]["summary"].endswith("."), name


def test_each_alert_names_its_line_of_the_page():
    """Only an address becomes `runbook_url`: dashboards make a link of it, and a relative one leads nowhere."""
    page = (CHART.parents[1] / "docs" / "runbook.md").read_text()
    for values in (EVERY, CERT_MANAGER):
        for name, rule in rules(values).items():
            assert rule["annotations"]["runbook"] == f"docs/runbook.md#{name.lower()}"
            assert f'<a id="{name.lower()}"></a>{name}' in page, name


@pytest.mark.parametrize("address", ["https://docs.example.com/install", 'https://docs.example.com/a%20b?c="d"&e=%s'])
def test_each_alert_links_to_its_line_of_a_page_that_is_served(address):
    (group,) = one("PrometheusRule", {"prometheusRule": {"enabled": True, "runbookURL": address}})["spec"]["groups"]
    for rule in group["rules"]:
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"{address}#{rule['alert'].lower()}"


@pytest.mark.parametrize(("policy", "severity"), [("Fail", "critical"), ("Ignore", "warning")])
def test_a_webhook_that_is_not_trusted_is_critical_where_writes_are_refused(policy, severity):
    found = rules({"webhook": {"failurePolicy": policy}})
    assert {found[name]["labels"]["severity"] for name in ("EvenspreadNotTrusted", "EvenspreadDown")} == {severity}


@pytest.mark.parametrize(
    ("values", "only"),
    [
        (ZERO, {"EvenspreadCAEnds", "EvenspreadNotTrusted"} | SCAN),
        (CERT_MANAGER, SCAN),
        (EXISTING | NO_SCAN, set()),
        (ZERO | NO_SCAN, {"EvenspreadCAEnds", "EvenspreadNoController", "EvenspreadNotTrusted"}),
        ({"controller": {"scan": {"reports": False}}, **CERT_MANAGER}, SCAN - OF_REPORTS),
        (
            {**CERT_MANAGER, **NO_SCAN, "webhook": {"failurePolicy": "Fail"}},
            {"EvenspreadRefusesUnasked", "EvenspreadNoController"},
        ),
        (
            {**EXISTING, **NO_SCAN, "admission": {"static": "both"}},
            {"EvenspreadNoController", "EvenspreadPoliciesDiffer"},
        ),
    ],
    ids=[
        "its own CA",
        "cert-manager",
        "a Secret of yours, no scan",
        "no scan",
        "no reports",
        "failing closed",
        "policies",
    ],
)
def test_alerts_are_those_of_what_is_installed(values, only):
    special = SCAN | {
        "EvenspreadCAEnds",
        "EvenspreadNotTrusted",
        "EvenspreadRefusesUnasked",
        "EvenspreadPoliciesDiffer",
    }
    assert rules(values).keys() & special == only
    assert len(rules(values)) == 11 + len(only)


@pytest.mark.parametrize(
    ("certificates", "seconds"),
    [
        ({}, 7 * 86400 // 4),
        ({"self": {"leafDuration": "1h30m20s"}}, 5420 // 4),
        ({"mode": "certManager"}, 90 * 86400 // 4),
        (EXISTING["certificates"], 14 * 86400),
    ],
    ids=["its own", "its own, for a while", "cert-manager", "a Secret of yours"],
)
def test_a_certificate_that_should_have_been_renewed_is_told_of(certificates, seconds):
    rule = rules({"certificates": certificates})["EvenspreadCertificateEnds"]
    assert rule["expr"].endswith(f"- time() < {seconds}")


def test_the_page_has_every_alert_with_its_first_step():
    page = (CHART.parents[1] / "docs" / "runbook.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith('| <a id="evenspread')]
    assert [names for _, names, step, *_ in rows if not step.strip()] == []
    shown = {name for _, names, *_ in rows for name in re.findall(r"\bEvenspread\w+", names)}
    assert shown == {name for values in (ZERO, EVERY) for name in rules(values)}


def test_whoever_fails_closed_is_woken():
    found = [rules({"webhook": {"failurePolicy": policy}})["EvenspreadDown"] for policy in ("Ignore", "Fail")]
    assert [each["labels"]["severity"] for each in found] == ["warning", "critical"]


def test_panels_stand_beside_each_other():
    taken = [
        (x, y)
        for panel in dashboard()["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len({*taken}) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_rules_carry_the_labels_of_your_prometheus():
    values = {"prometheusRule": {"enabled": True, "labels": {"release": "monitoring"}}}
    assert one("PrometheusRule", values)["metadata"]["labels"]["release"] == "monitoring"
    assert one("ConfigMap", WATCHED, ending="dashboard")["metadata"]["labels"]["grafana_dashboard"] == "1"


def test_an_autoscaler_decides_alone_how_many_there_are():
    values = {"replicas": 1, "autoscaling": {"enabled": True}, "webhook": {"failurePolicy": "Fail"}}
    scaler, deployment = one("HorizontalPodAutoscaler", values), one("Deployment", values)
    assert "replicas" not in deployment["spec"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 5)
    assert [each["kind"] for each in objects(values)].count("PodDisruptionBudget") == 1


def test_further_volumes_are_mounted_beside_ours():
    volume, mount = {"name": "trust", "configMap": {"name": "ca"}}, {"name": "trust", "mountPath": "/etc/ssl/certs"}
    spec = one("Deployment", {**INJECT, "extraVolumes": [volume], "extraVolumeMounts": [mount]})["spec"]["template"][
        "spec"
    ]
    assert (spec["volumes"][-1], spec["containers"][0]["volumeMounts"][-1]) == (volume, mount)
    assert len(spec["volumes"]) == len({each["name"] for each in spec["volumes"]}) > 1
