"""A reflector against every fault of an API server: afterwards it knows what a fresh one would."""

import itertools
import json

import pytest
from build import pod_names
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
    silence,
    silent_watch,
    torn,
)
from cluster.following import QUICK, RESOURCES, Clock, Table, eventually, following, server, truth

from webhook.cluster.connection import ApiServer
from webhook.cluster.credentials import Account
from webhook.cluster.reflector import Reflector, Timing
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.index.objects import meta_of

POD = {"spec": {"nodeName": "n1", "containers": [{"name": "c", "env": [{"name": "KEY", "value": "secret"}]}]}}


@pytest.fixture(name="api")
def _api():
    with FakeApi() as api:
        for number in range(3):
            api.put("pods", f"web-{number}", "shop", metadata={"labels": {"app": "web"}}, **POD)
        yield api


def change(api):
    """A little of everything."""
    api.put("pods", "web-1", "shop", metadata={"labels": {"app": "web", "moved": "yes"}}, **POD)
    api.delete("pods", "web-2", "shop")
    api.put("pods", "new", "other", metadata={"labels": {"app": "new"}}, **POD)


def test_it_lists_and_then_watches(api, tmp_path):
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        assert table.values == truth(api, "pods")
        change(api)
        eventually(lambda: table.values == truth(api, "pods"))
        state = reflector.state()

    assert sorted(table.values) == [("other", "new"), ("shop", "web-0"), ("shop", "web-1")]
    assert (state.resource, state.objects, state.synced, state.fault) == ("pods", 3, True, "")
    assert api.count("list") == 1


def test_what_a_pod_holds_beyond_a_verdicts_need_is_not_kept(api, tmp_path):
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)

    assert "secret" not in repr(table.values)
    assert "c" in repr(table.values)


def test_a_long_list_comes_in_pages_over_one_connection(api, tmp_path):
    for number in range(250):
        api.put("pods", f"many-{number}", "shop", **POD)
    table = Table()
    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], table, timing=QUICK, pace=Clock())

    assert [reflector.turn() for _ in range(3)] == [0.0, 0.0, 0.0]
    assert table.values == truth(api, "pods")
    assert [request.query.get("limit") for request in api.requests] == ["100"] * 3
    assert (api.count("list"), api.count("page"), api.connections) == (1, 2, 1)


def test_a_page_that_is_too_long_comes_in_smaller_ones(api, tmp_path, monkeypatch):
    """A pod has up to 9 MiB of JSON: 1.5 in etcd, each character of which may be written as six."""
    monkeypatch.setattr("webhook.cluster.connection.Stream.body.__defaults__", (10_000,))
    monkeypatch.setattr("webhook.cluster.listing._SHORT_BYTES", 2_000)
    for number in range(30):
        api.put("pods", f"many-{number:02}", "shop", metadata={"annotations": {"x": "<" * (number < 20) * 2000}}, **POD)
    table = Table()
    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], table, timing=QUICK, pace=Clock())

    while not reflector.state().synced:
        reflector.turn()
    assert table.values == truth(api, "pods")
    limits = [request.query["limit"] for request in api.requests]
    assert limits == ["100", *["1"] * 21, "2", "4", "8"]


def test_an_object_that_is_nested_deeply_stops_no_watch(api, tmp_path):
    """`managedFields` are kept by the API server as anybody writes them."""
    made = api.put("pods", "deep", "shop", metadata={"managedFields": [{"fieldsV1": "deep"}]}, **POD)
    fields = '{"f:a":' * 3000 + "{}" + "}" * 3000
    listed = json.dumps({"metadata": {"resourceVersion": "7"}, "items": [made]}).replace('"deep"}]', fields + "}]")
    watched = json.dumps({"type": "MODIFIED", "object": made}).replace('"deep"}]', fields + "}]")

    def long_list(handler, _):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(listed.encode())
        handler.cut()
        return True

    api.strike("list", long_list)
    api.strike("watch", says(watched.encode()))
    table = Table()
    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], table, timing=QUICK, pace=Clock())
    for _ in range(2):
        reflector.turn()

    assert [*table.values] == [("shop", "deep")]
    assert (reflector.state().events, reflector.state().fault) == (1, "")


