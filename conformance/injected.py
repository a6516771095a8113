"""Whether a pod that carries the cluster's defaults is judged as the scheduler would have judged it without them.

usage: python injected.py ORACLE SEED COUNT

Of COUNT fresh scenarios, those with default constraints of type List are decided twice by Kubernetes' own code: as they
are, the scheduler having the defaults; and with the pod patched as at admission, matchLabelKeys off, the scheduler having
none. Both must come to the same verdicts, scores included. Pods that defaulting leaves alone are counted by the reason.
"""

import json
import subprocess
import sys
from collections import Counter

import msgspec

from webhook.conformance.verdict_cases import read_scenario
from webhook.config import ConfigError, parse_policy
from webhook.core.context import Context
from webhook.core.defaulting.injection import Injection, inject
from webhook.core.api.types import Pod
from webhook.core.api.version import RECORDED

COMPARED = ("preFilter", "nodes", "spread", "spreadPreFilter", "scores", "message", "feasible", "fits")


def policy_of(args):
    """The same constraints as our configuration has them; None where it refuses them."""
    text = json.dumps({
        "apiVersion": "config.evenspread.io/v1alpha1",
        "kind": "SpreadPolicy",
        "defaults": {
            "mode": "inject",
            "matchLabelKeys": "off",
            "defaultingType": "List",
            "defaultConstraints": args["defaultConstraints"],
        },
    })
    try:
        return parse_policy(text).policy
    except ConfigError:
        return None


def patched(scenario, patch):
    pod = json.loads(json.dumps(scenario["pod"]))
    for operation in patch:
        *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        target = pod
        for step in steps:
            target = target[int(step)] if isinstance(target, list) else target[step]
        target[last] = json.loads(msgspec.json.encode(operation["value"]))
    none = {"defaultingType": "List", "defaultConstraints": []}
    return scenario | {"pod": pod, "podTopologySpreadArgs": none}


def verdicts(oracle, scenarios):
    text = "".join(json.dumps(each) + "\n" for each in scenarios)
    done = subprocess.run([oracle, "verdict"], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(oracle, seed, count):
    command = [oracle, "generate", "--kind", "verdict", "--profile", "defaults", "--seed", seed, "--count", count]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    seen, before, after = Counter(), [], []
    for line in lines:
        scenario = json.loads(line)
        args = scenario.get("podTopologySpreadArgs") or {}
        if args.get("defaultingType") != "List" or not args.get("defaultConstraints"):
            continue
        policy = policy_of(args)
        if policy is None:
            seen["refused as configuration"] += 1
            continue
        case = {name: json.dumps(value).encode() for name, value in scenario.items()}
        index = read_scenario(case).index
        pod = msgspec.json.decode(case["pod"], type=Pod)
        result = inject(pod, pod.meta.namespace, Context(policy=policy, version=RECORDED, index=index), waited=True)
        if not isinstance(result, Injection):
            seen[f"left alone: {result.reason}"] += 1
            continue
        before.append(scenario)
        after.append(patched(scenario, result.patch))
    different = 0
    for one, other, scenario in zip(verdicts(oracle, before), verdicts(oracle, after), after):
        apart = [name for name in COMPARED if one.get(name) != other.get(name)]
        if apart:
            different += 1
            print(f"{scenario['id']}: {', '.join(apart)} differ: {one.get(apart[0])} and {other.get(apart[0])}"[:600])
    print(f"{len(before)} pods with injected defaults, {different} judged otherwise than by the scheduler's own;", dict(seen))
    if different or not before:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
