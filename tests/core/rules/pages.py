"""Writes docs/rules/ from the rules and their examples: ``PYTHONPATH=tests python tests/core/rules/pages.py``.

A file in testdata/rules ends with two manifests: the wrong one, and the fixed one. The messages on a page come from the
wrong one. Comments describe the cluster in the notation of ``build.cluster``: ``# nodes: a: n1=2 n2 | b: n3``, and
``# labels: pool=x`` for labels of every node. ``# after:`` is the cluster after the fix. Earlier manifests are other
objects in the cluster.
"""

import re
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

import yaml
from build import cluster
from manifest import DENY
from msgspec import Raw, json
from msgspec.structs import replace

from webhook.core.api.types import TypeMeta
from webhook.core.api.version import ANNOUNCED, OLDEST, RECORDED, KubernetesVersion
from webhook.core.context import Context
from webhook.core.index.readers import decode_object
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
# Rules that find less, or nothing, without a cluster.
NEED_CLUSTER = frozenset(rule.id for rule in RULES if rule.needs)
# Every rule reports its findings, whatever its default mode.
OPEN = replace(DENY, rules={rule.id: Mode.WARN for rule in RULES})

# Findings that differ from the severity of their rule.
OTHER_SEVERITY = {
    "topology-key-typo": "medium for a bare name such as `zone`",
    "unread-constraints": "high if the constraints surely reach no pod",
}

INDEX = """# Rules

Each page shows a manifest that breaks the rule, the effect in your cluster, the fix, and the cases in which the rule
stays silent. [Precision](precision.md) lists how many findings in public repositories are true.

You set the mode of each rule in your [configuration](../configuration.md) (`rules`):

| mode | the webhook's reaction to a finding |
|---|---|
| `deny` | rejects the object |
| `warn` | admits the object with a warning to its author |
| `audit` | admits the object silently. The finding goes to metrics, the audit log and [reports](../reports.md) |
| `off` | none, because it does not evaluate the rule |

The `ceiling` caps all modes: globally, per namespace, or by the Namespace label `evenspread.io/ceiling`. A rule is *not
evaluated* if it lacks a fact, and names the fact.

Messages name a constraint by the last part of its topologyKey and its index. `zone[0]` is
`topologySpreadConstraints[0]` over `topology.kubernetes.io/zone`.

"At most 2 of 6 fit" is a proven bound: if running pods stay in place, no order of placing your pods exceeds it. Other
limits can lower it further. evenspread offers a fix for such a finding only if all pods then fit in every order.

| rule | severity | default mode | what the rule needs |
|---|---|---|---|
"""


class Example(NamedTuple):
    """The two manifests of a rule, and the cluster: its nodes, also after the fix, their labels, and another object."""

    bad: str
    good: str
    nodes: str = ""
    after: str = ""
    labels: str = ""
    other: str = ""

    def found(self, text, rule, version=RECORDED):
        """The rule's findings about a manifest."""
        return [each.finding for each in self.judged(text, OPEN, version) if each.finding.rule == rule]

    def judged(self, text, policy, version=RECORDED):
        """The findings of all rules about a manifest, with their modes."""
        nodes = self.after if self.after and text == self.good else self.nodes
        index = cluster(nodes, labelled=self.labels) if nodes else None
        if index is not None:
            index.version = version
        if self.other:
            value = yaml.safe_load(self.other)
            kind = TypeMeta(api_version=value["apiVersion"], kind=value["kind"])
            index.apply("ADDED", decode_object(Raw(json.encode(value)), kind))
        context = Context(policy=policy, index=index, version=version, now="2026-01-01")
        return examine(yaml.safe_load(text), context).findings


def example(rule):
    """The example of a rule; None for a rule that has none."""
    path = EXAMPLES / f"{rule}.yaml"
    if not path.exists():
        return None
    text = path.read_text()
    *other, bad, good = re.sub("^#.*\n", "", text, flags=re.MULTILINE).split("---\n")
    return Example(
        bad, good, other="".join(other), **dict(re.findall("^# (nodes|labels|after): (.*)\n", text, flags=re.MULTILINE))
    )


def sentence(text):
    """Capitalise the text, unless it starts with a name of Kubernetes."""
    first = text.split()[0]
    return text[0].upper() + text[1:] if first.islower() and "-" not in first else text


def default_mode(rule):
    """A finding can warn although its rule only audits by default."""
    return "audit; some findings warn" if rule.mode is Mode.AUDIT and not rule.only_audits else rule.mode


