"""Every page, as somebody reads it."""

import re

import pytest
from console.reading import read
from console.scans import CATALOG, EVERYTHING, FINE, LEDGER, ZONES, finding, loss, scan, shown, spread, workload
from msgspec.structs import replace
from scans import scanned

from webhook.cli.commands.webhook.example import CLUSTER
from webhook.console.shown import Health
from webhook.core.api.well_known import HOSTNAME
from webhook.core.budget import Reason
from webhook.core.rules.frame.rule import NotEvaluated
from webhook.core.scan.scan_results import (
    GuardState,
    PendingCause,
    PendingPod,
    ScaleInState,
    ScanFailure,
    ScanGap,
    SmallestFix,
)

ADDRESS = "/workload?kind=Deployment&namespace={}&name={}"
LEDGER_ROW = (
    "ledger Deployment in payments a 2 b 2 c 1 2 pods Pending because of spread, the oldest for 43 min and 1 more "
    "set maxSkew: 2 YAML spec: maxSkew: 2"
)
HOSTILE = "<script>alert(1)</script>"


def test_the_first_screen(browse):
    page = read(browse(EVERYTHING).get("/"))
    assert page.texts["seen"] == "snapshot prod.jsonl · as of 20 Nov 2026 09:00 UTC"
    assert page.texts["zone-loss"] == (
        "If one zone fails 6 pods stay Pending if eu-1c fails Pods that stay Pending if this zone fails "
        "zone unreachable deleted a 0 0 b 2 to 5 0 c 6 4"
    )
    assert page.texts["pending"] == "Pending because of spread 2 pods the oldest for 43 min: payments/ledger-1"
    assert page.texts["above"] == (
        "Above their maxSkew 1 of 4 workloads the worst is shop/catalog, uneven by zone: skew 3, maxSkew allows 1"
    )
    assert page.texts["strip"] == "Ceiling warn Defaults observe Rules not evaluated none"
    assert page.rows[-3:] == [
        LEDGER_ROW,
        "catalog Deployment in shop a 0 b 3 c 0 uneven by zone: skew 3, maxSkew allows 1 none known",
        "search StatefulSet in shop not known zone[0] counts no pod none known",
    ]


def test_where_nothing_is_wrong_it_says_so(browse):
    page = read(browse(shown(FINE, zones=(loss("a"), loss("b")))).get("/"))
    assert page.texts["nothing"] == "Nothing is wrong. 1 workload checked, and all are spread as declared."
    assert page.texts["zone-loss"].startswith("If one zone fails 0 pods stay Pending whichever zone fails")
    assert page.texts["pending"] == "Pending because of spread 0 pods no pod is Pending"


def test_an_empty_cluster_says_what_to_look_at(browse):
    page = read(browse(shown()).get("/"))
    assert page.texts["nothing"].startswith("There are no workloads. evenspread found no object that creates pods.")
    assert page.texts["zone-loss"].startswith("If one zone fails ? not known fewer than two zones")


def test_a_cluster_whose_nodes_cannot_be_read_says_why(browse):
    page = read(browse(shown(FINE, lacks={"nodes": "403 Forbidden", "services": "403"})).get("/"))
    assert page.texts["zone-loss"] == "If one zone fails ? not known nodes: 403 Forbidden"
    page = read(browse(shown(FINE, lacks={"nodes": "403 Forbidden"})).get("/health"))
    assert "nodes 403 Forbidden" in page.texts["content"]


def test_the_health_line_names_what_is_known_and_marks_what_is_wrong(browse):
    health = Health(
        ceiling="deny",
        defaults_mode="inject",
        fault="waiting: 403",
        cluster_age=300,
        certificate_days=1.5,
    )
    given = replace(shown(FINE, gaps=(ScanGap("r", "no nodes", 3),)), health=health)
    page = read(browse(given).get("/"))
    assert page.texts["strip"] == (
        "Ceiling deny Defaults inject Next scan waiting: 403 Last contact with the cluster 5 min ago Our CA 1 day "
        "left Rules not evaluated 1"
    )
    assert page.texts["wrong"] == "waiting: 403 5 min ago 1 day left"
    page = read(browse(given).get("/health"))
    assert "r no nodes 3" in page.rows


