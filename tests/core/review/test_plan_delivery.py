"""What a workload's pod template gets of the plan that is stored for its SpreadGroup."""

import json
import time

import msgspec
import pytest
from build import cluster, index
from core.groups.grouped import cap, written, zones
from core.groups.grouped import redis as asked
from core.groups.status.stands import SIX, members, told
from core.groups.status.test_assess import REFUSED
from manifest import request

from webhook.core.api.version import RECORDED
from webhook.core.api.well_known import HOSTNAME, ZONE
from webhook.core.context import Context
from webhook.core.groups.status.forms import status_json
from webhook.core.policy.policy import Policy
from webhook.core.review.mutation import mutate

TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
ON_NODES = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "redis"}},
    "minDomains": 1000000,
}
SOFT = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "fromTheFuture": 1}
HARD = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
CONDITIONS = tuple({"type": each, "status": "True"} for each in ("Planned", "Fits", "CannotGetStuck"))
INJECTED = "evenspread.io/injected"


def shard(number, zones=("a", "b"), constraints=(ON_NODES,), **more):
    entry = {"kind": "StatefulSet", "name": f"redis-{number}", "shard": str(number), "zones": list(zones)}
    return entry | {"topologySpreadConstraints": list(constraints)} | more


def stored(*workloads, conditions=CONDITIONS, **more):
    status = {"observedGeneration": 1, "revision": "7f3a", "conditions": list(conditions)}
    return status | {"workloads": list(workloads or map(shard, range(3)))} | more


def group(name="cache", status=None, **more):
    return written(name, status=stored() if status is None else status, **{"delivery": "inject"} | more)


def redis(name="redis-0", labels=None, meta=None, kind="StatefulSet", **spec):
    metadata = {"labels": {"app": "redis", "shard": name[-1]} if labels is None else labels} | (meta or {})
    template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]} | spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": metadata["labels"]}, "template": template},
    }


def answer(made, *groups, old=None, known=True, **fields):
    found = cluster("a: n1 | b: n2 | c: n3") if known else None
    for each in groups or (group(),) if known else ():
        found.apply("ADDED", each)
    return mutate(request(made, old, **fields), Context(policy=Policy(), index=found, version=RECORDED))


def patched(made, decision):
    """The object after the patch; each operation has to apply to what is there."""
    after = json.loads(json.dumps(made))
    for each in decision.patch:
        *steps, last = [step.replace("~1", "/") for step in each["path"].split("/")[1:]]
        place = after
        for step in steps:
            place = place[step]
        assert each["op"] == "add"
        place[last] = each["value"]
    return after