def test_finished_pods_are_not_asked_for(api, tmp_path):
    api.put("pods", "done", "shop", **POD, status={"phase": "Succeeded"})
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        assert ("shop", "done") not in table.values
        api.put("pods", "web-0", "shop", **POD, status={"phase": "Failed"})
        eventually(lambda: ("shop", "web-0") not in table.values)


WATCH_FAULTS = [
    pytest.param(refuse(410, "too old resource version: 1 (2)"), id="410 as a status"),
    pytest.param(gone_as_event, id="410 as an event"),
    pytest.param(refuse(504, "Timeout: Too large resource version: 9, current: 3"), id="a version that is too large"),
    pytest.param(refuse(500), id="500"),
    pytest.param(refuse(503, Retry_After="1"), id="503 with Retry-After"),
    pytest.param(refuse(429, Retry_After="1"), id="429 with Retry-After"),
    pytest.param(refuse(429), id="429 without"),
    pytest.param(refuse(403), id="403 for a moment"),
    pytest.param(cut, id="no answer"),
    pytest.param(silence, id="nothing but silence"),
    pytest.param(silent_watch, id="a head, and then silence"),
    pytest.param(ends_at_once, id="a watch that ends at once"),
    pytest.param(torn(b'{"type":"ADDED","object":{"metadata":{"name":"web'), id="a torn line"),
    pytest.param(torn(b'{"type":"ADDED"}\n{"typ'), id="half a line after a whole one"),
    pytest.param(says(b"\xff\xfe not json"), id="a line that is no JSON"),
    pytest.param(says(b"[]", b'"x"', b"{}"), id="JSON that is no event"),
    pytest.param(says(b'{"type":"ERROR","object":"what?"}'), id="an ERROR without a Status"),
    pytest.param(says(b'{"type":"NOVEL","object":{"metadata":{"name":"x"}}}'), id="a type that nobody knows"),
    pytest.param(says(b"", b""), id="empty lines"),
    pytest.param(html, id="another server's page"),
    pytest.param(replay, id="events that were told before"),
]
LIST_FAULTS = [
    pytest.param(refuse(410, "the continue parameter is too old"), id="410"),
    pytest.param(refuse(400, "continue key is not valid"), id="400"),
    pytest.param(refuse(500), id="500"),
    pytest.param(refuse(429, Retry_After="1"), id="429 with Retry-After"),
    pytest.param(cut, id="no answer"),
    pytest.param(silence, id="silence"),
    pytest.param(html, id="another server's page"),
    pytest.param(short_body, id="a body that is cut short"),
]


@pytest.mark.parametrize("name", [name for name in RESOURCES if name != "pods"])
def test_an_error_is_known_in_the_watch_of_every_kind(api, tmp_path, name):
    """A Status reads as an object of many a kind, one without a name."""
    api.put(name, "one", "shop")
    api.strike("watch", gone_as_event, times=1)
    with following(api, tmp_path, name) as (reflector, table):
        eventually(lambda: api.count("list") == 2)
        api.put(name, "two", "shop")
        eventually(lambda: sorted(table.values) == [("shop", "one"), ("shop", "two")])
        assert reflector.state().objects == 2


@pytest.mark.parametrize("fault", WATCH_FAULTS)
@pytest.mark.parametrize("times", [1, 3])
def test_after_a_fault_of_the_watch_it_knows_what_a_fresh_one_would(api, tmp_path, fault, times):
    api.strike("watch", fault, times=times)
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        change(api)
        eventually(lambda: not api.pending_faults() and table.values == truth(api, "pods"))
        eventually(lambda: not reflector.state().fault)


