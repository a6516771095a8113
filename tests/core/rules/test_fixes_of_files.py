"""Each fix in the test data, applied to the text: its finding is gone, and nothing else has changed."""

from pathlib import Path

import pytest
from core.rules.fixes_of_files import each_fix, faults_of, touched

from webhook.cli.frame import Frame
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Policy
from webhook.core.rules.frame.rule import Finding
from webhook.manifests.reading.files import File

DATA = Path(__file__).resolve().parents[2] / "testdata"
FRAME = Frame(policy=Policy(), today="2026-01-01")
FILES = sorted([*(DATA / "rules").glob("*.yaml"), *(DATA / "manifests").glob("*.yaml")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_fix_of_the_test_data(path):
    for finding, before, after, reason in each_fix(File(path.name, path.read_bytes()), FRAME):
        if after is None:
            assert reason
        else:
            assert [*faults_of(before, after, finding, FRAME)] == [], finding


AT = "spec.topologySpreadConstraints"


@pytest.mark.parametrize(
    ("after", "edits", "told"),
    [
        pytest.param([{"maxSkew": 2}, {"maxSkew": 3}], [Edit(f"{AT}[0].maxSkew", 2)], [], id="the named one changes"),
        pytest.param(
            [{"maxSkew": 2}, {"maxSkew": 4}],
            [Edit(f"{AT}[0].maxSkew", 2)],
            [f"{AT}[1] has changed"],
            id="another one too",
        ),
        pytest.param([{"maxSkew": 3}], [Edit(f"{AT}[0]")], [f"{AT}: a constraint is gone"], id="one is gone"),
        pytest.param(
            [{"maxSkew": 3}],
            [Edit(f"{AT}[0].maxSkew", 3), Edit(f"{AT}[0]")],
            [],
            id="one is gone that says what another says once it is right",
        ),
    ],
)
def test_what_it_calls_touched(after, edits, told):
    before = {"spec": {"topologySpreadConstraints": [{"maxSkew": 1}, {"maxSkew": 3}]}}
    finding = Finding(rule="max-skew", path=AT, summary="", edits=tuple(edits))
    assert [*touched(before, {"spec": {"topologySpreadConstraints": after}}, finding)] == told
