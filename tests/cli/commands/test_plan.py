"""``evenspread plan``: the page, the JSON, the patches, and what is said of groups that cannot be planned."""

import json
import shlex

import pytest
import yaml
from cli.snapshots import node, snapshot
from cluster.api import NOT_INSTALLED, FakeApi
from manifest import workload
from msgspec.structs import replace

from webhook.answers import planned
from webhook.cli.commands.plan import targets

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SIX = "a: a0 a1 | b: b0 b1 | c: c0 c1"
CAPS = [{"topologyKey": HOSTNAME, "lessThan": "1/3"}, {"topologyKey": ZONE, "lessThan": "1/2"}]


def group(shards=3, *, caps=CAPS, name="cache", **more):
    spec = {
        "selector": {"matchLabels": {"app": "redis"}},
        "shard": {"label": "shard", "neverShare": ZONE},
        "expected": {"shards": shards, "podsPerShard": 2},
        "caps": caps,
    }
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "evenspread.io/v1alpha1", "kind": "SpreadGroup", "metadata": meta, "spec": spec | more}


def config_map(**data):
    given = {"cluster-size": "6", "max-pod-on-node": "1", "max-pod-in-zone": "2", "available-zones": "a,b,c"} | data
    meta = {"name": "redis", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": given}


def shard(number, *constraints, namespace="shop", pods="", replicas=2, **more):
    labels = f"app=redis shard={number} {pods}"
    meta = {"name": f"redis-{number}", "namespace": namespace}
    return workload("StatefulSet", labels, *constraints, meta=meta, replicas=replicas, **more)


def running(name, node, number):
    meta = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "redis", "shard": str(number)}}
    spec = {"nodeName": node, "containers": [{"name": "c"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


@pytest.fixture
def plan(run, tmp_path):
    """Plan what is in a file: gives exit code, standard output, standard error."""

    def plan(*manifests, arguments=(), state=SIX, objects=(), **more):
        file = tmp_path / "snapshot.jsonl"
        file.write_bytes(snapshot(state, *objects, **more))
        stdin = "\n---\n".join(json.dumps(each) for each in manifests).encode()
        words = ["-"] if manifests else []
        return run("plan", *words, "--snapshot", str(file), "-n", "shop", *arguments, stdin=stdin)

    return plan


@pytest.fixture
def answer(plan):
    """The JSON, and the exit code."""

    def answer(*manifests, **more):
        code, out, err = plan(*manifests, arguments=("-o", "json"), **more)
        assert not err
        return json.loads(out), code

    return answer


def flat(out):
    return " ".join(out.split())


def test_the_naive_fields_and_their_faults(plan):
    code, out, err = plan(group(), *map(shard, range(3)))
    assert (code, err) == (0, "")
    assert "the caps used as maxSkew (node 1 and zone 2)\n  can get stuck in 16% of the orders, for example:" in out
    assert "redis-2-0 -> c0 (c) then no node admits redis-2-1" in flat(out)
    assert "\n  redis-0    #    #    .\n  redis-1    #    .    #\n  redis-2    .    #    #\n" in out
    assert flat(out).endswith(
        "-o patch prints a command for each existing shard, -o manifest all objects; "
        "applying the plan restarts the pods of 3 workloads"
    )


@pytest.mark.slow
def test_fields_with_which_every_order_that_is_tried_gets_stuck(plan):
    cap = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 1_000_000}
    own = cap | {"labelSelector": {"matchLabels": {"app": "redis"}}}
    nodes = "a: a0 a1 a2 | b: b0 b1 b2 | c: c0 c1 c2"
    _, out, _ = plan(group(9), *(shard(number, own) for number in range(9)), state=nodes)
    assert "the fields of the templates (node 1)\n  can get stuck in every tried order, for example:\n" in out
    lone = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "redis"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [lone]}}
    code, out, _ = plan(group(9), *(shard(number, affinity=apart) for number in range(9)), state=nodes)
    assert code == 1
    assert "can get stuck, but no order breaks a cap" in out
    assert "100% of the tried orders get stuck" in out


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.0004, "less than 1%"), (0.0099, "less than 1%"), (0.014, "1%"), (0.9999, "more than 99%"), (1.0, "100%")],
)
def test_few_orders_are_not_none_and_most_are_not_all(plan, monkeypatch, share, told):
    def found(*given):
        real = planned.plan_answer(*given)
        return replace(real, seen=replace(real.seen, stuck=share))

    monkeypatch.setattr(targets, "plan_answer", found)
    _, out, _ = plan(group(), *map(shard, range(3)))
    assert f"can get stuck in {told} of the orders, for example:\n" in out