@pytest.mark.parametrize("fault", LIST_FAULTS)
@pytest.mark.parametrize("what", ["list", "page"])
def test_after_a_fault_of_the_list_it_knows_what_a_fresh_one_would(api, tmp_path, fault, what):
    for number in range(250):
        api.put("pods", f"many-{number}", "shop", **POD)
    api.strike(what, fault, times=1)
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        assert not api.pending_faults()
        assert table.values == truth(api, "pods")
        change(api)
        eventually(lambda: table.values == truth(api, "pods"))


def test_a_page_that_fails_is_asked_for_again_and_the_list_not_begun_anew(api, tmp_path):
    for number in range(250):
        api.put("pods", f"many-{number}", "shop", **POD)
    api.strike("page", refuse(500), times=2)
    with following(api, tmp_path) as (reflector, _):
        eventually(lambda: reflector.state().synced)

    assert (api.count("list"), api.count("page")) == (1, 4)


def test_tokens_that_expire_too_soon_make_larger_pages(api, tmp_path):
    for number in range(250):
        api.put("pods", f"many-{number}", "shop", **POD)
    api.strike("page", refuse(410), times=1)
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        assert table.values == truth(api, "pods")

    assert [request.query["limit"] for request in api.requests if request.what == "list"] == ["100", "500"]


def test_what_was_deleted_while_nobody_watched_is_gone_after_the_new_list(api, tmp_path):
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        api.strike("watch", refuse(500), times=1)
        api.drop_connections()
        change(api)
        api.forget()
        eventually(lambda: table.values == truth(api, "pods"))

    assert api.count("list") == 2
    assert ("shop", "web-2") not in table.values


def test_an_object_of_the_same_name_takes_the_place_of_the_one_before(api, tmp_path):
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        api.delete("pods", "web-0", "shop")
        api.put("pods", "web-0", "shop", metadata={"labels": {"app": "other"}}, **POD)
        api.forget()
        api.drop_connections()
        eventually(lambda: table.values == truth(api, "pods"))

    assert table.values["shop", "web-0"].labels == {"app": "other"}


def test_a_version_from_the_future_is_noticed_by_its_silence(api, tmp_path):
    """An etcd that was restored from a backup: versions begin anew, and the watch says nothing at all."""
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        api.delete("pods", "web-0", "shop")
        eventually(lambda: ("shop", "web-0") not in table.values)
        api.put("pods", "restored", "shop", **POD)
        api.restore()
        api.drop_connections()
        eventually(lambda: table.values == truth(api, "pods"))

    assert ("shop", "restored") in table.values


def test_a_quiet_watch_with_bookmarks_is_not_a_silent_one(api, tmp_path):
    with following(api, tmp_path, timing=Timing(watch=(1, 1), silence=0.4, steady=0.5)) as (reflector, _):
        eventually(lambda: api.count("watch") == 3)
        state = reflector.state()

    assert (api.count("list"), state.fault) == (1, "")
    assert state.age < 0.2


def test_the_watch_goes_on_from_the_last_bookmark(api, tmp_path):
    with following(api, tmp_path) as (reflector, _):
        eventually(lambda: reflector.state().synced)
        for _ in range(50):
            api.put("services", "s", "shop")
        eventually(lambda: api.count("watch") == 2)

    watched = [int(request.query["resourceVersion"]) for request in api.requests if request.what == "watch"]
    assert watched == [103, 153]


def test_an_object_that_cannot_be_read_is_left_out_and_all_others_kept(api, tmp_path, caplog):
    api.put("pods", "odd", "shop", spec={"containers": "what?"})
    with following(api, tmp_path) as (reflector, table):
        eventually(lambda: reflector.state().synced)
        assert sorted(table.values) == [("shop", "web-0"), ("shop", "web-1"), ("shop", "web-2")]
        api.put("pods", "web-0", "shop", spec={"nodeName": 7})
        api.put("pods", "web-1", "shop", **POD)
        eventually(lambda: len(table.values) == 2 and table.values["shop", "web-1"].meta.resource_version == "106")
        before = api.count("watch")
        eventually(lambda: api.count("watch") > before)
        assert (reflector.state().objects, reflector.state().left_out) == (2, 2)
        assert reflector.state().line == (
            "2 objects left out: shop/odd: Expected `array | null`, got `str` - at `$.spec.containers`"
        )

    assert api.count("list") == 1
    said = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert said == ["an object is left out: shop/odd: Expected `array | null`, got `str` - at `$.spec.containers`"]


