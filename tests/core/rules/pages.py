"""Writes docs/rules/ from the rules and their examples: ``PYTHONPATH=tests python tests/core/rules/pages.py``.

Each file of testdata/rules has two manifests: one that breaks the rule, and its twin that does not. The messages on a
page are those that the rules give of the first one. A rule that needs a cluster has it above them, in the notation of
``build.cluster``: ``# nodes: a: n1=2 n2 | b: n3``, and below it ``# labels: pool=x`` if every node has more labels. A
SpreadGroup that the cluster has is a manifest before the two.
"""

import re
from pathlib import Path
from typing import NamedTuple

import yaml
from build import cluster
from manifest import DENY
from msgspec import convert
from msgspec.structs import replace

from webhook.core.api.spread_group import SpreadGroup
from webhook.core.api.version import ANNOUNCED, OLDEST, RECORDED, KubernetesVersion
from webhook.core.context import Context
from webhook.core.policy.policy import Messages, Mode
from webhook.core.review.examination import examine
from webhook.core.review.messages import denial, warnings_of
from webhook.core.rules.cluster.shared_selectors import TOO_WIDE
from webhook.core.rules.placement.affinity_conflicts import CONFLICTS
from webhook.core.rules.rule_set import API_RULES, OFFLINE, RULES

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "tests" / "testdata" / "rules"
PAGES = ROOT / "docs" / "rules"
SILENT = yaml.safe_load((PAGES / "silent.yaml").read_text())
# Rules that say nothing, or not everything, without a cluster.
NEED_CLUSTER = frozenset(rule.id for rule in RULES if rule.needs)
# Every rule may speak, whatever its default mode.
OPEN = replace(DENY, rules={rule.id: Mode.WARN for rule in RULES})

INDEX = """# Rules

One page a rule: what it says, why it matters, an example, and when it is silent. A mode is `deny`, `warn`, `audit` or
`off`; it is set per rule in the configuration (`rules`), and capped by the `ceiling` (global, per namespace, or the
Namespace label `evenspread.io/ceiling`). Every rule answers *pass*, *finding*, or *not evaluated* with the fact
that was missing.

Messages name a constraint by the last part of its topology key and its index: `zone[0]` is
`topologySpreadConstraints[0]`, over `topology.kubernetes.io/zone`.

| rule | severity | mode | speaks |
|---|---|---|---|
"""


class Example(NamedTuple):
    """The two manifests of a rule, and the cluster that they come to: its nodes, their labels, a SpreadGroup."""

    bad: str
    good: str
    nodes: str = ""
    labels: str = ""
    group: str = ""

    def found(self, text, rule, version=RECORDED):
        """What the rule says of a manifest."""
        index = cluster(self.nodes, labelled=self.labels) if self.nodes else None
        if index is not None:
            index.version = version
        if self.group:
            index.apply("ADDED", convert(yaml.safe_load(self.group), SpreadGroup))
        answers = examine(
            yaml.safe_load(text), Context(policy=OPEN, index=index, version=version, today="2026-01-01")
        ).findings
        return [each.finding for each in answers if each.finding.rule == rule]


def example(rule):
    """The example of a rule; None for a rule that has none."""
    path = EXAMPLES / f"{rule}.yaml"
    if not path.exists():
        return None
    text = path.read_text()
    *group, bad, good = re.sub("^#.*\n", "", text, flags=re.MULTILINE).split("---\n")
    return Example(
        bad, good, group="".join(group), **dict(re.findall("^# (nodes|labels): (.*)\n", text, flags=re.MULTILINE))
    )


def sentence(text):
    """Text that begins a line; the name of a field keeps its first letter."""
    return text[0].upper() + text[1:] if text.split()[0].islower() else text


def page(rule):
    """One rule as Markdown."""
    lines = [f"# {rule.id}", "", f"{sentence(rule.title)}.", "", rule.why, ""]
    lines += ["| severity | default mode | since |", "|---|---|---|"]
    lines += [f"| {rule.severity} | {rule.mode} | {rule.since} |", ""]
    if rule.highest_on_pods is not Mode.DENY:
        lines += ["It never denies a Pod, a scale request, or an account of kube-system.", ""]
    shown = example(rule.id)
    if shown is not None:
        findings = shown.found(shown.bad, rule.id)
        named = f"{yaml.safe_load(shown.bad)['kind']} shop/web"
        lines += ["## Breaks the rule", "", *on_nodes(shown), "```yaml", shown.bad.rstrip(), "```", ""]
        if rule.id in OFFLINE:
            told = [text for each in findings for text in (each.summary, f"fix: {each.fix}")]
            lines += ["`evenspread check` says:", "", "```", *told, "```", ""]
        else:
            lines += ["As a warning:", "", "```", *warnings_of(findings), "```", ""]
        if rule.id not in OFFLINE and not (rule.highest_on_pods is not Mode.DENY and named.startswith("Pod")):
            lines += ["As a denial:", "", "```", denial(named, findings, Messages()), "```", ""]
        lines += [*in_other_releases(shown, rule.id), "## Does not", "", "```yaml", shown.good.rstrip(), "```", ""]
    lines += ["## When it is silent", "", sentence(SILENT[rule.id]), ""]
    return "\n".join(lines)


def in_other_releases(shown, rule):
    """What the rule says of the same manifest as an older or a later release; nothing where it is the same."""
    told = {}
    for minor in range(OLDEST.minor, ANNOUNCED.minor + 1):
        version = KubernetesVersion(1, minor)
        text = "\n".join(warnings_of(shown.found(shown.bad, rule, version)))
        same = text.replace(f"Kubernetes {version}", "Kubernetes")  # where it names only the release
        told.setdefault(same, []).append((str(version), text))
    lines = []
    for (first, text), *more in told.values():
        releases = [first, *(release for release, _ in more)]
        if str(RECORDED) not in releases:
            which = f"{releases[0]} to {releases[-1]}" if more else first
            said = (
                [f"In Kubernetes {which}:", "", "```", text, "```"]
                if text
                else [f"In Kubernetes {which} it is silent."]
            )
            lines += [*said, ""]
    return lines


def on_nodes(shown):
    """The cluster of an example, in words."""
    if not shown.nodes:
        return []
    beside = ["With this SpreadGroup:", "", "```yaml", shown.group.rstrip(), "```", ""] if shown.group else []
    more = f", all with the label `{shown.labels}`" if shown.labels else ""
    return [f"On these nodes (zone: node, or node=pods of app=web; `~` is tainted){more}: `{shown.nodes}`", "", *beside]


def index():
    """The table of all rules."""
    rows = []
    for rule in RULES:
        kind = "as kube-apiserver does" if rule.id in API_RULES else "with a cluster" if rule.id in NEED_CLUSTER else ""
        kind = "of the object alone, on the command line only" if rule.id in OFFLINE else kind
        kind = "with a cluster; less without" if rule in (CONFLICTS, TOO_WIDE) else kind
        rows.append(f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {rule.mode} | {kind or 'of the object alone'} |")
    return INDEX + "\n".join(rows) + "\n"


def pages():
    """Every page by its name."""
    return {"README.md": index(), **{f"{rule.id}.md": page(rule) for rule in RULES}}


if __name__ == "__main__":
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)
