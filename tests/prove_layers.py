"""Proves that every import contract of pyproject.toml holds something: one forbidden import each, in a copy.

Run by ``make lint``. The copy as it stands must keep every contract; each break must break its own and no other.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("webhook", "certs")
VERDICT = re.compile(r"^(.+) (KEPT|BROKEN)$", re.MULTILINE)

# Contract -> the file that gets a line, and the line.
BREAKS = {
    "imports point downwards": ("webhook/config/faults.py", "import webhook.metrics"),
    "the rooms of the core": ("webhook/core/placement/proofs/bounds.py", "import webhook.core.policy.policy"),
    "no rule knows another rule": (
        "webhook/core/rules/placement/zone_loss.py",
        "import webhook.core.rules.placement.ceilings",
    ),
    "the rooms of the command line": ("webhook/cli/exit_codes.py", "import webhook.cli.output.terminal"),
    "no two files of a room import each other, by whatever way": (
        "webhook/core/api/version.py",
        "import webhook.core.api.label_syntax",
    ),
    "inside the workloads' room": ("webhook/core/policy/capacity.py", "import webhook.core.workloads.built_in_objects"),
    "inside the index": ("webhook/core/policy/capacity.py", "import webhook.core.index.tables.owner_table"),
    "rules and reviews cannot change the index": (
        "webhook/core/policy/capacity.py",
        "import webhook.core.index.cluster_index",
    ),
    "inside the scheduler's room": (
        "webhook/core/policy/capacity.py",
        "import webhook.core.scheduler.plugins.spread_scoring",
    ),
    "inside the scores of nodes": (
        "webhook/core/policy/capacity.py",
        "import webhook.core.scheduler.scoring.allocation",
    ),
    "inside the placement of workloads": (
        "webhook/core/rules/rule_set.py",
        "import webhook.core.placement.node_classes",
    ),
    "inside the admission policies": (
        "webhook/cli/commands/compile.py",
        "import webhook.core.admission_policies.cel",
    ),
    "inside the groups": ("webhook/cli/commands/version.py", "import webhook.core.groups.pins"),
    "inside the status of groups": (
        "webhook/cli/commands/version.py",
        "import webhook.core.groups.status.distribution",
    ),
    "inside the removals": ("webhook/cli/commands/version.py", "import webhook.core.pods_to_remove.cut_counts"),
    "inside explanations": ("webhook/cli/commands/version.py", "import webhook.core.explain.counted_pods"),
    "inside the rules": ("webhook/cli/commands/version.py", "import webhook.core.rules.frame.counted_workloads"),
    "inside the rules about places": (
        "webhook/cli/commands/version.py",
        "import webhook.core.rules.placement.frame.remedies",
    ),
    "inside the review": ("webhook/cli/commands/version.py", "import webhook.core.review.messages"),
    "inside what if": ("webhook/cli/commands/version.py", "import webhook.core.what_if.forecast"),
    "inside the scan": ("webhook/cli/commands/version.py", "import webhook.core.scan.smallest_fix"),
    "inside the manifests' room": ("webhook/cli/commands/version.py", "import webhook.manifests.reading.positions"),
    "inside the conformance room": ("webhook/cli/commands/version.py", "import webhook.conformance.validate_cases"),
    "no command knows another command": (
        "webhook/cli/commands/explain/page.py",
        "import webhook.cli.commands.simulate.targets",
    ),
    "inside the commands": ("webhook/cli/main.py", "import webhook.cli.commands.version"),
    "inside the formats": ("webhook/cli/commands/version.py", "import webhook.cli.formats.sarif"),
    "inside the configuration": ("webhook/cli/commands/version.py", "import webhook.config.faults"),
    "inside the console": ("webhook/cli/commands/version.py", "import webhook.console.words"),
    "inside the pages": ("webhook/console/app.py", "import webhook.console.pages.pictures"),
    "inside the controller": ("webhook/cli/commands/version.py", "import webhook.controller.bounds"),
    "inside the server": ("webhook/cli/commands/version.py", "import webhook.server.turns"),
    "inside HTTP": ("webhook/server/asgi.py", "import webhook.server.http.plain_request"),
    "inside the processes for costly objects": (
        "webhook/server/asgi.py",
        "import webhook.server.costly.process",
    ),
    "inside the cluster's room": ("webhook/cli/commands/version.py", "import webhook.cluster.wire"),
    "inside the snapshots' room": ("webhook/cli/commands/version.py", "import webhook.snapshot.anonymise"),
    "formats print what they are given": (
        "webhook/cli/commands/explain/page.py",
        "import webhook.core.rules.constraint.api",
    ),
    "the core does no I/O": ("webhook/core/api/version.py", "import time"),
    "certs stands alone": ("certs/__init__.py", "import webhook.core.api.version"),
    "only server and console know Flask, only server knows gunicorn": ("webhook/config/__init__.py", "import flask"),
    "only cluster knows the Kubernetes client": ("webhook/config/__init__.py", "import kubernetes"),
}


def verdicts(file=None, line=None):
    """Lint a copy of the packages, with the line added to the file: contract -> KEPT or BROKEN."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        if file is not None:
            with (copy / file).open("a", encoding="utf-8") as source:
                source.write(f"\n{line}\n")
        run = subprocess.run(
            [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": directory},
            capture_output=True,
            text=True,
            check=False,
        )
    return dict(VERDICT.findall(run.stdout)) or {run.stdout + run.stderr: "FAILED"}


def faults(contract, found):
    """What is wrong with the verdicts after a contract was broken on purpose: None where nothing was."""
    for name, verdict in found.items():
        wanted = "BROKEN" if name == contract else "KEPT"
        if verdict != wanted:
            yield f"{contract or 'the packages as they are'}: {name} is {verdict}, wanted {wanted}"


def main():
    """Exit 1 if a contract is not proven."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    unproven = {contract["name"] for contract in contracts} ^ BREAKS.keys()
    problems = [f"{name}: stands in pyproject.toml or in BREAKS, not in both" for name in sorted(unproven)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = {None: pool.submit(verdicts)} | {name: pool.submit(verdicts, *at) for name, at in BREAKS.items()}
    for contract, running in cases.items():
        problems += faults(contract, running.result())
    for problem in problems:
        print(problem, file=sys.stderr)  # noqa: T201 - a command's own output
    if not problems:
        print(f"{len(BREAKS)} import contracts, each broken by a deliberate import")  # noqa: T201 - likewise
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