def test_before_the_first_scan_it_says_that_it_is_coming(browse):
    waiting = replace(EVERYTHING, scan=None, live=True)
    client = browse(waiting)
    for path in ("/", "/workloads", "/domains", "/health", ADDRESS.format("a", "b")):
        page = client.get(path)
        assert "The first scan of the cluster is running." in page.text
        assert "data-live" in page.text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", "ledger catalog search checkout", id="the worst first"),
        pytest.param("?q=PAYMENTS/", "ledger", id="by namespace, case apart"),
        pytest.param("?q=statefulset", "search", id="by kind"),
        pytest.param("?only=pending", "ledger", id="with Pending pods"),
        pytest.param("?only=skewed", "catalog", id="above maxSkew"),
        pytest.param("?only=findings", "search", id="with findings that count"),
        pytest.param("?only=refused", "", id="that would be refused"),
        pytest.param("?sort=name", "ledger catalog checkout search", id="by namespace and name"),
        pytest.param("?sort=pods", "ledger catalog search checkout", id="by pods"),
        pytest.param("?sort=pending", "ledger catalog search checkout", id="by Pending pods"),
        pytest.param("?sort=skew", "catalog ledger checkout search", id="by how far above"),
        pytest.param("?sort=loss", "ledger catalog search checkout", id="by what a zone costs"),
    ],
)
def test_the_list_is_filtered_and_sorted_by_the_address(browse, query, names):
    page = read(browse(EVERYTHING).get(f"/workloads{query}"))
    assert [row.split(" ")[0] for row in page.rows[1:]] == names.split()
    if not names:
        assert page.texts["nothing"].startswith("No workload matches.")


def test_a_row_of_the_list(browse):
    page = read(browse(EVERYTHING).get("/workloads?q=ledger"))
    assert page.rows[1].startswith("ledger Deployment in payments")
    assert page.rows[1].endswith("7 2 1 of 1 5 Pending")
    assert page.texts["head"] == "Workloads 1 of 4 workloads"


def test_a_long_list_comes_in_pages(browse):
    many = [workload(f"app-{number:03}") for number in range(120)]
    client = browse(shown(*many))
    first, last = (read(client.get(f"/workloads?sort=name{more}")) for more in ("", "&page=9"))
    assert (len(first.rows), len(last.rows)) == (51, 21)
    assert first.texts["pager"] == "page 1 of 3 Next"
    assert last.texts["pager"] == "Previous page 3 of 3"
    assert "/workloads?sort=name&page=2" in first.links


def test_a_workload_explains_each_constraint(browse):
    page = read(browse(EVERYTHING).get(ADDRESS.format("payments", "ledger")))
    text = page.texts["content"]
    assert "Spread by zone DoNotSchedule · maxSkew 1 · declared in its template · counts pods with app=web" in text
    assert "Skew 1 of 1 allowed" in text
    assert page.rows[:3] == ["eu-1a 2", "eu-1b 2", "eu-1c 1"]
    limit = "The emptiest domain has 1 pod, so a domain takes at most 2 pods (the red line)."
    assert f"{limit} Further pods stay Pending." in text
    assert "ledger-1 its spread constraints 43 min" in page.rows
    assert "and 1 pod more" in text
    assert "eu-1c 1 or more not known" in page.rows
    assert page.texts["paste"].startswith("spec: maxSkew: 2")


@pytest.mark.parametrize(
    ("constraint", "meaning"),
    [
        pytest.param(
            spread("a=3 b=0", when="ScheduleAnyway"),
            "The emptiest domain has 0 pods. kube-scheduler prefers emptier domains, but also places pods above 1",
            id="a soft one",
        ),
        pytest.param(
            spread("a=1 b=1", min_domains=3, global_minimum=0),
            "There are 2 domains and minDomains asks for 3, so 0 is the minimum, so a domain takes at most 1 pod",
            id="with too few domains",
        ),
        pytest.param(spread(""), "No eligible node has the label topology.kubernetes.io/zone.", id="no domain"),
        pytest.param(
            spread("a=1", global_minimum=None, skew=None), "The current distribution is unknown.", id="nothing known"
        ),
        pytest.param(spread("a=1", selector=""), "counts no pods", id="without a selector"),
        pytest.param(
            spread(" ".join(f"n{number:03}={number % 2}" for number in range(60)), key=HOSTNAME),
            "and 20 domains without pods",
            id="more domains than fit",
        ),
        pytest.param(
            spread(" ".join(f"n{number:03}={1 + number % 2}" for number in range(60)), key=HOSTNAME),
            "and 20 domains with fewer pods",
            id="more domains with pods than fit",
        ),
        pytest.param(
            spread("n1=2 n2=1", key=HOSTNAME, empty=4998, global_minimum=0),
            "n1 2 n2 1 and 4,998 domains without pods The emptiest domain has 0 pods, so a domain takes at most 1 pod",
            id="very many, most of them empty",
        ),
        pytest.param(
            spread("", key=HOSTNAME, empty=120, global_minimum=0, skew=0),
            "Skew 0 of 1 allowed Pods in each domain 120 domains without pods The emptiest domain has 0 pods",
            id="very many, all of them empty",
        ),
        pytest.param(
            spread("n1=1 n2=1", key=HOSTNAME, empty=118, min_domains=10, global_minimum=0),
            "The emptiest domain has 0 pods, so a domain takes at most 1 pod",
            id="empty ones are as many as minDomains asks for",
        ),
    ],
)
def test_what_a_constraint_means(browse, constraint, meaning):
    page = read(browse(shown(workload("web", constraint))).get(ADDRESS.format("shop", "web")))
    assert meaning in page.texts["content"]


