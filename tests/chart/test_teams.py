"""What a team says holds in its own namespaces, and nowhere else."""

import re

import pytest
import yaml
from chart.rendered import CHART, one, refusal

from webhook.config import parse_policy
from webhook.core.policy.policy import Mode

ZONE = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
EXEMPTION = {"rule": "max-skew", "reason": "soon"}


def written(**values):
    """The policy as the program loads it, and as it is written."""
    text = one("ConfigMap", values)["data"]["policy.yaml"]
    return parse_policy(text).policy, yaml.safe_load(text)


def test_a_team_sets_the_ceiling_of_its_namespaces_after_the_platform():
    platform = {"match": {"names": ["pay"]}, "ceiling": "audit"}
    teams = {"payments": {"namespaces": ["pay", "pay-test"], "ceiling": "deny"}, "web": {"namespaces": ["web"]}}
    policy, _ = written(config={"namespaces": [platform]}, teams=teams)
    assert [(each.match.names, each.ceiling) for each in policy.namespaces] == [
        (("pay",), Mode.AUDIT),
        (("pay", "pay-test"), Mode.DENY),
    ]


def test_a_team_may_switch_everything_off_without_quotes():
    policy, _ = written(teams={"web": {"namespaces": ["web"], "ceiling": False}})
    assert policy.namespaces[0].ceiling is Mode.OFF


def test_an_exemption_holds_in_each_namespace_of_the_team():
    exemptions = [EXEMPTION, {**EXEMPTION, "match": {"kind": "Job"}, "expires": "2027-03-31"}]
    policy, _ = written(teams={"web": {"namespaces": ["a", "b"], "exemptions": exemptions}})
    assert [(each.match.namespace, each.match.kind, each.expires) for each in policy.exemptions] == [
        ("a", None, None),
        ("b", None, None),
        ("a", "Job", "2027-03-31"),
        ("b", "Job", "2027-03-31"),
    ]


def test_defaults_of_a_team_come_after_those_of_the_platform():
    first, second = {"name": "all", "defaultConstraints": []}, {"name": "web", "defaultConstraints": [ZONE]}
    config = {"defaults": {"mode": "inject", "overrides": [first]}}
    policy, text = written(config=config, teams={"web": {"namespaces": ["a"], "overrides": [second]}})
    assert [each.name for each in policy.defaults.overrides] == ["all", "web"]
    (own,) = text["defaults"]["overrides"][1]["namespaceSelector"]["matchExpressions"]
    assert own == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}


def test_without_teams_the_policy_is_that_of_config():
    _, text = written(config={"ceiling": "deny"})
    assert text == {
        "apiVersion": "config.evenspread.io/v1alpha1",
        "kind": "SpreadPolicy",
        "ceiling": "deny",
        "defaults": {"mode": "observe"},
    }


@pytest.mark.parametrize(
    ("teams", "said"),
    [
        (
            {"a": {"namespaces": ["x"]}, "b": {"namespaces": ["y", "x"]}},
            "teams: a and b both name the namespace x.",
        ),
        (
            {"a": {"namespaces": ["x"], "exemptions": [{**EXEMPTION, "match": {"namespace": "y"}}]}},
            "teams.a.exemptions[0].match.namespace: unknown value",
        ),
        (
            {
                "a": {
                    "namespaces": ["x"],
                    "overrides": [{"name": "o", "namespaceSelector": {}, "defaultConstraints": []}],
                }
            },
            "teams.a.overrides[0].namespaceSelector: unknown value",
        ),
        ({"a": {"namespaces": ["x"], "celing": "deny"}}, 'teams.a.celing: unknown value; did you mean "ceiling"?'),
        (
            {"a": {"namespaces": ["x"], "exemptions": [{**EXEMPTION, "rule": "max-skw"}]}},
            'teams.a.exemptions[0].rule: unknown rule "max-skw"; did you mean "max-skew"?',
        ),
        ({"a": {"ceiling": "deny"}}, "missing property 'namespaces'"),
    ],
    ids=["two teams", "an exemption elsewhere", "defaults elsewhere", "misspelt", "no such rule", "of no namespace"],
)
def test_a_team_is_refused_with_these_words(teams, said):
    assert said in refusal({"teams": teams})


def test_the_example_of_the_page_is_taken():
    page = (CHART / "README.md").read_text()
    example = yaml.safe_load(re.search(r"```yaml\n(# payments\.yaml.*?)```", page, re.DOTALL)[1])
    policy, _ = written(**example)
    assert (len(policy.namespaces), len(policy.exemptions), len(policy.defaults.overrides)) == (1, 2, 1)
