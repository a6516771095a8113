"""What the expressions of compiled policies cost at most: python -m conformance.policies PROGRAM

PROGRAM (`main.go`) compiles the policies of each release with the API server's own code, and evaluates every expression
with the largest objects. Prints the highest costs. Exit code 1 if a release refuses an expression, if a pod gets no
patch because an expression fails, or if a cost exceeds half of the API server's limit.
"""

import json
import subprocess
import sys
from bisect import bisect

from conformance.policies.largest import LONG, largest_objects, largest_pods
from webhook.config import ConfigError, parse_policy
from webhook.core.admission_policies.default_sets import MOST_IN_A_SET
from webhook.core.admission_policies.limits import why_refused
from webhook.core.admission_policies.mutating_policies import mutating_policies
from webhook.core.admission_policies.policies import admission_policies
from webhook.core.api import gates
from webhook.core.api.version import OLDEST, RECORDED, parse_version

TODAY = "2026-11-28"
HIGHEST = 0.5  # of a limit
RULES = {"spread-required": "warn", "topology-key-typo": "warn"}
MANY, SHOWN = 100, 5
NAMESPACE = {"metadata": {"name": "web", "labels": {f"label-{number}": "a" for number in range(MANY)}}}
POLICIES = {
    "all rules": {"rules": RULES, "denyFrom": "low"},
    "100 exemptions and namespaces": {
        "rules": RULES,
        "exemptions": [
            {"rule": "selector-empty", "match": {"selector": {"matchLabels": {f"label-{number}": "b"}}}, "reason": "x"}
            for number in range(MANY)
        ],
        "namespaces": [
            {"match": {"namespaceSelector": {"matchLabels": {f"label-{number}": "b"}}}, "ceiling": "deny"}
            for number in range(MANY)
        ],
    },
}
MOST = [
    {"maxSkew": 1, "topologyKey": f"example.com/{number}", "whenUnsatisfiable": "ScheduleAnyway"}
    for number in range(MOST_IN_A_SET)
]
SIXTEEN = MOST[:16]
DEFAULTS = {
    "no defaults": {"defaults": {"mode": "off"}},
    "the most constraints": {"defaults": {"mode": "inject", "defaultConstraints": MOST}},
    "the most matchLabelKeys": {
        "defaults": {
            "mode": "inject",
            "defaultConstraints": [MOST[0] | {"matchLabelKeys": [*LONG][: MOST_IN_A_SET - 1]}],
        },
    },
    "16 defaults and 100 overrides": {
        "defaults": {
            "mode": "inject",
            "defaultConstraints": SIXTEEN,
            "overrides": [
                {
                    "name": f"override-{number}",
                    "namespaceSelector": {"matchLabels": {f"label-{number}": "a"}},
                    "podSelector": {"matchLabels": {"app": "web", "tier": f"{number}"}},
                    "defaultConstraints": SIXTEEN,
                }
                for number in range(MANY)
            ],
        }
    },
}


def selecting(number):
    return {"matchLabels": {f"label-{number % MANY}": f"b{number}"}}


def override(number, constraints, selector):
    return {"name": f"o{number}", "podSelector": selector, "defaultConstraints": constraints}


def with_defaults(**fields):
    return {"defaults": {"mode": "inject", "defaultConstraints": SIXTEEN} | fields}


SOFT = SIXTEEN[0]
GROWING = {
    "namespaces": lambda most: {
        "namespaces": [{"match": {"namespaceSelector": selecting(n)}, "ceiling": "deny"} for n in range(most)]
    },
    "exemptions": lambda most: {
        "exemptions": [
            {"rule": "selector-empty", "match": {"namespaceSelector": selecting(n)}, "reason": "x"} for n in range(most)
        ]
    },
    "domains": lambda most: {"rules": RULES, "domains": {f"d{n}": ["a"] for n in range(most)}},
    "overrides": lambda most: with_defaults(overrides=[override(n, SIXTEEN, selecting(n)) for n in range(most)]),
    "different overrides": lambda most: with_defaults(
        overrides=[override(n, [SOFT | {"topologyKey": f"d{n}"}], selecting(n)) for n in range(most)]
    ),
}
"""The policy files that grow, as functions of their number of entries. Other fields are lists of texts."""


def objects_of(fields, version):
    """Return the compiled objects. Without defaults, those of the rules."""
    head = {"apiVersion": "config.evenspread.io/v1alpha1", "kind": "SpreadPolicy"}
    policy = parse_policy(json.dumps(head | fields), file="p", today=TODAY).policy
    if "defaults" not in fields:
        return [*admission_policies(policy, version, TODAY)]
    return [*mutating_policies(policy, version)] if gates.HAS_MUTATING_POLICIES.holds(version) else []


def is_refused(fields):
    try:
        return any(map(why_refused, objects_of(fields, RECORDED)))
    except ConfigError:  # The policy file itself is too large.
        return True


def largest(grown):
    """Return the largest number of entries that `compile` accepts."""
    entries = range(100, 12_000, 10)
    return entries[bisect(entries, 0, key=lambda most: is_refused(grown(most))) - 1]


def compiled(fields, oldest=OLDEST):
    """Yield the admission policies for each release. The newest is evaluated: the costs of the others are the same."""
    for minor in range(oldest.minor, RECORDED.minor + 1):
        version = parse_version(f"1.{minor}")
        for each in objects_of(fields, version):
            if not each["kind"].endswith("Binding"):
                yield {"release": f"{version}", "policy": each, "evaluate": minor == RECORDED.minor}


def costs(program, fields, oldest=OLDEST):
    """Return the highest cost of each expression and budget, the highest share of a limit first."""
    objects = [each for kind in ("Deployment", "Pod") for each in largest_objects(kind)]
    if "defaults" in fields:
        objects = [*largest_pods()]
    given = {"policies": [*compiled(fields, oldest)], "objects": objects, "namespace": NAMESPACE}
    ran = subprocess.run([program], input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True)
    found = sorted(map(json.loads, ran.stdout.splitlines()), key=share, reverse=True)
    highest = {}
    for each in found:
        highest.setdefault(each["what"], each)
    return [*highest.values()]


def share(each):
    return each["cost"] / each["limit"]


def main(program):
    worst = 0.0
    print("| policy | expression | cost | limit | share |\n|---|---|---|---|---|")
    named = [(name, fields, OLDEST) for name, fields in (POLICIES | DEFAULTS).items()]
    for name, grown in GROWING.items():
        most = largest(grown)
        named.append((f"the most {name}, {most:,}", grown(most), RECORDED))
    for name, fields, oldest in named:
        found = costs(program, fields, oldest)
        worst = max(worst, *map(share, found))
        for each in [*found[:SHOWN], *(each for each in found[SHOWN:] if each["what"].startswith("all "))]:
            cells = (name, each["what"], f"{each['cost']:,}", f"{each['limit']:,}", f"{share(each):.1%}")
            print(f"| {' | '.join(cells)} |")
    print(f"the highest cost is {worst:.0%} of its limit, and {HIGHEST:.0%} is allowed")
    return worst > HIGHEST


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
