"""Which findings `check` prints, fixes and fails on."""

import json
import xml.etree.ElementTree as ET

import pytest

from webhook.cli.checking.levels import Level, Levels, levels

WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}, team: shop}}}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: {key}
        whenUnsatisfiable: {when}
        labelSelector: {{matchLabels: {{{counted}}}}}
"""


def workload(name, *, key="topology.kubernetes.io/zone", when="DoNotSchedule", counted=""):
    return WORKLOAD.format(name=name, key=key, when=when, counted=counted or f"app: {name}")


DEPRECATED = "failure-domain.beta.kubernetes.io/zone"
# high: its selector. low: its key. audit: selector-too-wide (medium), as it counts the others. All: lost defaults.
HIGH = workload("high", when="ScheduleAnyway", counted="app: old")
LOW = workload("low", key=DEPRECATED, when="ScheduleAnyway")
AUDIT = workload("audit", counted="team: shop")
ALL = f"{HIGH}---\n{LOW}---\n{AUDIT}"
OF_HIGH, OF_LOW, OF_AUDIT = (
    "high selector-not-self",
    "low topology-key-deprecated",
    ["low system-defaults-lost", "medium selector-too-wide"],
)


def found(out):
    """The findings of -o json, each with its severity."""
    return [f"{each['severity']} {each['rule']}" for each in json.loads(out) if "severity" in each]


@pytest.mark.parametrize(
    ("options", "code", "rules"),
    [
        pytest.param((), 1, [OF_HIGH, OF_LOW], id="what the webhook denies or warns about"),
        pytest.param(("--level", "high"), 1, [OF_HIGH], id="only high"),
        pytest.param(("--level", "medium"), 1, [OF_HIGH], id="medium: a recorded finding of this severity is hidden"),
        pytest.param(
            ("--level", "audit"),
            1,
            [OF_HIGH, OF_AUDIT[0], OF_LOW, *OF_AUDIT[1:]],
            id="audit: once per run for defaults",
        ),
        pytest.param(("--level", "high", "--fail-on", "low"), 1, [OF_HIGH, OF_LOW], id="what fails is printed"),
        pytest.param(("--fail-on", "never"), 0, [OF_HIGH, OF_LOW], id="never fails"),
        pytest.param(
            ("--rule", "selector-too-wide"), 0, [OF_AUDIT[1]], id="a named rule is printed, and fails nothing"
        ),
        pytest.param(("--rule", "selector-too-wide", "--level", "low"), 0, [], id="a named rule, with a level"),
        pytest.param(
            ("--rule", "selector-too-wide", "--fail-on", "audit"), 1, [OF_AUDIT[1]], id="fails on any finding"
        ),
        pytest.param(("--ceiling", "audit"), 0, [], id="a webhook that only records"),
        pytest.param(("--ceiling", "audit", "--fail-on", "low"), 0, [], id="nothing fails below the level"),
    ],
)
def test_findings_and_exit_code(check, options, code, rules):
    got, out, _ = check("web.yaml", "-o", "json", *options, web=ALL)
    assert (got, sorted(found(out))) == (code, sorted(rules))


@pytest.mark.parametrize("name", ["medium", "low", "audit"])
def test_what_kube_apiserver_refuses_is_printed_at_every_ceiling(check, name):
    refused = AUDIT.replace("maxSkew: 1", "maxSkew: 0")
    code, out, _ = check("web.yaml", "-o", "json", "--ceiling", "audit", "--level", name, web=refused)
    assert (code, "high max-skew" in found(out)) == (1, True)


@pytest.mark.parametrize(
    ("web", "options", "line"),
    [
        pytest.param(ALL, (), "2 more findings at audit level; --level audit shows them", id="audit"),
        pytest.param(LOW, ("--level", "high"), "2 more findings (1 low, 1 audit); --level audit shows them", id="two"),
        pytest.param(LOW, (), "1 more finding at audit level; --level audit shows it", id="one"),
        pytest.param(
            LOW,
            ("--level", "high", "--rule", "topology-key-deprecated"),
            "1 more finding at low level; --level low shows it",
            id="low",
        ),
    ],
)
def test_hidden_findings_are_counted_in_one_line(check, web, options, line):
    text = check("web.yaml", *options, web=web)[1].splitlines()
    assert [each for each in text if "more finding" in each] == [line]
    assert line in check("web.yaml", "-o", "github", *options, web=web)[1].splitlines()
    root = ET.fromstring(check("web.yaml", "-o", "junit", *options, web=web)[1])  # noqa: S314 our own text
    assert next(root.iter("system-out")).text.splitlines()[0] == line


def test_a_clean_run_has_no_such_line(check):
    both = AUDIT + "      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}\n"
    assert "more finding" not in check("web.yaml", "--rule", "max-skew", web=both)[1]


def test_machine_formats_count_them_by_rule(check):
    entries = json.loads(check("web.yaml", "-o", "json", web=ALL)[1])
    assert [entry for entry in entries if "hidden" in entry] == [
        {"rule": "system-defaults-lost", "level": "audit", "hidden": 1},
        {"rule": "selector-too-wide", "level": "audit", "hidden": 1},
    ]
    [run] = json.loads(check("web.yaml", "-o", "sarif", web=ALL)[1])["runs"]
    assert run["properties"] == {"hiddenFindings": {"system-defaults-lost (audit)": 1, "selector-too-wide (audit)": 1}}
    assert [result["ruleId"] for result in run["results"]] == ["selector-not-self", "topology-key-deprecated"]


def test_a_workload_with_hidden_findings_only_passes_in_junit(check):
    root = ET.fromstring(check("web.yaml", "-o", "junit", web=ALL)[1])  # noqa: S314 our own text
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {
        "Deployment audit": [],
        "Deployment high selector-not-self": ["failure"],
        "Deployment low topology-key-deprecated": ["failure"],
    }


def test_reports_have_every_level(check):
    out = check("web.yaml", "-o", "report", web=ALL)[1]
    assert "selector-too-wide" in out
    assert "selector-too-wide" not in check("web.yaml", "-o", "report", "--level", "low", web=ALL)[1]


def test_lost_defaults_are_reported_once_per_run(check):
    _, out, _ = check("web.yaml", "-o", "json", "--rule", "system-defaults-lost", web=ALL)
    [finding] = [each for each in json.loads(out) if "severity" in each]
    assert (finding["object"]["name"], finding["more"]) == ("high", 2)
    assert finding["message"] == (
        "declaring a constraint turns off the scheduler's default spreading across nodes; 2 more like it in this run"
    )


def test_exempted_findings_keep_their_level(check):
    exempt = "metadata: {{name: {0}, annotations: {{evenspread.io/exempt: '{1}'}}}}"
    web = HIGH.replace("metadata: {name: high}", exempt.format("high", "selector-not-self,system-defaults-lost"))
    code, out, _ = check("web.yaml", web=web)
    assert (code, out.splitlines()[0]) == (
        0,
        "web.yaml:14:9: selector-not-self Deployment high: exempted by evenspread.io/exempt",
    )
    assert "1 workload: no findings, 1 exempted" in out
    assert "more finding" not in out


@pytest.mark.parametrize(
    ("options", "fixed"),
    [
        pytest.param((), "1 finding can be fixed in 1 file, 1 left", id="high and medium"),
        pytest.param(("=all",), "6 findings can be fixed in 1 file, 0 left", id="every level"),
    ],
)
def test_fix_changes_what_check_prints(check, options, fixed):
    _, out, err = check("web.yaml", "--fix" + "".join(options), web=ALL)
    assert fixed in err.splitlines()
    assert ("kubernetes.io/hostname" in out) is bool(options)


@pytest.mark.parametrize(
    ("level", "fix", "fail_on", "named", "expected"),
    [
        pytest.param(
            None,
            None,
            Level.HIGH,
            False,
            Levels(shown=Level.LOW, fixed=Level.AUDIT, fail_on=Level.HIGH),
            id="no option",
        ),
        pytest.param(
            None,
            "some",
            None,
            False,
            Levels(shown=Level.LOW, fixed=Level.MEDIUM, fail_on=None),
            id="--fix spares low findings",
        ),
        pytest.param(
            None,
            "all",
            Level.AUDIT,
            False,
            Levels(shown=Level.AUDIT, fixed=Level.AUDIT, fail_on=Level.AUDIT),
            id="--fix=all shows all that it fixes",
        ),
        pytest.param(
            None,
            "some",
            None,
            True,
            Levels(shown=Level.AUDIT, fixed=Level.AUDIT, fail_on=None),
            id="a named rule is fixed at every level",
        ),
        pytest.param(
            "high",
            None,
            Level.MEDIUM,
            True,
            Levels(shown=Level.MEDIUM, fixed=Level.AUDIT, fail_on=Level.MEDIUM),
            id="a level that fails the run is shown",
        ),
        pytest.param(
            None,
            None,
            None,
            True,
            Levels(shown=Level.AUDIT, fixed=Level.AUDIT, fail_on=None),
            id="a named rule is shown at every level",
        ),
    ],
)
def test_levels_of_a_run(level, fix, fail_on, named, expected):
    assert levels(level, fix, fail_on, named=named) == expected
