"""A fix that is offered, written into the manifest, removes its finding and brings no other."""

import copy
import re

import pytest
import yaml
from manifest import examined, workload

TAKE_OUT = re.compile(r"remove (\S+) from matchLabelKeys.*")
ADD = re.compile(r"add (matchLabelKeys: .*)")


def written(manifest, finding):
    """The manifest with the fix in it, as a reader would write it."""
    fixed = copy.deepcopy(manifest)
    constraints = fixed["spec"]["template"]["spec"]["topologySpreadConstraints"]
    at = re.search(r"topologySpreadConstraints\[(\d+)\]", finding.path)
    if at is None:
        constraints += map(yaml.safe_load, finding.fix.removeprefix("add ").split(" and add "))
    elif finding.fix == "remove the constraint":
        del constraints[int(at[1])]
    elif unwanted := TAKE_OUT.fullmatch(finding.fix):
        keys = constraints[int(at[1])]["matchLabelKeys"]
        keys.remove(unwanted[1])
    elif added := ADD.fullmatch(finding.fix):
        constraints[int(at[1])].update(yaml.safe_load(added[1]))
    elif finding.path.endswith("matchLabelKeys[0]"):
        constraints[int(at[1])]["matchLabelKeys"][0] = finding.fix
    else:
        value = yaml.safe_load(finding.fix)
        constraints[int(at[1])].update({"labelSelector": value} if "matchLabels" in value else value)
    return fixed


@pytest.mark.parametrize(
    ("rule", "kind", "constraints", "fields"),
    [
        pytest.param("selector-null", "Deployment", ["zone soft 1 null"], {}, id="no selector"),
        pytest.param("selector-empty", "Deployment", ["zone soft 1 {}"], {}, id="an empty selector"),
        pytest.param("selector-not-self", "Deployment", ["zone soft 1 app=web tier=back"], {}, id="another value"),
        pytest.param("selector-not-self", "Deployment", ["zone soft 1 name=web"], {}, id="another label"),
        pytest.param("revision-mixed", "Deployment", ["zone hard 1 app=web"], {"replicas": 12}, id="revisions"),
        pytest.param(
            "match-label-key-wrong-kind", "StatefulSet", ["zone soft 1 app=web keys:pod-template-hash"], {}, id="kind"
        ),
        pytest.param(
            "topology-key-typo", "Deployment", ["topology.kubernetes.io/hostname soft 1 app=web"], {}, id="typo"
        ),
        pytest.param(
            "topology-key-deprecated",
            "Deployment",
            ["failure-domain.beta.kubernetes.io/zone soft 1 app=web"],
            {},
            id="a former name",
        ),
        pytest.param("system-defaults-lost", "Deployment", ["zone soft 1 app=web"], {}, id="hosts lost"),
        pytest.param("system-defaults-lost", "Deployment", ["rack soft 1 app=web"], {}, id="hosts and zones lost"),
        pytest.param("spread-without-effect", "DaemonSet", ["zone soft 1 app=web"], {}, id="no effect"),
        pytest.param("max-skew", "Deployment", ["zone soft 0 app=web"], {}, id="maxSkew 0"),
    ],
)
def test_a_fix_removes_its_finding(rule, kind, constraints, fields):
    manifest = workload(kind, "app=web tier=front", *constraints, **fields)
    before = examined(manifest).findings
    finding = next(each.finding for each in before if each.finding.rule == rule)
    after = {each.finding.rule for each in examined(written(manifest, finding)).findings}
    assert rule not in after
    assert after <= {each.finding.rule for each in before}