def test_the_promised_shape(answer):
    found, code = answer(group(), *map(shard, range(3)))
    assert code == 0
    assert (found["group"], found["pods"]) == ("cache", 6)
    assert found["caps"] == [
        {"topologyKey": HOSTNAME, "lessThan": "1/3", "most": 1, "enforced": True},
        {"topologyKey": ZONE, "lessThan": "1/2", "most": 2, "enforced": True},
    ]
    naive, derived = found["naive"], found["derived"]
    assert (naive["verdict"], naive["stuckProbability"]) == ("can-get-stuck", pytest.approx(133 / 810))
    assert [each["maxSkew"] for each in naive["constraints"]] == [1, 2]
    assert [(each["topologyKey"], each["pods"], each["most"]) for each in naive["worst"]] == [
        (HOSTNAME, 1, 1),
        (ZONE, 2, 2),
    ]
    assert len(naive["witness"]) == 5
    assert (derived["verdict"], derived["proof"], derived["sameUpTo"]) == ("fits", "zone by zone", 3)
    assert derived["zones"] == {"redis-0": ["a", "b"], "redis-1": ["a", "c"], "redis-2": ["b", "c"]}
    assert derived["worst"] == [
        {"topologyKey": HOSTNAME, "pods": 1, "most": 1, "way": "exact cap"},
        {"topologyKey": ZONE, "pods": 2, "most": 2, "way": "pins"},
    ]
    mine = derived["workloads"]["redis-1"]
    assert [(each["maxSkew"], each["minDomains"]) for each in mine["constraints"]] == [(1, 1_000_000)]
    assert mine["affinity"].keys() == {"nodeAffinity", "podAntiAffinity"}


def test_the_patches_are_commands_of_kubectl(plan):
    code, out, err = plan(group(), shard(0), shard(1), arguments=("-o", "patch"))
    assert code == 0
    assert err == "shards without a manifest have no patch; use -o manifest for them\n"
    commands = [shlex.split(line) for line in out.splitlines()]
    assert [each[:6] for each in commands] == [
        ["kubectl", "patch", "statefulset", f"redis-{number}", "-n", "shop"] for number in range(2)
    ]
    assert json.loads(commands[0][-1])["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["maxSkew"] == 1


def test_with_its_own_patches_a_template_can_no_longer_get_stuck(plan, answer):
    _, out, _ = plan(group(), *map(shard, range(3)), arguments=("-o", "patch"))
    fields = [json.loads(shlex.split(line)[-1])["spec"]["template"]["spec"] for line in out.splitlines()]
    found, _ = answer(
        group(),
        *(shard(number, *given.pop("topologySpreadConstraints"), **given) for number, given in enumerate(fields)),
    )
    assert found["naive"]["verdict"] == "fits"


def test_a_config_map_of_the_field(plan):
    code, out, _ = plan(config_map())
    assert code == 0
    assert out.startswith("group redis: 3 shards of 2 pods that share no zone; 6 pods\n")
    assert (
        "note: no workload has the labels app=redis and shard, so the plan uses invented pods without requests"
        in flat(out)
    )
    assert flat(out).endswith(
        "-o manifest prints the SpreadGroup and a StatefulSet for each shard, to fill in and apply"
    )


BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        pytest.param({BETA_ZONE}, BETA_ZONE, id="the deprecated key alone"),
        pytest.param({BETA_ZONE, ZONE}, ZONE, id="both keys"),
        pytest.param({ZONE}, ZONE, id="the key of today"),
    ],
)
def test_zones_under_the_deprecated_key(plan, labels, key):
    """The field's own design has it."""
    made = [node(f"{zone}{number}", "") for zone in "abc" for number in (0, 1)]
    for each in made:
        zone = each["metadata"]["name"][0]
        each["metadata"]["labels"] |= dict.fromkeys(labels, zone)
        if ZONE not in labels:
            each["metadata"]["labels"].pop(ZONE, None)
    code, out, _ = plan(config_map(), state="", objects=made, arguments=("-o", "manifest"))
    assert code == 0
    documents_of = [*yaml.safe_load_all(out)]
    spec = documents_of[0]["spec"]
    assert (spec["shard"]["neverShare"], spec["requiredDomains"]["topologyKey"]) == (key, key)
    template = documents_of[1]["spec"]["template"]["spec"]
    assert {each["topologyKey"] for each in template["topologySpreadConstraints"]} == {HOSTNAME, key}