@pytest.mark.slow
@pytest.mark.parametrize("relist", [False, True], ids=["by a watch", "by a new list"])
@pytest.mark.parametrize(
    ("change", "counts"),
    [
        pytest.param("applied", (3, 0), id="an object that can be applied again is known"),
        pytest.param("deleted", (2, 0), id="an object that is gone is not left out"),
        pytest.param("unread", (2, 1), id="an object that can be decoded no more stays left out"),
    ],
)
def test_an_object_is_left_out_for_as_long_as_it_is_wrong(api, tmp_path, relist, change, counts):
    table, clock = Table(), Clock()
    table.refused = {"web-0": "ValueError: odd"}
    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], table, timing=QUICK, pace=clock)
    while not reflector.state().synced:
        reflector.turn()
    assert (reflector.state().objects, reflector.state().left_out) == (2, 1)
    assert reflector.state().line == "1 object left out: shop/web-0: ValueError: odd"
    table.refused = {}
    if change == "deleted":
        api.delete("pods", "web-0", "shop")
    else:
        api.put("pods", "web-0", "shop", **({"spec": {"nodeName": 7}} if change == "unread" else POD))
    if relist:
        reflector._begin_anew()
    lists = api.count("list")
    for _ in range(3):
        reflector.turn()
    assert api.count("list") == lists + relist
    assert (reflector.state().objects, reflector.state().left_out) == counts


@pytest.mark.parametrize("relist", [True, False], ids=["by a list", "by a watch"])
def test_a_pod_that_cannot_be_decoded_takes_the_earlier_one_of_its_name_along(api, tmp_path, relist):
    """Its deletion was missed, and the new pod has another uid."""
    index, clock = ClusterIndex(), Clock()
    api.put("pods", "web-0", "shop", uid="old", **POD)

    def sink(changes):
        return [(meta_of(value), why) for event, value in changes if (why := index.apply(event, value))]

    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], sink, timing=QUICK, pace=clock)
    while not reflector.state().synced:
        reflector.turn()
    assert "web-0" in pod_names(index, "shop")
    api.put("pods", "web-0", "shop", uid="new", spec={"nodeName": 7})
    if relist:
        reflector._begin_anew()
    for _ in range(3):
        reflector.turn()
    assert reflector.state().left_out == 1
    assert "web-0" not in pod_names(index, "shop")


# -- failures that stay: what an hour of them costs


def requests_in_an_hour(api, folder, *, what, fault, name="pods"):
    api.strike(what, fault, times=10**9)
    clock = Clock()
    reflector = Reflector(server(api, folder), RESOURCES[name], Table(), timing=Timing(silence=0.02), pace=clock)
    ended = clock.time + 3600
    while clock.time < ended:
        seconds = reflector.turn()
        if seconds:
            clock.wait(seconds)
        assert len(api.requests) < 2000
    return len(api.requests), reflector, clock


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "fault"),
    [
        pytest.param("any", refuse(401), id="401"),
        pytest.param("any", refuse(403), id="403"),
        pytest.param("any", refuse(404), id="404"),
        pytest.param("any", refuse(410), id="410"),
        pytest.param("any", refuse(429, Retry_After="0"), id="429 that asks for no wait"),
        pytest.param("any", refuse(500), id="500"),
        pytest.param("any", cut, id="no answer"),
        pytest.param("any", html, id="another server"),
        pytest.param("watch", gone_as_event, id="every watch: 410 as an event"),
        pytest.param("watch", refuse(410), id="every watch: 410 as a status"),
        pytest.param("watch", ends_at_once, id="every watch ends at once"),
        pytest.param("watch", silent_watch, id="every watch is silent"),
        pytest.param("watch", torn(b'{"type":"ADDED"}\n{"ty'), id="every watch is torn"),
        pytest.param(
            "watch", says(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}'), id="one event each"
        ),
    ],
)
def test_a_failure_that_stays_makes_few_requests(api, tmp_path, what, fault):
    requests, reflector, clock = requests_in_an_hour(api, tmp_path, what=what, fault=fault)

    # 15 to 30 s apart, each at most a list of one page and a watch, after a few quicker ones.
    assert 100 < requests < 2 * 240 + 16
    assert max(clock.waits) <= 30.0
    assert reflector.state().fault