def pinned(after):
    return after["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][TERMS]["nodeSelectorTerms"]


def test_a_template_gets_the_fields_of_its_shard_and_a_record_of_them():
    decision = answer(redis("redis-1"))
    spec = patched(redis("redis-1"), decision)["spec"]["template"]
    assert spec["spec"]["topologySpreadConstraints"] == [ON_NODES]
    pin = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
    apart = {"labelSelector": {"matchLabels": {"app": "redis", "shard": "1"}}, "topologyKey": ZONE}
    assert spec["spec"]["affinity"] == {
        "nodeAffinity": {TERMS: {"nodeSelectorTerms": [{"matchExpressions": [pin]}]}},
        "podAntiAffinity": {TERMS: [apart]},
    }
    record = json.loads(spec["metadata"]["annotations"][INJECTED])
    written_there = {"revision": "7f3a", "group": "cache", "constraints": [ON_NODES], "pin": pin, "apart": [apart]}
    assert record == written_there
    assert (decision.audit, decision.warnings, decision.allowed) == ({"delivered": "cache revision 7f3a"}, (), True)
    assert decision.delivery == "delivered"


def test_what_was_delivered_is_not_delivered_again():
    first = patched(redis(), answer(redis()))
    again = answer(first)
    assert (again.patch, again.reason, again.warnings) == ((), "already-there", ())
    assert again.delivery == "already-there"
    assert answer(patched(redis(kind="Deployment"), answer(redis(kind="Deployment")))).patch == ()


def test_what_the_author_wrote_beside_it_stays_as_it_was_sent():
    requirement = {"key": "disk", "operator": "In", "values": ["ssd"]}
    terms = [{"matchExpressions": [requirement]}, {"matchExpressions": [requirement | {"values": ["nvme"]}]}]
    near = [{"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "fromTheFuture": 1}}]
    affinity = {
        "nodeAffinity": {TERMS: {"nodeSelectorTerms": terms}},
        "podAffinity": {TERMS: []},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": near, TERMS: None},
    }
    made = redis(topologySpreadConstraints=[SOFT], affinity=affinity)
    after = patched(made, answer(made))
    spec = after["spec"]["template"]["spec"]
    assert spec["topologySpreadConstraints"] == [SOFT, ON_NODES]
    pin = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
    assert pinned(after) == [{"matchExpressions": [*each["matchExpressions"], pin]} for each in terms]
    assert spec["affinity"]["podAffinity"] == {TERMS: []}
    assert spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == near
    assert len(spec["affinity"]["podAntiAffinity"][TERMS]) == 1
    assert answer(after).patch == ()


def test_a_later_revision_takes_the_place_of_an_earlier_one():
    first = patched(redis(), answer(redis()))
    later = stored(shard(0, ("a", "c"), (ON_NODES | {"maxSkew": 2},)), revision="8b1c")
    after = patched(first, answer(first, group(status=later)))
    assert after["spec"]["template"]["spec"]["topologySpreadConstraints"] == [ON_NODES | {"maxSkew": 2}]
    assert [each["values"] for term in pinned(after) for each in term["matchExpressions"]] == [["a", "c"]]
    unpinned = stored(shard(0, ()), revision="9d2e")
    last = patched(after, answer(after, group(status=unpinned)))["spec"]["template"]["spec"]
    assert last["topologySpreadConstraints"] == [ON_NODES]
    assert list(last["affinity"]) == ["podAntiAffinity"]


def test_a_term_of_anti_affinity_that_was_delivered_gives_way_too():
    web = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    by_shard = {"labelSelector": {"matchLabels": {"app": "redis", "shard": "0"}}, "topologyKey": HOSTNAME}
    for own in ({}, {"affinity": {"podAntiAffinity": {TERMS: [web]}}}):
        first = patched(redis(**own), answer(redis(**own)))
        by_host = group(shard={"label": "shard", "neverShare": HOSTNAME}, status=stored(revision="8b1c"))
        after = patched(first, answer(first, by_host))
        terms = after["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][TERMS]
        assert terms == [*([web] if own else []), by_shard]
        assert json.loads(after["spec"]["template"]["metadata"]["annotations"][INJECTED])["apart"] == [by_shard]
        without = group(shard={"label": "shard"}, status=stored(shard(0, ()), revision="9d2e"))
        last = patched(after, answer(after, without))["spec"]["template"]["spec"].get("affinity") or {}
        assert last == own.get("affinity", {})


def test_a_group_with_another_name_takes_the_place_of_the_one_before():
    first = patched(redis(), answer(redis()))
    renamed = group("later", status=stored(shard(0, ("a", "c")), revision="8b1c"))
    decision = answer(first, renamed)
    assert (decision.warnings, decision.audit) == ((), {"delivered": "later revision 8b1c"})
    after = patched(first, decision)
    assert pinned(after) == [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "c"]}]}]
    assert after["spec"]["template"]["spec"]["topologySpreadConstraints"] == [ON_NODES]
    kept = answer(first, group("later", status=LOST))
    assert (kept.patch, kept.reason) == ((), "not-delivered")


def test_a_pin_that_goes_leaves_what_the_author_asked_of_nodes():
    requirement = {"key": "disk", "operator": "In", "values": ["ssd"]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}
    for own in (
        {TERMS: {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}},
        {TERMS: {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}} | preferred,
        preferred,
    ):
        made = redis(affinity={"nodeAffinity": own})
        first = patched(made, answer(made))
        last = patched(first, answer(first, group(status=stored(shard(0, ())))))
        assert last["spec"]["template"]["spec"]["affinity"]["nodeAffinity"] == own


