"""A rule that raises: everything else is printed, and the exit code says whose fault it is."""

import json

import pytest
from faults import Raising, unfixable
from manifest import workload
from msgspec.structs import replace

from webhook.cli.checking.levels import Level, exit_code
from webhook.cli.checking.results import ReviewFailure, RunResult, print_failures
from webhook.cli.checking.run import examine_files
from webhook.cli.checking.whole_cluster import examine_cluster
from webhook.cli.exit_codes import Exit
from webhook.cli.formats import renderer
from webhook.cli.frame import Frame
from webhook.core.policy.policy import Policy
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File
from webhook.report.documents import ReportApi

FRAME = Frame(policy=Policy(), today="2026-01-01")
BROKEN = replace(FRAME, policy=Policy(messages=Raising()))
NODES = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}}
    for name, zone in (("n1", "a"), ("n2", "b"))
]
CART = workload("Deployment", "app=cart part=shop", "zone hard 0 part=shop", selector="app=cart", meta={"name": "cart"})
PAY = workload("Deployment", "app=pay part=shop", selector="app=pay", meta={"name": "pay"})
PODS = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pay-{number}", "namespace": "shop", "labels": {"app": "pay", "part": "shop"}},
        "spec": {"nodeName": f"n{number + 1}"},
    }
    for number in range(2)
]
CLUSTER = File("cluster.json", "\n".join(map(json.dumps, [*NODES, CART, PAY, *PODS])).encode())


def rules(result):
    return {row.judged.finding.rule for row in result.rows}


def test_audit_keeps_the_report_on_the_whole_cluster(capsys):
    whole, broken = examine_cluster([CLUSTER], FRAME), examine_cluster([CLUSTER], BROKEN)
    assert rules(whole) == rules(broken) | {"selector-too-wide"}
    assert [(each.title, each.part, str(each.error)) for each in broken.failures] == [
        ("Deployment shop/cart", "the rule selector-too-wide", "broken on purpose")
    ]
    assert (exit_code(whole, Level.HIGH), exit_code(broken, Level.HIGH)) == (Exit.FINDINGS, Exit.OUR_FAULT)
    assert exit_code(broken, None) == Exit.OUR_FAULT
    print_failures(broken.failures)
    assert capsys.readouterr().err == (
        "cluster.json: Deployment shop/cart: the rule selector-too-wide failed (RuntimeError: broken on purpose); "
        "everything else was checked\n"
        "evenspread: a bug in evenspread, please report it; EVENSPREAD_DEBUG=1 shows where\n"
    )


@pytest.mark.parametrize("output", ["text", "json", "yaml", "github", "gitlab", "junit", "sarif", "report"])
def test_every_format_prints_the_other_findings(output):
    result = examine_cluster([CLUSTER], BROKEN)
    assert "max-skew" in "".join(renderer(output, ReportApi.OPEN_REPORTS)(result))


def test_the_rule_is_among_those_that_could_not_look():
    entries = json.loads("".join(renderer("json", ReportApi.OPEN_REPORTS)(examine_cluster([CLUSTER], BROKEN))))
    gap = {"rule": "selector-too-wide", "notEvaluated": "the rule failed because of a bug in evenspread", "objects": 1}
    assert gap in entries


def test_check_goes_on_after_an_object_that_nothing_can_be_done_with(capsys, monkeypatch):
    files = [File("a.yaml", json.dumps(CART).encode())]

    class _Unreadable:
        def __getattr__(self, name):
            raise RuntimeError(name)

    result = examine_files(files, replace(FRAME, policy=_Unreadable()))
    assert [(each.part, each.title) for each in result.failures] == [("the review", "Deployment shop/cart")]
    assert exit_code(result, None) == Exit.OUR_FAULT
    monkeypatch.setenv("EVENSPREAD_DEBUG", "1")
    print_failures(result.failures)
    told = capsys.readouterr().err
    assert told.startswith("a.yaml: Deployment shop/cart: the review failed (RuntimeError: ")
    assert "Traceback" in told


def test_rules_that_were_not_asked_for_cannot_fail():
    result = examine_cluster([CLUSTER], replace(BROKEN, rules=frozenset({"max-skew"})))
    assert (rules(result), result.failures) == ({"max-skew"}, ())


def test_a_fix_that_raises_is_a_fault_of_its_rule(monkeypatch):
    files, only = [File("a.yaml", json.dumps(CART).encode())], replace(FRAME, rules=frozenset({"max-skew"}))
    whole = examine_files(files, only)
    unfixable(monkeypatch)
    broken = examine_files(files, only)
    assert rules(broken) == rules(whole)
    assert [(each.title, each.part) for each in broken.failures] == [("Deployment shop/cart", "the rule max-skew")]
    assert (exit_code(whole, None), exit_code(broken, None)) == (Exit.FINE, Exit.OUR_FAULT)


def test_no_failure_no_word(capsys):
    print_failures(())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(RunResult(faults=(InputFault(file="f", message="m"),)), Exit.UNREADABLE, id="only the input"),
        pytest.param(
            RunResult(
                faults=(InputFault(file="f", message="m"),), failures=(ReviewFailure("f", "t", "r", ValueError()),)
            ),
            Exit.OUR_FAULT,
            id="ours comes first",
        ),
    ],
)
def test_our_fault_outweighs_the_inputs(result, expected):
    assert exit_code(result, Level.HIGH) is expected
