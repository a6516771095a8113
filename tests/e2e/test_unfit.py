"""Workloads and pods that do not fit: what kubectl prints, and what a fallback makes of them; the webhook watches."""

import json
import time

import pytest
from e2e.injected import pods
from e2e.objects import constraint, pod, workload
from e2e.registration import registered
from e2e.served import certified, serving
from e2e.waiting import eventually

# Three zones for which five are asked: the minimum stays 0, and each takes one pod.
TOO_MANY = constraint(minDomains=5)
FALLBACK = "evenspread.io/fallback"


def watching(plane, folder, **policy):
    flags = ("--no-register", f"--kubeconfig={plane.admin}", *certified(folder, plane.authority))
    return serving(folder, {"ceiling": "deny", "defaults": {"mode": "inject"}, **policy}, *flags)


@pytest.fixture(name="warning", scope="module")
def _warning(plane, tmp_path_factory):
    with watching(plane, tmp_path_factory.mktemp("warning")) as webhook:
        yield webhook


@pytest.fixture(name="refusing", scope="module")
def _refusing(plane, tmp_path_factory):
    rules = {"replicas-do-not-fit": "deny"}
    with watching(plane, tmp_path_factory.mktemp("refusing"), rules=rules, stuckThreshold=0.01) as webhook:
        yield webhook


WEB = workload("Deployment", "web", TOO_MANY, replicas=7)


def test_a_warning_says_what_is_in_the_way_and_what_would_help(plane, kubectl, namespace, warning):
    with registered(plane, namespace, warning.server):
        code, out, err = kubectl("-n", namespace, "create", "-f", "-", stdin=WEB)

    assert (code, out) == (0, "deployment.apps/web created\n")
    assert err == (
        "Warning: evenspread/replicas-do-not-fit: 3 of 7 fit: zone[0] has fewer zones than minDomains 5;"
        " minDomains: 3 fits 7\n"
    )


def test_the_first_line_of_a_denial_gives_the_way_out(plane, kubectl, namespace, refusing):
    with registered(plane, namespace, refusing.server):
        code, out, err = kubectl("-n", namespace, "create", "-f", "-", stdin=WEB)

    first, *blocks = err.splitlines()
    assert (code, out) == (1, "")
    assert first == (
        'Error from server (Forbidden): error when creating "STDIN": admission webhook "validate.evenspread.io"'
        f" denied the request: Deployment {namespace}/web: 3 of 7 fit: zone[0] has fewer zones than minDomains 5;"
        " minDomains: 3 fits 7"
    )
    assert blocks[0].startswith("  1 replicas-do-not-fit  ")


def test_who_scales_a_workload_is_told_and_not_denied(plane, kubectl, namespace, refusing):
    fits = workload("Deployment", "web", TOO_MANY, replicas=2)
    assert kubectl("-n", namespace, "create", "-f", "-", stdin=fits)[0] == 0
    eventually(lambda: len(pods(plane, namespace)) == 2, 20)
    time.sleep(0.3)  # the watch is some milliseconds behind
    with registered(plane, namespace, refusing.server):
        code, out, err = kubectl("-n", namespace, "scale", "deployment/web", "--replicas=7")

    assert (code, out) == (0, "deployment.apps/web scaled\n")
    assert err == (
        "Warning: evenspread/replicas-do-not-fit: 3 of 7 fit: zone[0] has fewer zones than minDomains 5;"
        " minDomains: 3 fits 7\n"
    )


@pytest.mark.parametrize("asks", [False, True])
def test_what_cannot_be_met_gives_way_where_the_pod_asks(plane, namespace, warning, asks):
    """Of four pods the fourth finds no zone; it is created when the first three have theirs."""

    def create(number):
        made = pod(f"web-{number}", TOO_MANY)
        made["metadata"]["annotations"] = {FALLBACK: "true"} if asks else {}
        plane.api.request("POST", f"/api/v1/namespaces/{namespace}/pods", made)

    with registered(plane, namespace, warning.server):
        for number in range(3):
            create(number)
            eventually(lambda number=number: len(pods(plane, namespace)) == number + 1, 20)
        time.sleep(0.3)  # the watch is some milliseconds behind
        create(3)
        if asks:
            eventually(lambda: len(pods(plane, namespace)) == 4, 20)

    last = next(each for each in pods(plane, namespace, phase=None) if each["metadata"]["name"] == "web-3")
    (left,) = last["spec"]["topologySpreadConstraints"]
    if asks:
        assert (left["whenUnsatisfiable"], left.get("minDomains")) == ("ScheduleAnyway", None)
        assert json.loads(last["metadata"]["annotations"][FALLBACK]) == {"softened": [left["topologyKey"]]}
    else:
        assert (left["whenUnsatisfiable"], left["minDomains"]) == ("DoNotSchedule", 5)