@pytest.mark.parametrize("times", [1, 2])
def test_a_term_that_matches_no_node_stays_so(times):
    ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    terms = [{}, *[ssd] * times]
    made = redis(affinity={"nodeAffinity": {TERMS: {"nodeSelectorTerms": terms}}})
    after = patched(made, answer(made))
    pin = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
    assert pinned(after) == [{}, *[{"matchExpressions": [*ssd["matchExpressions"], pin]}] * times]
    assert answer(after).patch == ()


def test_a_pin_that_somebody_took_out_is_put_back():
    first = patched(redis(), answer(redis()))
    for affinity in (None, {"podAffinity": {}}, {"nodeAffinity": {}}):
        taken = json.loads(json.dumps(first))
        taken["spec"]["template"]["spec"]["affinity"] = affinity
        assert pinned(patched(taken, answer(taken))) == pinned(first)


def test_a_record_of_defaults_is_not_taken_for_one_of_a_plan():
    annotations = {INJECTED: json.dumps({"revision": "1", "constraints": [HARD]})}
    decision = answer(redis(meta={"annotations": annotations}, topologySpreadConstraints=[HARD]))
    assert (decision.patch, len(decision.warnings)) == ((), 1)


def test_required_domains_are_asked_of_nodes_where_there_are_no_pins():
    on = group(
        requiredDomains={"topologyKey": HOSTNAME, "values": ["n1", "n2"]},
        status=stored(shard(0, ())),
    )
    after = patched(redis(), answer(redis(), on))
    assert pinned(after) == [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1", "n2"]}]}]
    refused = answer(redis(nodeSelector={HOSTNAME: "n1"}), on)
    assert "the template's node selector or affinity excludes hostname n2" in refused.warnings[0]


def zoned(operator, *values):
    terms = [{"matchExpressions": [{"key": ZONE, "operator": operator, "values": list(values)}]}]
    return {"nodeAffinity": {TERMS: {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("made", "of", "why"),
    [
        pytest.param(
            redis(topologySpreadConstraints=[HARD]),
            group(),
            "the template has its own hard zone constraint",
            id="a hard constraint of its own",
        ),
        pytest.param(
            redis(nodeSelector={ZONE: "a"}),
            group(),
            "the template's node selector or affinity excludes zone b",
            id="a zone of its own",
        ),
        pytest.param(
            redis(affinity=zoned("In", "a", "c")),
            group(),
            "the template's node selector or affinity excludes zone b",
            id="zones of its own",
        ),
        pytest.param(
            redis(affinity=zoned("NotIn", "a")),
            group(),
            "the template's node selector or affinity excludes zone a",
            id="not in a zone",
        ),
        pytest.param(
            redis(affinity=zoned("DoesNotExist")),
            group(),
            "the template's node selector or affinity excludes zone a",
            id="in no zone",
        ),
        pytest.param(
            redis(affinity={"nodeAffinity": {TERMS: {"nodeSelectorTerms": [{}, {}]}}}),
            group(),
            "the template's node selector or affinity excludes zone a",
            id="on no node: an empty term matches none",
        ),
        pytest.param(
            redis(), group(generation=2), "its plan is not ready yet", id="the plan is of an earlier generation"
        ),
        pytest.param(redis(), written(delivery="inject"), "its plan is not ready yet", id="no plan"),
        pytest.param(
            redis(),
            group(status=stored(conditions=CONDITIONS[1:])),
            "its plan is not ready yet",
            id="planned it is not",
        ),
        pytest.param(
            redis(),
            group(status=stored(conditions=CONDITIONS[:2])),
            "its plan is not proven to place all pods",
            id="it may get stuck",
        ),
        pytest.param(
            redis(),
            group(status=stored(conditions=[{"type": "Planned", "status": "False", "reason": "Overlaps"}])),
            "it cannot be planned (Overlaps)",
            id="it cannot be planned",
        ),
        pytest.param(redis("redis-7"), group(), "the plan has no shard 7", id="a shard more"),
        pytest.param(
            redis(labels={"app": "redis"}),
            group(),
            "the template lacks the label shard, which names the shard",
            id="no shard",
        ),
        pytest.param(
            redis(),
            group(status=stored(shard(0, constraints=(ON_NODES | {"maxSkew": 0},)))),
            "kube-apiserver would refuse the plan's fields",
            id="a plan that somebody wrote",
        ),
        pytest.param(
            redis(),
            group(status=stored(shard(0, ("a b",)))),
            "kube-apiserver would refuse the plan's fields",
            id="zones that somebody wrote",
        ),
        pytest.param(
            redis(meta={"annotations": {"long": "x" * 262_000}}),
            group(),
            "the template's annotations and the plan's record exceed 256 KiB",
            id="no room",
        ),
    ],
)
def test_who_gets_nothing_is_told_why(made, of, why):
    decision = answer(made, of)
    told = f"evenspread: SpreadGroup cache: {why}; the plan is not delivered"
    assert (decision.allowed, decision.patch, decision.warnings) == (True, (), (told,))


def test_of_two_groups_that_select_the_same_pods_the_older_one_delivers():
    assert answer(redis(), group(), group("other")).audit == {"delivered": "cache revision 7f3a"}


@pytest.mark.parametrize("own", [zoned("In", "a", "b", "c"), zoned("NotIn", "c"), zoned("Exists")])
def test_zones_of_its_own_that_include_the_plan_are_no_contradiction(own):
    assert answer(redis(affinity=own)).audit == {"delivered": "cache revision 7f3a"}


def test_zones_of_the_authors_own_stay_beside_a_pin_and_after_it():
    own = zoned("In", "a", "b", "c")
    first = patched(redis(affinity=own), answer(redis(affinity=own)))
    conditions = own["nodeAffinity"][TERMS]["nodeSelectorTerms"][0]["matchExpressions"]
    pin = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
    assert pinned(first) == [{"matchExpressions": [*conditions, pin]}]
    assert answer(first).patch == ()
    last = patched(first, answer(first, group(status=stored(shard(0, ()), revision="9d2e"))))
    assert last["spec"]["template"]["spec"]["affinity"]["nodeAffinity"] == own["nodeAffinity"]


@pytest.mark.parametrize(
    ("operator", "terms"),
    [pytest.param("Exists", 1, id="one that meets the pod"), pytest.param("Bogus", 2, id="one that is none")],
)
def test_a_template_that_the_api_server_refuses_afterwards_is_no_bug(operator, terms):
    select = {"matchExpressions": [{"key": "app", "operator": operator}]}
    made = redis(affinity={"podAntiAffinity": {TERMS: [{"topologyKey": ZONE, "labelSelector": select}]}})
    spec = patched(made, answer(made))["spec"]["template"]["spec"]
    assert len(spec["affinity"]["podAntiAffinity"][TERMS]) == terms


def test_of_two_entries_of_a_shard_the_one_of_the_workload_counts():
    entries = (shard(0, ("b", "c"), name="blue"), shard(0, ("a", "c"), name="redis-0"))
    after = patched(redis(), answer(redis(), group(status=stored(*entries))))
    assert pinned(after)[0]["matchExpressions"][0]["values"] == ["a", "c"]
    after = patched(redis(), answer(redis(), group(status=stored(entries[0]))))
    assert pinned(after)[0]["matchExpressions"][0]["values"] == ["b", "c"]


SKIPPED = {"annotations": {"evenspread.io/skip": "true"}}


@pytest.mark.parametrize(
    ("made", "of", "fields", "reason"),
    [
        pytest.param(redis(), written(delivery="status", status=stored()), {}, "no-group", id="status only"),
        pytest.param(redis(), written(status=stored()), {}, "no-group", id="delivery by default"),
        pytest.param(redis(labels={"app": "web", "shard": "0"}), group(), {}, "no-group", id="pods of others"),
        pytest.param(redis(), group(), {"namespace": "other"}, "no-group", id="another namespace"),
        pytest.param(redis(meta=SKIPPED), group(), {}, "opted-out", id="the template opts out"),
        pytest.param(redis() | {"metadata": {"name": "r"} | SKIPPED}, group(), {}, "opted-out", id="it opts out"),
        pytest.param(redis(), group(), {"known": False}, "cluster-unknown", id="no cluster"),
        pytest.param(redis() | {"spec": {"replicas": "x"}}, group(), {}, "unreadable", id="a broken object"),
        pytest.param(redis() | {"spec": {"template": {}}}, group(), {}, "unreadable", id="no spec"),
        pytest.param(redis(kind="DaemonSet"), group(), {}, "not a pod", id="another kind"),
        pytest.param(redis(), group(), {"operation": "DELETE"}, "not a pod", id="a deletion"),
        pytest.param(redis(), group(), {"sub_resource": "scale"}, "not a pod", id="a subresource"),
    ],
)
def test_who_is_left_as_it_is(made, of, fields, reason):
    decision = answer(made, of, **fields)
    assert (decision.reason, decision.patch, decision.warnings) == (reason, (), ())


def test_a_template_that_runs_is_only_touched_when_its_author_changes_it():
    scaled = redis()
    scaled["spec"]["replicas"] = 3
    assert answer(scaled, old=redis()).reason == "template-unchanged"
    changed = redis(containers=[{"name": "c", "image": "j", "ports": [{"containerPort": 1}]}])
    assert answer(changed, old=redis()).audit == {"delivered": "cache revision 7f3a"}
    restarted = redis(meta={"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}})
    assert answer(restarted, old=redis()).audit == {"delivered": "cache revision 7f3a"}
    broken = msgspec.structs.replace(request(redis(), redis()), old_object=b"{")
    here = Context(policy=Policy(), index=index(group()), version=RECORDED)
    assert mutate(broken, here).audit == {"delivered": "cache revision 7f3a"}
    assert answer(redis(), old={**redis(), "spec": {}}).audit == {"delivered": "cache revision 7f3a"}


OTHER = stored(shard(0, ("a", "c"), (ON_NODES | {"maxSkew": 2},)), revision="8b1c")
LOST = stored(conditions=CONDITIONS[:1])


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="the same plan"),
        pytest.param(stored(revision="8b1c"), id="another revision with the same fields"),
        pytest.param(OTHER, id="another plan"),
        pytest.param(LOST, id="a plan that does not hold any more"),
    ],
)
def test_who_writes_the_object_again_without_the_fields_restarts_nothing(status):
    running = patched(redis(), answer(redis()))
    again = answer(redis(), group(status=status), old=running)
    assert (patched(redis(), again), again.reason) == (running, "already-there")
    scaled = redis()
    scaled["spec"]["replicas"] = 5
    assert (
        patched(scaled, answer(scaled, group(status=status), old=running))["spec"]["template"]
        == (running["spec"]["template"])
    )


def test_a_template_that_changes_gets_the_present_plan_or_keeps_what_it_has():
    running, changed = patched(redis(), answer(redis())), redis(priority=5)
    later = patched(changed, answer(changed, group(status=OTHER), old=running))
    assert pinned(later)[0]["matchExpressions"][0]["values"] == ["a", "c"]
    kept = answer(changed, group(status=LOST), old=running)
    assert pinned(patched(changed, kept)) == pinned(running)
    assert (kept.audit, kept.warnings) == ({"delivered": "cache revision 7f3a"}, ())
    same = patched(changed, answer(changed, group(status=stored(revision="8b1c")), old=running))
    assert same["spec"]["template"]["metadata"] == running["spec"]["template"]["metadata"]
    own = redis(topologySpreadConstraints=[HARD])
    assert "its own hard zone constraint" in answer(own, group(status=OTHER), old=running).warnings[0]


@pytest.mark.parametrize(("of", "more", "reason", "_message"), REFUSED)
def test_of_a_group_that_is_refused_nothing_is_delivered(of, more, reason, _message):
    """What the controller writes of it, read by the webhook; also where an earlier plan is still stored."""
    status = status_json(told(of, cluster(SIX), **{"of": members()} | more))
    for stale in ({}, {"workloads": stored()["workloads"]}):
        decision = answer(redis(), group(status=status | stale))
        assert decision.patch == ()
        assert decision.warnings == (
            f"evenspread: SpreadGroup cache: it cannot be planned ({reason}); the plan is not delivered",
        )


@pytest.mark.parametrize(
    ("of", "nodes"),
    [
        pytest.param(asked(3), zones(3, 3), id="less than half of the pods in each of two zones"),
        pytest.param(asked(3, caps=(cap(ZONE, "<1/6"),)), SIX, id="a cap below one pod"),
        pytest.param(asked(3, 3), zones(3, 3), id="three pods of a shard in two zones"),
    ],
)
def test_of_a_group_that_is_impossible_nothing_is_delivered(of, nodes):
    status = status_json(told(of, cluster(nodes), members()))
    assert answer(redis(), group(status=status)).warnings == (
        "evenspread: SpreadGroup cache: it cannot be planned (Impossible); the plan is not delivered",
    )


def test_of_a_group_that_says_nothing_nothing_is_delivered():
    """It selects no pod, whatever its status says."""
    decision = answer(redis(), group(caps=[{"topologyKey": ZONE}]))
    assert (decision.patch, decision.warnings) == ((), ())


def softened(number):
    return {"maxSkew": number + 1, "topologyKey": f"rack-{number}", "whenUnsatisfiable": "ScheduleAnyway"}


def recorded(**fields):
    """The metadata of a template of which somebody says that a plan was delivered."""
    record = {"revision": "1", "group": "cache"} | fields
    return {"annotations": {INJECTED: json.dumps(record)}}


@pytest.mark.parametrize(
    ("constraints", "told"),
    [
        pytest.param([softened(each) for each in range(16)], "", id="as many as rules look at"),
        pytest.param([softened(each) for each in range(1500)], "the template has more than 16 constraints", id="more"),
    ],
)
@pytest.mark.parametrize("earlier", [[], [softened(-each - 2) for each in range(1500)]])
def test_a_template_that_says_more_than_people_do_is_not_compared_with_a_plan(constraints, earlier, told):
    """Each with each takes seconds, in the event loop; the record too is the author's to write."""
    made = redis(meta=recorded(constraints=earlier), topologySpreadConstraints=constraints)
    began = time.process_time()
    decision = answer(made)
    assert time.process_time() - began < 0.1
    assert [told in each for each in decision.warnings] == [True] * bool(told)
    assert bool(decision.patch) is not bool(told)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"constraints": [HARD] * 17}, id="constraints"),
        pytest.param({"constraints": [HARD], "apart": [{"topologyKey": ZONE}] * 16}, id="terms"),
        pytest.param(
            {"constraints": [HARD], "pin": {"key": ZONE, "operator": "In", "values": ["a"] * 65}}, id="zones of a pin"
        ),
        pytest.param(
            {
                "constraints": [
                    HARD | {"labelSelector": {"matchLabels": {f"k{each}": "" for each in range(1025)}}},
                    HARD,
                ]
            },
            id="labels",
        ),
    ],
)
def test_a_record_that_is_longer_than_any_of_ours_is_none(fields):
    """So what it says was delivered is the author's own: a hard constraint over zones, which contradicts the plan."""
    own = {"topologySpreadConstraints": [HARD]}
    assert "its own hard zone constraint" in answer(redis(meta=recorded(**fields), **own)).warnings[0]
    assert answer(redis(meta=recorded(constraints=[HARD]), **own)).patch