def written_by(plan, *manifests, **more):
    """The StatefulSets of ``-o manifest``, by name."""
    out = plan(*manifests, arguments=("-o", "manifest"), **more)[1]
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(out) if each["kind"] == "StatefulSet"}


def test_growing_leaves_the_templates_that_can_stay(plan):
    nodes = "a: a0 a1 a2 a3 | b: b0 b1 b2 b3 | c: c0 c1 c2 c3"
    three = written_by(plan, config_map(), state=nodes)
    larger = config_map(**{"cluster-size": "10", "max-pod-on-node": "3", "max-pod-in-zone": "4"})
    five = written_by(plan, larger, *three.values(), state=nodes)
    assert len(five) == 5
    for name, before in three.items():
        assert five[name]["spec"]["template"] == before["spec"]["template"]
    out = plan(larger, *three.values(), state=nodes)[1]
    assert "note: the fields of the templates keep the caps and stay" in flat(out)
    assert "no existing template changes" in flat(out)


@pytest.mark.parametrize("on_node", ["1", "2", "3"])
@pytest.mark.parametrize("in_zone", ["2", "3", "4"])
def test_planned_manifests_have_no_constraint_without_effect(run, plan, on_node, in_zone):
    given = config_map(**{"max-pod-on-node": on_node, "max-pod-in-zone": in_zone})
    code, out, _ = plan(given, arguments=("-o", "manifest"))
    assert (code, "ScheduleAnyway" in out) == (0, True)
    found = run("check", "-", "--snapshot", "snapshot.jsonl", "--fail-on", "low", stdin=out.encode())
    assert (found[0], "1 file, 4 objects, 3 workloads: no findings\n" in found[1]) == (0, True), found[1]


def test_a_config_map_says_up_to_which_size_fields_stay(plan):
    nodes = "a: a0 a1 a2 a3 | b: b0 b1 b2 b3 | c: c0 c1 c2 c3"
    given = {"cluster-size": "6", "plan-for-size": "10"}
    three = written_by(plan, config_map(**given), state=nodes)
    out = plan(config_map(**given), state=nodes, arguments=("-o", "manifest"))[1]
    assert next(yaml.safe_load_all(out))["spec"]["planFor"] == {"shards": 5}
    larger = {"cluster-size": "10", "max-pod-on-node": "3", "max-pod-in-zone": "4"}
    five = written_by(plan, config_map(**larger), *three.values(), state=nodes)
    assert all(five[name]["spec"]["template"] == each["spec"]["template"] for name, each in three.items())


def test_what_a_config_map_says_and_nobody_reads(plan):
    _, out, _ = plan(config_map(**{"max-pods-on-node": "1", "available-zones": "a,b,c,d"}))
    assert "note: data[max-pods-on-node] is ignored" in flat(out)
    assert "note: the group names d, but no node there admits a pod of the group" in flat(out)


def test_a_config_map_beside_its_workloads_takes_their_labels(answer):
    found, _ = answer(config_map(), *map(shard, range(3)))
    (first, *_) = found["derived"]["workloads"]["redis-0"]["constraints"]
    assert first["labelSelector"] == {"matchLabels": {"app": "redis"}}
    alike = [
        workload("StatefulSet", "app=redis", meta={"name": name, "namespace": "shop"}, replicas=2) for name in "xy"
    ]
    found, _ = answer(config_map(), *alike)
    assert found["derived"]["workloads"].keys() == {"redis-0", "redis-1", "redis-2"}


def documents(out):
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(out)}