@pytest.mark.parametrize(
    ("state", "live", "text"),
    [
        pytest.param(
            (3, "report"),
            True,
            "Skew up to 3 above maxSkew Not guarded. The ReplicaSet controller ignores constraints when it removes "
            "pods.",
            id="reported",
        ),
        pytest.param(
            (3, "requested"),
            True,
            "Skew up to 3 above maxSkew Not guarded now, for example because of a rollout. The policy asks for the "
            "guard.",
            id="requested",
        ),
        pytest.param(
            (3, "requested"),
            False,
            "Skew up to 3 above maxSkew The policy turns the scale-in guard on."
            " The workload's report says whether it is active.",
            id="of a file",
        ),
        pytest.param(
            (3, "requested", "it has more than 500 pods"),
            True,
            "Skew up to 3 above maxSkew The policy asks for the guard. It is not active: it has more than 500 pods.",
            id="inactive",
        ),
        pytest.param(
            (3, "waiting"),
            True,
            "Skew up to 3 above maxSkew Not guarded yet, because of the controller's limit of writes per minute.",
            id="waiting",
        ),
        pytest.param(
            (1, "guarded"),
            True,
            "Skew up to 1 within maxSkew Guarded. The ReplicaSet controller removes pods of the fullest domains first.",
            id="guarded",
        ),
        pytest.param(
            (3, "stopped"),
            True,
            "Skew up to 3 above maxSkew Not guarded, because another program writes the annotation "
            "controller.kubernetes.io/pod-deletion-cost.",
            id="stopped",
        ),
    ],
)
def test_what_a_scale_in_can_leave(browse, state, live, text):
    worst, guard, *reason = state
    scale_in = ScaleInState(worst_skew=worst, above=worst > 1, guard=GuardState(guard), inactive="".join(reason))
    given = shown(workload("web", spread("a=3 b=3 c=3"), scale_in=scale_in))
    page = read(browse(replace(given, live=live)).get(ADDRESS.format("shop", "web")))
    assert f"After a scale-in {text}" in page.texts["content"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(workload("web", spread("a=3 b=3 c=3")), id="not measured"),
        pytest.param(
            workload("web", scale_in=ScaleInState(worst_skew=0, above=False, guard=GuardState.REPORT)),
            id="no constraint",
        ),
    ],
)
def test_nothing_is_said_of_scale_ins(browse, given):
    page = read(browse(shown(given)).get(ADDRESS.format("shop", "web")))
    assert "After a scale-in" not in page.texts["content"]


def test_a_workload_without_constraints_or_faults(browse):
    page = read(browse(shown(workload("web"))).get(ADDRESS.format("shop", "web")))
    assert "No problem found." in page.texts["content"]
    assert (
        "No constraint spreads this workload. It declares none, and no default applies to it." in page.texts["content"]
    )