def test_a_watch_that_is_ended_after_news_goes_on_at_once(api, tmp_path):
    """As a server does to a reader who falls behind a burst of events, again and again."""
    versions = itertools.count(100)

    def one_more(handler, request):
        made = {"metadata": {"name": "busy", "namespace": "shop", "resourceVersion": str(next(versions))}}
        return says(json.dumps({"type": "MODIFIED", "object": made}).encode())(handler, request)

    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], Table(), pace=Clock())
    reflector.turn()
    api.strike("watch", one_more, times=10)
    waits = [reflector.turn() for _ in range(10)]
    api.strike("watch", ends_at_once, times=1)

    assert min(waits) > 0.0
    assert max(waits) <= 0.15
    assert reflector.state().fault == ""
    assert reflector.turn() <= 1.0, "one that brings nothing is the first of its kind"


def test_a_server_that_asks_for_time_gets_it(api, tmp_path):
    requests, _, clock = requests_in_an_hour(api, tmp_path, what="any", fault=refuse(429, Retry_After="90"))

    assert set(clock.waits) == {90.0}
    assert requests == 40


def test_nobody_is_made_to_wait_for_a_day(api, tmp_path):
    _, _, clock = requests_in_an_hour(api, tmp_path, what="any", fault=refuse(503, Retry_After="86400"))

    assert set(clock.waits) == {120.0}


def test_an_optional_kind_that_is_forbidden_is_off_and_asked_for_every_five_minutes(api, tmp_path):
    requests, reflector, clock = requests_in_an_hour(
        api, tmp_path, what="any", fault=refuse(403, "no"), name="horizontalpodautoscalers"
    )
    state = reflector.state()

    assert (requests, set(clock.waits)) == (12, {300.0})
    assert (state.off, state.tried, state.synced) == (True, True, False)
    assert state.fault == "403 no; grant list and watch of horizontalpodautoscalers"


def test_a_long_life_makes_the_next_wait_short_again(api, tmp_path):
    clock = Clock()
    timing = Timing(silence=1.0, steady=0.0)
    reflector = Reflector(server(api, tmp_path), RESOURCES["pods"], Table(), timing=timing, pace=clock)
    api.strike("list", refuse(500), times=8)
    waits = [reflector.turn() for _ in range(9)]
    api.strike("watch", torn(b'{"type":"ADDED","object":{}}\n{"ty'), times=1)
    again = reflector.turn()

    assert waits[-1] == 0.0
    assert waits[0] <= 0.5
    assert waits[-2] >= 15.0
    assert 0.0 < again <= 0.5


# -- credentials


def test_a_token_that_was_rotated_is_read_again(api, tmp_path):
    token = tmp_path / "token"
    token.write_text("first")
    file = api.kubeconfig(tmp_path, token_file=token)
    table = Table()
    reflector = Reflector(ApiServer(Account(kubeconfig=file)), RESOURCES["pods"], table, timing=QUICK, pace=Clock())
    api.accepted = {"second"}

    assert reflector.turn() > 0
    assert reflector.state().fault == "401 Unauthorized"
    token.write_text("second")
    assert reflector.turn() > 0
    assert reflector.turn() == 0.0
    assert (reflector.state().fault, table.values) == ("", truth(api, "pods"))


def test_many_threads_with_one_refused_token_read_it_once(api, tmp_path):
    connected = server(api, tmp_path)
    connected.renew(0)
    connected.renew(0)

    assert connected.renewals == 1