def test_the_manifests_are_the_group_and_its_shards(plan, answer):
    code, out, err = plan(config_map(), arguments=("-o", "manifest"))
    assert (code, err) == (0, "")
    assert out.count("# invented: add your containers, volumes and Service\n") == 3
    found = documents(out)
    assert [*found] == [("SpreadGroup", "redis"), *(("StatefulSet", f"redis-{number}") for number in range(3))]
    assert {each["metadata"]["namespace"] for each in found.values()} == {"shop"}
    # What they come to is what was asked for.
    again, code = answer(*found.values())
    asked, _ = answer(config_map())
    assert (code, again["caps"], again["naive"]["verdict"]) == (0, asked["caps"], "fits")
    assert again["derived"]["workloads"] == asked["derived"]["workloads"]


def test_a_shard_that_nobody_has_written_is_as_the_first(plan):
    first = shard(0, containers=[{"name": "c", "image": "redis:8", "args": ["redis-0", "0"]}])
    first["spec"]["selector"] = {"matchLabels": {"app": "redis", "shard": "0"}}
    first["spec"] |= {"serviceName": "redis-0", "volumeClaimTemplates": [{"metadata": {"labels": {"shard": "0"}}}]}
    code, out, err = plan(group(), first, arguments=("-o", "manifest"))
    assert (code, err, out.count("# copied from redis-0: adapt other values that belong to redis-0\n")) == (0, "", 2)
    found = documents(out)
    made = found["StatefulSet", "redis-1"]["spec"]
    assert (made["serviceName"], made["replicas"]) == ("redis-1", 2)
    assert made["selector"]["matchLabels"] == made["template"]["metadata"]["labels"] == {"app": "redis", "shard": "1"}
    assert made["volumeClaimTemplates"] == [{"metadata": {"labels": {"shard": "1"}}}]
    assert made["template"]["spec"]["containers"] == [{"name": "c", "image": "redis:8", "args": ["redis-0", "0"]}]
    assert made["template"]["spec"]["affinity"]["podAntiAffinity"]


def test_of_a_shard_that_is_as_the_first_only_name_label_and_pods_are_its_own(plan):
    labels = {"app": "redis", "shard": "0"}
    first = shard(0, replicas=1, containers=[{"name": "redis", "image": "redis"}])
    first["metadata"] |= {"name": "redis", "namespace": "redis", "labels": labels}
    first["spec"]["template"]["metadata"]["annotations"] = {"evenspread.io/injected": "{}", "note": "redis"}
    first["spec"] |= {"selector": {"matchLabels": labels}, "serviceName": "all-redis"}
    of = group()
    of["metadata"]["namespace"] = "redis"
    _, out, _ = plan(of, first, arguments=("-n", "redis", "-o", "manifest"))
    made = documents(out)["StatefulSet", "redis-1"]
    assert made["metadata"] == {"name": "redis-1", "namespace": "redis", "labels": labels | {"shard": "1"}}
    assert (made["spec"]["serviceName"], made["spec"]["replicas"]) == ("all-redis", 2)
    template = made["spec"]["template"]
    assert template["metadata"] == {"labels": labels | {"shard": "1"}, "annotations": {"note": "redis"}}
    assert template["spec"]["containers"] == [{"name": "redis", "image": "redis"}]