def test_what_admission_would_make_of_it(browse):
    given = workload(
        "web",
        findings=(finding(), finding("old", waived="an exemption")),
        not_evaluated=(NotEvaluated("pod-fits", Reason("no nodes")),),
        failures=(ScanFailure("zone-loss", ValueError("oops")),),
        would_deny=("selector-not-self",),
        would_inject=2,
        lacking=3,
        pods=None,
        fix=SmallestFix(of="selector-not-self", text="labelSelector: {}"),
    )
    page = read(browse(shown(given)).get(ADDRESS.format("shop", "web")))
    text = page.texts["content"]
    assert "Deployment in shop · pods: not known" in text
    assert "a bug stopped evenspread's check, in zone-loss: oops" in text
    assert "Under ceiling deny it would be refused: selector-not-self" in text
    assert "Defaults its next pod would get 2 constraints" in text
    assert "Pods without the defaults 3; restart the workload to give them to all pods" in text
    assert "pod-fits not evaluated no nodes" in text
    assert (
        "selector-not-self high · warned about at admission zone[0] counts no pod spec.template Fix: labelSelector: {}"
        in text
    )
    assert "selector-not-self high · an exemption old" in text
    assert "Failed on 1 workload" in read(browse(shown(given)).get("/")).texts["strip"]


def test_the_map_of_domains(browse):
    client = browse(EVERYTHING)
    page = read(client.get("/domains"))
    assert page.rows == [
        "Workload a b c",
        "ledger Deployment in payments 2 2 1",
        "catalog Deployment in shop 0 3 0",
        "checkout Deployment in shop 2 1 2",
    ]
    assert '<td class="h4 high">3</td>' in client.get("/domains").text
    page = read(client.get("/domains?key=kubernetes.io%2Fhostname"))
    assert page.rows == ["Workload 1 2", "checkout Deployment in shop 1 0"]


def test_a_map_of_many_domains_sums_up_the_rest(browse):
    nodes = " ".join(f"n{number:02}={2 if number < 20 else 1}" for number in range(30))
    page = read(browse(shown(workload("web", spread(nodes, key=HOSTNAME)))).get("/domains"))
    assert page.rows[0].endswith("n19 10 more")
    assert page.rows[1] == f"web Deployment in shop {' '.join('2' * 20)} 10"


def test_a_domain_that_does_not_count_is_empty(browse):
    page = read(browse(shown(workload("one", spread("a=1 b=1")), workload("two", spread("a=1")))).get("/domains"))
    assert page.rows[2] == "two Deployment in shop 1 does not count"


def test_an_empty_domain_of_very_many_is_told_from_one_that_does_not_count(browse):
    one = workload("one", spread("n1=1", key=HOSTNAME, empty=4999, global_minimum=0))
    two = workload("two", spread("n2=1", key=HOSTNAME))
    page = read(browse(shown(one, two)).get("/domains"))
    assert page.texts["head"] == "Pods by domain 2 workloads in 5,000 domains"
    assert page.rows == [
        "Workload n1 n2 4,998 more",
        "one Deployment in shop 1 0 0",
        "two Deployment in shop does not count 1 0",
    ]


def test_the_map_has_a_workloads_own_pods_and_those_of_others_beside_them(browse):
    shards = spread("a=3 b=3 c=0", own={"a": 2, "b": 1}, others={"a": 1, "b": 2})
    nobody = spread("a=0 b=0 c=0", own={"a": 2, "": 1, "c": 1}, uncounted=4)
    given = shown(workload("shard", shards), workload("cart", nobody), workload("strange", spread("a=1 b=0", own=None)))
    response = browse(given).get("/domains")
    assert read(response).rows == [
        "Workload a b c no label",
        "shard Deployment in shop 2 +1 of other workloads 1 +2 of other workloads 0 0",
        "cart Deployment in shop 2 0 1 1",
        "strange Deployment in shop own pods unknown: all counted pods 1 0 does not count 0",
    ]
    assert response.text.count(" high") == 2  # the counted pods of shard in a and b
    assert '<td class="h0">0</td>' in response.text


def test_each_row_of_the_map_adds_up_to_the_pods_that_run(browse):
    found = scanned(CLUSTER.read_bytes())
    client = browse(replace(EVERYTHING, scan=found))
    for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname"):
        for row in read(client.get(f"/domains?key={key}")).rows[1:]:
            named, *cells = re.sub(r" \+\d+ of other workloads", "", row).partition(" in ")[::2]
            name, kind = named.split(" ")
            [of] = [each for each in found.workloads if (each.name, each.kind) == (name, kind)]
            own = [int(each) for each in re.findall(r"(?<= )\d+", cells[0])]
            assert sum(own) == of.pods - sum(of.pending.values()), (key, row)


