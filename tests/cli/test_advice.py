"""As somebody new would: simulate, do what is advised, simulate again; then everything fits.

Once for each fix that is offered, by the pages of examples and on the bundled cluster.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from webhook.cli.main import main
from webhook.core.workloads.kind_fields import has_template

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "webhook" / "example" / "cluster.jsonl"
EXAMPLES = ROOT / "docs" / "examples"
SHOWN = re.compile(r"^\$ evenspread simulate (\S+) --snapshot (\S+)$", re.MULTILINE)
PAIRS = [
    (str(ROOT / manifest), str(ROOT / cluster))
    for page in sorted(EXAMPLES.glob("*.md"))
    for manifest, cluster in SHOWN.findall(page.read_text())
]


@pytest.fixture
def simulated(capsys):
    def simulated(*arguments):
        code = main(["simulate", *map(str, arguments), "-o", "json"])
        return json.loads(capsys.readouterr().out), int(code)

    return simulated


def title(made):
    return f"{made['kind']} {made['metadata'].get('namespace', 'default')}/{made['metadata']['name']}"


def amended(documents, fix):
    """The manifests with one fix, which names the object, the field and the value."""
    made = json.loads(json.dumps(documents))
    (target,) = [each for each in made if title(each) == fix["target"]]
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", fix["path"])]
    for step in steps[:-1]:
        target = target[step]
    if fix["to"] is None:
        del target[steps[-1]]
    else:
        target[steps[-1]] = fix["to"]
    return made


def follow(simulated, tmp_path, documents, cluster):
    """Simulate the manifests with each of the fixes; gives the number of fixes, and what did not fit with one."""
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    found, _ = simulated(file, "--snapshot", cluster)
    wrong = []
    # Others are about nodes, which no manifest has.
    mine = {title(each) for each in documents}
    for fix in (each for each in found["fixes"] if each["target"] in mine):
        file.write_text(yaml.safe_dump_all(amended(documents, fix)))
        again, code = simulated(file, "--snapshot", cluster)
        # Of several workloads a fix is one for the workload that it names.
        verdict = again["workloads"][fix["target"]]["verdict"]
        if (verdict, code) != ("fits", 0 if len(documents) == 1 else code):
            wrong.append((fix, again["message"]))
    return found, wrong


@pytest.mark.slow
@pytest.mark.parametrize(("manifest", "cluster"), PAIRS, ids=[f"{Path(a).stem} in {Path(b).stem}" for a, b in PAIRS])
def test_advice_on_the_examples(simulated, tmp_path, manifest, cluster):
    documents = [*yaml.safe_load_all(Path(manifest).read_text())]
    found, wrong = follow(simulated, tmp_path, documents, cluster)
    assert wrong == []
    assert found["verdict"] == "fits" or found["fixes"] or "node-affinity" in manifest


def has_pods(manifest):
    """Whether pods come of it: a group, and a ConfigMap with one, is about pods of others."""
    documents = yaml.safe_load_all(manifest.read_text())
    return any(has_template(each["apiVersion"], each["kind"]) for each in documents)


WITH_PODS = sorted(filter(has_pods, EXAMPLES.glob("*.yaml")))


@pytest.mark.parametrize("manifest", WITH_PODS, ids=lambda each: each.stem)
def test_the_examples_fit_in_the_bundled_cluster(simulated, manifest):
    found, code = simulated(manifest, "--snapshot", CLUSTER)
    assert (found["verdict"], code) == ("fits", 0)


OBJECTS = [json.loads(line) for line in CLUSTER.read_text().splitlines()]
LACKING = ("ledger", "fraud-scoring")


@pytest.mark.parametrize("name", LACKING)
def test_advice_on_what_waits_in_the_bundled_cluster(simulated, tmp_path, name):
    made = next(
        each for each in OBJECTS if (each["kind"], each.get("metadata", {}).get("name")) == ("Deployment", name)
    )
    found, wrong = follow(simulated, tmp_path, [made], CLUSTER)
    assert (found["verdict"], wrong) == ("does-not-fit", [])
    assert found["fixes"]


def test_the_nodes_that_are_advised_make_everything_fit(simulated):
    found, code = simulated("--all", "--snapshot", CLUSTER)
    assert ({*found["workloads"]}, code) == ({f"Deployment payments/{name}" for name in LACKING}, 1)
    added = [
        argument
        for each in found["addNodes"]
        for key, zone in each["labels"].items()
        for argument in ("--add-nodes", f"{key}={zone}:{each['nodes']}")
    ]
    again, code = simulated("--all", *added, "--snapshot", CLUSTER)
    assert (again["verdict"], code) == ("fits", 0)