def test_a_shard_that_is_as_the_first_selects_its_own_pods(plan, answer):
    own = {"matchExpressions": [{"key": "shard", "operator": "In", "values": ["0"]}]}
    term = {"topologyKey": HOSTNAME, "labelSelector": own}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    first = shard(0, affinity=apart)
    first["spec"]["selector"] = own
    first["spec"]["template"]["metadata"]["annotations"] = {"evenspread.io/injected": "{}"}
    _, out, _ = plan(group(), first, arguments=("-o", "manifest"))
    made = documents(out)["StatefulSet", "redis-2"]["spec"]
    of_two = {"matchExpressions": [{"key": "shard", "operator": "In", "values": ["2"]}]}
    kept = made["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (made["selector"], kept[0]["labelSelector"]) == (of_two, of_two)
    assert "annotations" not in made["template"]["metadata"]
    again, code = answer(*documents(out).values())
    assert (code, again["derived"]["verdict"]) == (0, "fits")


def test_a_manifest_has_nothing_that_the_api_server_keeps(plan):
    kept = {"uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "mine"}
    of = shard(0)
    of["metadata"] |= kept | {"annotations": notes}
    made = group() | {"status": {"revision": "7f3a"}}
    _, out, _ = plan(objects=[made, of], arguments=("-o", "manifest"))
    found = documents(out)
    assert found["StatefulSet", "redis-0"]["metadata"] == {
        "name": "redis-0",
        "namespace": "shop",
        "labels": {"a": "b"},
        "annotations": {"note": "mine"},
    }
    assert found["SpreadGroup", "cache"] == group()


@pytest.mark.parametrize("output", ["patch", "manifest"])
@pytest.mark.parametrize(
    ("of", "state", "said"),
    [
        pytest.param(group(9), "a: a0 a1 a2 | b: b0 b1 b2", "no fields keep the caps", id="impossible"),
        pytest.param(
            group(9, caps=[], shard={"label": "shard", "neverShare": HOSTNAME}),
            "a: a0 a1",
            "the plan is not proven to place all pods",
            id="not proven",
        ),
    ],
)
@pytest.mark.slow
def test_a_plan_that_may_not_do_is_told_to_whoever_applies_it(plan, output, of, state, said):
    code, _, err = plan(of, state=state, arguments=("-o", output))
    assert (code, err) == (1, f"group cache: {said} (-o text prints the reasons)\n")


PINNED = {"0": ["b", "c"], "1": ["a", "c"], "2": ["a", "b"]}


def planned_before(skew=1):
    """What the controller stored; other zones than a plan made anew has."""
    cap = {"maxSkew": skew, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 1_000_000}
    given = [cap | {"labelSelector": {"matchLabels": {"app": "redis"}}}]
    named = {"kind": "StatefulSet", "topologySpreadConstraints": given}
    of = [named | {"name": f"redis-{each}", "shard": each, "zones": zones} for each, zones in PINNED.items()]
    return {"status": {"revision": "7f3a", "workloads": of}}


def test_a_workload_of_the_cluster_that_cannot_be_read_is_left_out(plan):
    code, out, err = plan(group(), objects=[*map(shard, range(3)), shard(3) | {"spec": {"template": 5}}])
    assert (code, "redis-2" in out, "redis-3" in out) == (0, True, False)
    assert "note: StatefulSet shop/redis-3: StatefulSet in version" in err


def test_fields_that_are_stored_stay_as_the_controller_keeps_them(plan, answer):
    there = group() | planned_before()
    found, code = answer(objects=[there, *map(shard, range(3))])
    zones = {f"redis-{number}": zones for number, zones in PINNED.items()}
    assert (code, found["derived"]["zones"]) == (0, zones)
    # A file that asks for more of the same group.
    nodes = "a: a0 a1 a2 a3 | b: b0 b1 b2 b3 | c: c0 c1 c2 c3"
    more, code = answer(group(5), objects=[there, *map(shard, range(3))], state=nodes)
    constraints = more["derived"]["workloads"]["redis-4"]["constraints"]
    assert (code, constraints[0]["maxSkew"], constraints[0]["minDomains"]) == (0, 1, 1_000_000)
    assert more["derived"]["zones"].items() >= zones.items()
    _, out, _ = plan(group(5), objects=[there], state=nodes)
    assert "note: the stored fields keep the caps and stay" in out


def test_who_restarts(plan):
    _, out, _ = plan(group(), shard(0), shard(1), arguments=("-o", "manifest"))
    first, second, third = list(yaml.safe_load_all(out))[1:]
    _, out, _ = plan(group(), first, second, third)
    assert flat(out).endswith("-o manifest all objects; no existing template changes")
    second["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["maxSkew"] = 2
    _, out, _ = plan(group(), first, second)
    assert flat(out).endswith("applying the plan restarts the pods of 1 workload")


def test_fields_that_are_stored_and_break_a_cap_give_way(plan, answer):
    there = group() | planned_before(skew=2)
    found, code = answer(objects=[there, *map(shard, range(3))])
    assert (code, found["derived"]["workloads"]["redis-0"]["constraints"][0]["maxSkew"]) == (0, 1)
    _, out, _ = plan(objects=[there])
    assert "stored" not in out


def test_stored_zones_that_leave_no_way_give_way_as_the_controller_has_it(plan, answer):
    there = group() | planned_before()
    for each, zones in zip(there["status"]["workloads"], (["a", "b"], ["a", "b"], ["a", "c"]), strict=True):
        each["zones"] = zones
    found, code = answer(objects=[there, *map(shard, range(3))])
    assert (code, found["derived"]["verdict"], found["derived"]["nearest"]) == (0, "fits", [])
    assert sorted("".join(each) for each in found["derived"]["zones"].values()) == ["ab", "ac", "bc"]
    _, out, _ = plan(objects=[there])
    assert "stored" not in out


def test_a_cluster_without_zones(plan):
    data = {"available-zones": "", "max-pod-in-zone": None, "max-pod-on-node": "2"}
    given = {key: value for key, value in config_map(**data)["data"].items() if value is not None}
    code, out, err = plan(config_map() | {"data": given}, state="n0 n1 n2 n3 n4 n5")
    assert (code, err) == (0, "")
    assert out.startswith("group redis: 3 shards of 2 pods that share no node; 6 pods\n")
    assert "\n  admitting nodes: 6\n" in out


@pytest.mark.slow
def test_eighteen_pods_break_the_cap(plan):
    data = {"cluster-size": "18", "max-pod-on-node": "5", "max-pod-in-zone": "8"}
    code, out, _ = plan(config_map(**data), state="a: a0 a1 a2 | b: b0 b1 b2 | c: c0 c1 c2")
    assert code == 0
    assert "can place 9 pods in zone a, above its cap of 8, for example:" in out
    assert "maxSkew 5 with minDomains above the number of nodes: at most 5 pods on a node" in flat(out)
    assert "\n  pods       6    6    6  at most 8\n" in out


def test_the_group_of_the_cluster(plan):
    objects = [
        group(),
        group(name="other"),
        *map(shard, range(3)),
        running("redis-0-0", "a0", 0),
        running("redis-0-1", "a1", 0),
    ]
    code, out, _ = plan(objects=objects, arguments=("--group", "cache"))
    assert code == 0
    assert out.count("group ") == 1
    assert "note: 2 pods run already; the plan places all pods from the start" in out
    code, out, _ = plan(objects=objects[:5])
    assert [line for line in out.splitlines() if line.startswith("group ")] == [
        f"group {name}: 3 shards of 2 pods that share no zone; 6 pods" for name in ("cache", "other")
    ]


def test_the_group_of_a_live_cluster(run, tmp_path):
    with FakeApi() as api:
        for name in ("a0", "a1", "b0", "b1", "c0", "c1"):
            made = node(name, name[0])
            api.put("nodes", name, metadata={"labels": made["metadata"]["labels"]}, status=made["status"])
        for number in range(3):
            api.put("statefulsets", f"redis-{number}", "shop", spec=shard(number)["spec"])
        api.put("spreadgroups", "cache", "shop", spec=group()["spec"])
        api.put("spreadgroups", "away", "other", spec=group()["spec"])
        where = ("--kubeconfig", api.kubeconfig(tmp_path), "-n", "shop")
        code, out, err = run("plan", *where)
        assert (code, err) == (0, NOT_INSTALLED)
        assert [line.split(":")[0] for line in out.splitlines() if line.startswith("group ")] == ["group cache"]
        assert "restarts the pods of 3 workloads" in flat(out)
        api.forbidden.add("spreadgroups")
        code, _, err = run("plan", *where)
        assert (code, "spreadgroups: 403 Forbidden" in err) == (4, True)


def test_a_file_goes_before_the_cluster(answer):
    small = shard(0, replicas=2, containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    found, _ = answer(group(), small, objects=[group(name="old"), *map(shard, range(4))])
    assert found["group"] == "cache"
    assert found["derived"]["sameUpTo"] == 3


def test_volumes_pin_their_shard(answer):
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}
    bound = []
    for ordinal, zone in enumerate("bc"):
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        spec = {"volumeName": f"pv-{zone}"}
        done = {"pv.kubernetes.io/bind-completed": "yes"}
        meta = {"name": f"data-redis-0-{ordinal}", "namespace": "shop", "annotations": done}
        bound += [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": meta,
                "spec": spec,
                "status": {"phase": "Bound"},
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"pv-{zone}"},
                "spec": {
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                    "claimRef": {"namespace": "shop", "name": meta["name"]},
                },
            },
        ]
    sets = [each | {"spec": each["spec"] | claims} for each in map(shard, range(3))]
    found, _ = answer(group(), *sets, objects=bound)
    assert found["derived"]["zones"]["redis-0"] == ["b", "c"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manifests", "state", "told"),
    [
        pytest.param(
            [group(9)],
            "a: a0 a1 a2 | b: b0 b1 b2",
            "no fields keep the caps the caps allow only 8 in a and 8 in b: 16 of 18 pods "
            "the smallest changes that fit in every order: "
            "at most 9 of 18 pods in a zone",
            id="two zones",
        ),
        pytest.param([group(3, caps=[])], SIX, "no cap is enforced", id="no caps"),
        pytest.param(
            [group(4)],
            SIX,
            "node: maxSkew 1, the largest that limits each node to 2 pods",
            id="maxSkew",
        ),
        pytest.param(
            [group(9)],
            "a: a0 a1 a2 | b: b0 b1 b2 | c: c0 c1 c2 | d: d0 d1 d2",
            "proof: after each placement in any order, a node admits each remaining pod",
            id="room",
        ),
        pytest.param([group(15, caps=CAPS[1:])], SIX, "and 3 more shards", id="many shards"),
        pytest.param(
            [group(3, planFor={"shards": 5})], SIX, "these fields also keep the caps with up to 3 shards", id="planned"
        ),
        pytest.param(
            [group(2, caps=[{"topologyKey": ZONE, "atMost": 2}])],
            "a: a0 | b: b0",
            "zone: no constraint; the 2 shards have at most one pod each in a zone",
            id="nothing is needed",
        ),
        pytest.param(
            [
                group(
                    9,
                    caps=[
                        *CAPS[:1],
                        {
                            "topologyKey": ZONE,
                            "atMost": 5,
                            "enforce": "observe",
                            "selector": {"matchLabels": {"a": "b"}},
                        },
                    ],
                    shard={"label": "shard", "neverShare": HOSTNAME},
                )
            ],
            "a: a0 a1 a2 a3",
            "in a zone at most 5 (observed only)",
            id="not proven",
        ),
        pytest.param(
            [group(3, shard={"label": "shard"})], SIX, "group cache: 3 shards of 2 pods; 6 pods", id="no rule"
        ),
        pytest.param(
            [group(2, caps=[{"topologyKey": ZONE, "atMost": 2}])],
            "a: a0 | b: b0 | c: c0",
            "every order places all pods and keeps the caps",
            id="naive fields that are right",
        ),
    ],
)
def test_other_groups(plan, manifests, state, told):
    _, out, err = plan(*manifests, state=state)
    assert not err
    assert told in flat(out)


def test_two_groups_as_yaml(plan):
    code, out, _ = plan(group(), group(name="other"), arguments=("-o", "yaml"))
    assert (code, out.count("- group:")) == (0, 2)


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        pytest.param(
            group(0),
            "SpreadGroup shop/cache cannot be planned: spec.expected.shards: 0 is not between 1 and 200",
            id="a group",
        ),
        pytest.param(
            config_map(**{"cluster-size": "5"}),
            "ConfigMap redis cannot be planned: data[cluster-size]: 5 is odd, but a shard has a master and a replica",
            id="a ConfigMap",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}},
            "-: no SpreadGroup and no ConfigMap with the key cluster-size",
            id="another ConfigMap",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "x"}, "spec": {"replicas": "two"}},
            "StatefulSet x: ",
            id="a workload that kube-apiserver refuses",
        ),
    ],
)
def test_what_cannot_be_planned(plan, manifest, error):
    code, out, err = plan(manifest)
    assert (code, out) == (3, "")
    assert error in err