def page(rule):
    """One rule as Markdown."""
    lines = [f"# {rule.id}", "", f"{sentence(rule.title)}.", ""]
    since = "since [rulesVersion](../configuration.md#the-file)"
    lines += [f"| severity | default [mode](README.md) | {since} |", "|---|---|---|"]
    lines += [f"| {severity(rule)} | {default_mode(rule)} | {rule.since} |", ""]
    if rule.highest_on_pods is not Mode.DENY:
        lines += ["It never denies Pods, scale requests or kube-system accounts.", ""]
    shown = example(rule.id)
    findings = shown.found(shown.bad, rule.id)
    named = f"{yaml.safe_load(shown.bad)['kind']} shop/web"
    verb = "check" if rule.id in OFFLINE else "apply"
    lines += ["## What you did", "", *in_cluster(shown), f"You {verb} this manifest:", "", *block(shown.bad)]
    lines += ["## What happens in the cluster", "", rule.why, ""]
    if rule.id in OFFLINE:
        texts = [text for each in findings for text in (each.summary, f"fix: {each.fix}")]
        lines += ["`evenspread check` reports:", "", "```", *texts, "```", ""]
    else:
        lines += ["In mode `warn`:", "", "```", *warnings_of(findings), "```", ""]
    if rule.id not in OFFLINE and not (rule.highest_on_pods is not Mode.DENY and named.startswith("Pod")):
        lines += ["In mode `deny`:", "", "```", denial(named, findings, Messages()), "```", ""]
    lines += in_other_releases(shown, rule.id)
    lines += ["## How to fix it", "", "In your manifest, change:", "", *difference(shown.bad, shown.good)]
    if shown.after:
        lines += ["After the rollout, your nodes are:", "", *node_table(shown.after), ""]
    lines += exceptions(SILENT[rule.id])
    return "\n".join(lines)


def exceptions(cases):
    """The lists of cases without a warning, under a heading for each kind of case."""
    of = {"## When the rule stays silent": [], "## Audit only": [], "## Not evaluated": []}
    for case in cases:
        heading = next((each for each in of if case.startswith(each.removeprefix("## ") + " ")), next(iter(of)))
        text = case.removeprefix(heading.removeprefix("## ") + " ")
        of[heading].append(f"- {text[0].upper()}{text[1:]}")
    return [line for heading, items in of.items() if items for line in (heading, "", *items, "")]


def severity(rule):
    """A rule's severity, and its exceptions."""
    return f"{rule.severity}; {OTHER_SEVERITY[rule.id]}" if rule.id in OTHER_SEVERITY else str(rule.severity)


def block(text):
    """A block of YAML."""
    return ["```yaml", text.rstrip(), "```", ""]


def difference(bad, good):
    """A block with the changed lines and those around them. Lines far from a change are left out."""
    _, _, _, *lines = unified_diff(bad.splitlines(), good.splitlines(), lineterm="")
    return ["```diff", *("…" if line.startswith("@@") else line.rstrip() for line in lines), "```", ""]


def in_other_releases(shown, rule):
    """The warnings in other releases, where they differ."""
    by_text = {}
    for minor in range(OLDEST.minor, ANNOUNCED.minor + 1):
        version = KubernetesVersion(1, minor)
        text = "\n".join(warnings_of(shown.found(shown.bad, rule, version)))
        same = text.replace(f"Kubernetes {version}", "Kubernetes")  # the only difference may be the release's name
        by_text.setdefault(same, []).append((str(version), text))
    lines = []
    for (first, text), *more in by_text.values():
        releases = [first, *(release for release, _ in more)]
        if str(RECORDED) not in releases:
            which = f"{releases[0]} to {releases[-1]}" if more else first
            lines += (
                [f"In Kubernetes {which}:", "", "```", text, "```", ""]
                if text
                else [f"In Kubernetes {which}, the rule does not report this manifest.", ""]
            )
    return lines


def in_cluster(shown):
    """The cluster of an example: a table of its nodes, and its other object."""
    if not shown.nodes:
        return []
    labelled = f" with the label `{shown.labels}`" if shown.labels else ""
    lines = [f"Your cluster has these nodes{labelled}:", "", *node_table(shown.nodes)]
    if shown.other:
        lines += ["", f"It also has this {yaml.safe_load(shown.other)['kind']}:", "", *block(shown.other)[:-1]]
    return [*lines, ""]


def node_table(nodes):
    """The zones of a cluster with their nodes, as a table."""
    lines = ["| zone | nodes |", "|---|---|"]
    for part in nodes.split("|"):
        zone, _, names = part.rpartition(":")
        lines.append(f"| {zone.strip() or 'none'} | {', '.join(map(node_text, names.split()))} |")
    return lines


def node_text(entry):
    """A node in words: ``n1 (2 pods with app=web, tainted)``."""
    name, _, pods = entry.lstrip("~").partition("=")
    facts = [f"{pods} {'pod' if pods == '1' else 'pods'} with app=web"] if int(pods or 0) else []
    facts += ["tainted"] if entry.startswith("~") else []
    return f"{name} ({', '.join(facts)})" if facts else name


def index():
    """The table of all rules."""
    rows = []
    for rule in RULES:
        needs = "the object (kube-apiserver's own error)" if rule.id in API_RULES else "the object"
        needs = "a cluster" if rule.id in NEED_CLUSTER else needs
        needs = "the object (only on the command line)" if rule.id in OFFLINE else needs
        needs = "a cluster for most findings" if rule in (CONFLICTS, TOO_WIDE) else needs
        rows.append(f"| [{rule.id}]({rule.id}.md) | {severity(rule)} | {default_mode(rule)} | {needs} |")
    return INDEX + "\n".join(rows) + "\n"


def pages():
    """Every page by its name."""
    return {"README.md": index(), **{f"{rule.id}.md": page(rule) for rule in RULES}}


if __name__ == "__main__":
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)
