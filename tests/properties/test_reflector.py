"""Whatever happens to objects, versions and connections: when it is quiet again, the reflector knows what there is."""

import pytest
from cluster.api import (
    FakeApi,
    cut,
    ends_at_once,
    gone_as_event,
    html,
    refuse,
    replay,
    says,
    short_body,
    torn,
)
from cluster.following import QUICK, RESOURCES, Clock, Table, server, truth
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webhook.cluster.reflector import Reflector

NAMES = st.sampled_from(["a", "b", "c", "d"])
NAMESPACES = st.sampled_from(["shop", "other"])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])
FAULTS = st.sampled_from(
    [
        ("watch", gone_as_event),
        ("watch", ends_at_once),
        ("watch", torn(b'{"type":"ADDED","object":{"meta')),
        ("watch", says(b"no json")),
        ("watch", replay),
        ("watch", refuse(410)),
        ("any", refuse(500)),
        ("any", refuse(429, Retry_After="1")),
        ("any", cut),
        ("any", html),
        ("page", refuse(410)),
        ("list", short_body),
        ("page", short_body),
    ]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, NAMESPACES, PHASES),
        st.tuples(st.just("delete"), NAMES, NAMESPACES),
        st.tuples(st.just("forget")),
        st.tuples(st.just("fault"), FAULTS),
        st.tuples(st.just("turn"), st.integers(1, 4)),
    ),
    max_size=25,
)


def take(step, api, reflector):
    match step:
        case ("put", name, namespace, phase):
            api.put("pods", name, namespace, metadata={"labels": {"app": name}}, status={"phase": phase})
        case ("delete", name, namespace):
            api.delete("pods", name, namespace)
        case ("forget",):
            api.forget()
        case ("fault", (what, fault)):
            api.strike(what, fault)
        case ("turn", times):
            for _ in range(times):
                reflector.turn()


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kube")


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, many=st.booleans())
def test_it_converges(folder, steps, many):
    with FakeApi(tls=False, patient=False) as api:
        if many:  # two pages
            for number in range(120):
                api.put("pods", f"many-{number}", "shop")
        table = Table()
        reflector = Reflector(server(api, folder), RESOURCES["pods"], table, timing=QUICK, pace=Clock())
        for step in steps:
            take(step, api, reflector)
        api.faults.clear()
        for _ in range(12):
            reflector.turn()

        assert table.values == truth(api, "pods")
        assert reflector.state().objects == len(table.values)