def test_two_workloads_of_one_shard_cannot_be_planned(plan):
    old = shard(0)
    old["metadata"]["name"] = "old-0"
    code, out, err = plan(group(), shard(0), old)
    assert (code, out) == (3, "")
    assert "group shop/cache cannot be planned: old-0, redis-0 run pods of the same shard 0" in err


def test_two_workloads_of_one_name_cannot_be_planned(plan):
    other = workload("Deployment", "app=redis shard=1", meta={"name": "redis-0", "namespace": "shop"})
    code, out, err = plan(group(), shard(0), other)
    assert (code, out) == (3, "")
    assert "Deployment redis-0, StatefulSet redis-0 have the same name; give each shard its own name" in err


def test_what_an_operator_made_is_the_shard(plan):
    mine = {"apiVersion": "db.example.com/v1", "kind": "Redis", "name": "x", "uid": "u-x", "controller": True}
    sets = [shard(number, containers=[{"name": "c", "image": "redis:8"}]) for number in range(3)]
    for each in sets:
        each["metadata"]["ownerReferences"] = [mine]
    _, out, _ = plan(objects=[group(), *sets], arguments=("-o", "manifest"))
    made = [each for (kind, _), each in documents(out).items() if kind == "StatefulSet"]
    assert [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in made] == ["redis:8"] * 3
    assert "invented" not in out