def test_a_workloads_page_tells_its_own_pods_from_others(browse):
    shards = spread("a=3 b=3 c=0", own={"a": 2, "b": 1}, others={"a": 1, "b": 2})
    page = read(browse(shown(workload("shard", shards))).get(ADDRESS.format("shop", "shard")))
    assert page.rows[:3] == ["a 3 1 of others", "b 3 2 of others", "c 0"]
    assert "3 of 6 counted pods belong to other workloads." in page.texts["content"]
    nobody = spread("a=0 b=0", own={"a": 4}, uncounted=4)
    page = read(browse(shown(workload("cart", nobody))).get(ADDRESS.format("shop", "cart")))
    assert "None of its own 4 pods is counted." in page.texts["content"]


def test_a_zone_is_marked_for_the_pods_that_are_counted(browse):
    """The workload's own pods alone say nothing about the limit."""
    over = spread("a=5 b=1 c=5", own={"a": 1, "b": 2}, others={"a": 4, "c": 5})
    below = spread("a=1 b=1 c=1", own={"a": 4}, others={})
    marked = workload("over", over, zones={"a": 1, "b": 2, "c": 0})
    fine = workload("below", below, waiting=1, zones={"a": 4, "b": 0, "c": 0})
    text = browse(shown(marked, fine)).get("/").text
    assert re.findall(r'<li class="high" title="(\w)">', text) == ["a"]
    assert "uneven by zone: skew 4, maxSkew allows 1 (9 of 11 counted pods belong to other workloads)" in text


def test_a_map_of_nothing(browse):
    assert (
        "No workload is spread over domains." in read(browse(shown(workload("web"))).get("/domains")).texts["nothing"]
    )
    assert "No workload matches." in read(browse(EVERYTHING).get("/domains?q=nix")).texts["nothing"]


@pytest.mark.parametrize("path", ["/", "/workloads", "/domains", "/health"])
def test_names_are_text(browse, path):
    zones = spread(f"{HOSTILE.replace('=', '')}=3 b=0")
    given = workload(
        HOSTILE, zones, namespace=HOSTILE, kind=HOSTILE, waiting=1, failures=(ScanFailure("a", ValueError(HOSTILE)),)
    )
    client = browse(replace(shown(given, lacks={HOSTILE: HOSTILE}, zones=(loss(HOSTILE), loss("b"))), source=HOSTILE))
    text = client.get(path).text
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    for link in read(client.get(path)).links:
        if link.startswith("/workload?"):
            assert HOSTILE not in client.get(link).text


def test_a_workload_is_found_by_its_version_too(browse):
    twins = (workload("web", api_version="v1"), workload("web", api_version="v2"))
    client = browse(shown(*twins))
    for version in ("v1", "v2"):
        assert client.get(f"{ADDRESS.format('shop', 'web')}&apiVersion={version}").status_code == 200
    assert client.get(f"{ADDRESS.format('shop', 'web')}&apiVersion=v3").status_code == 404
    assert scan(*twins, zones=ZONES).workloads[0] is twins[0]


def test_the_oldest_is_not_told_where_nobody_knows_it(browse):
    page = read(browse(shown(workload("web", waiting=1, since=""))).get("/"))
    assert page.texts["pending"] == "Pending because of spread 1 pod"
    page = read(browse(shown(workload("web", waiting=1, since=""))).get(ADDRESS.format("shop", "web")))
    assert "web-1 its spread constraints not known" in page.rows


def test_the_oldest_is_one_that_waits_because_of_spread(browse):
    pods = (
        PendingPod("web-0", "uid-0", "2026-11-17T09:00:00Z", PendingCause.CAPACITY),
        PendingPod("web-1", "uid-1", "2026-11-20T08:58:00Z", PendingCause.SPREAD),
    )
    page = read(browse(shown(workload("web", waiting=1, since=pods[0].since, pending_pods=pods))).get("/"))
    assert page.texts["pending"] == "Pending because of spread 1 pod the oldest for 2 min: shop/web-1"
    assert page.texts["why"] == "1 pod Pending because of spread, the oldest for 2 min"


def test_the_worst_are_ten_at_most(browse):
    bad = [replace(CATALOG, name=f"bad-{number:02}") for number in range(12)]
    page = read(browse(shown(*bad, LEDGER)).get("/"))
    assert [row.split(" ")[0] for row in page.rows[1:]] == [f"bad-{number:02}" for number in range(10)]
    assert page.texts["head"] == "Worst workloads All 13 workloads"