def test_no_shard_is_printed_over_another_workload(plan):
    other = workload("StatefulSet", "app=web", meta={"name": "redis-1", "namespace": "shop"})
    idle = shard(0, replicas=0)  # the shard is redis-0
    idle["metadata"]["name"] = "redis-2"
    there = [group(), shard(0), other, idle]
    _, out, err = plan(objects=there, arguments=("-o", "manifest"))
    assert [*documents(out)] == [("SpreadGroup", "cache"), ("StatefulSet", "redis-0")]
    assert err == "".join(
        f"workload redis-{number} exists but is not a shard of the group, so -o manifest skips the shard of this name\n"
        for number in (1, 2)
    )
    _, out, err = plan(objects=there)
    assert (err, "note: workload redis-1 exists but is not a shard of the group" in flat(out)) == ("", True)
    away = shard(1, namespace="away")
    _, out, err = plan(objects=[group(), shard(0), away], arguments=("-o", "manifest"))
    assert (err, [*documents(out)][1:]) == ("", [("StatefulSet", f"redis-{number}") for number in range(3)])


@pytest.mark.parametrize(
    ("kind", "more"),
    [("CronJob", {}), ("Job", {}), ("DaemonSet", {}), ("ReplicaSet", {"controller": "Deployment"}), ("Pod", {})],
)
def test_what_is_no_shard_stops_no_plan(plan, kind, more):
    other = workload(kind, "app=redis shard=0", meta={"name": "other", "namespace": "shop"})
    if of := more.get("controller"):
        owner = {"apiVersion": "apps/v1", "kind": of, "name": "x", "uid": "u", "controller": True}
        other["metadata"]["ownerReferences"] = [owner]
    code, out, err = plan(objects=[group(), other, *map(shard, range(3))])
    assert (code, err) == (0, "")
    assert "restarts the pods of 3 workloads" in flat(out)


def test_a_file_that_cannot_be_read(run, tmp_path):
    (tmp_path / "cluster.jsonl").write_bytes(snapshot(SIX))
    (tmp_path / "bad.yaml").write_text("a: [")
    code, _, err = run("plan", "bad.yaml", "--snapshot", "cluster.jsonl")
    assert code == 3
    assert "some files could not be read, see the errors above" in err


def test_a_file_that_is_not_there_is_said_before_a_cluster_that_is_not(run):
    code, _, err = run("plan", "absent.yaml", "--kubeconfig", "absent")
    told = "absent.yaml: error: no such file or directory\n"
    told += "evenspread: some files could not be read, see the errors above\n"
    assert (code, err) == (3, told)
    code, _, err = run("plan", "--kubeconfig", "absent")
    assert (code, err.partition(";")[0]) == (4, "evenspread: absent: no such kubeconfig")


def test_a_group_that_is_not_there(plan):
    code, _, err = plan(arguments=("--group", "nope"))
    assert (code, "no SpreadGroup nope and no ConfigMap with the key cluster-size" in err) == (3, True)


@pytest.mark.parametrize("output", ["text", "yaml", "manifest"])
def test_no_value_of_a_shard_is_printed_as_a_number(plan, output):
    sets = [shard(value) for value in ("08", "1e3", "0o7")]
    _, out, _ = plan(group(), *sets, arguments=("-o", output))
    told = {line.strip() for line in out.splitlines() if line.strip().startswith("shard: ") and '"' in line}
    assert told >= {'shard: "08"'}
    assert told <= {'shard: "08"', 'shard: "1e3"', 'shard: "0o7"'}
    assert "shard: 0" not in out
