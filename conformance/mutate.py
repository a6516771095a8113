"""Record what Kubernetes says of mutated input: nulls, wrong types, repeated and misspelt fields, odd text anywhere.

usage: python mutate.py ORACLE validate|args SEED COUNT OUT.jsonl.gz

The scenarios depend on the seed only. Errors and warnings about other fields than the spread constraints are left out of
``expected``, and warnings altogether where there was such an error.
"""

import gzip
import json
import random
import subprocess
import sys

SPREAD = "topologySpreadConstraints"
LABEL = '{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]},{"key":"x","operator":"Exists"}]}'
CONSTRAINTS = (
    '[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","minDomains":2,'
    f'"labelSelector":{LABEL},"nodeAffinityPolicy":"Honor","nodeTaintsPolicy":"Ignore","matchLabelKeys":["rev","pod-template-hash"]}},'
    '{"maxSkew":2,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web","rev":"7"}}}]'
)
SPEC = (
    '{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"500m","memory":"1Gi"},"limits":{"cpu":2}},'
    '"ports":[{"containerPort":80,"hostPort":8080,"protocol":"TCP"}],"env":[{"name":"A","value":"b"}]}],'
    f'"{SPREAD}":{CONSTRAINTS},"nodeSelector":{{"disk":"ssd"}},"priority":5,"hostNetwork":false,'
    '"tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule","tolerationSeconds":5}],'
    '"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":'
    '[{"key":"zone","operator":"In","values":["a"]}]}]}}},"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}],'
    '"overhead":{"cpu":"10m"},"restartPolicy":"Always"}'
)
META = (
    '{"name":"web","namespace":"shop","labels":{"app":"web","rev":"7"},"annotations":{"a":"b"},"creationTimestamp":null,'
    '"finalizers":["example.com/f"],"generation":3,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"o","uid":"u","controller":true}]}'
)
TEMPLATE = f'{{"metadata":{{"labels":{{"app":"web","rev":"7"}},"creationTimestamp":null}},"spec":{SPEC}}}'
ONCE = TEMPLATE.replace('"Always"', '"Never"')
SELECTOR = '{"matchLabels":{"app":"web"}}'
BASES = {
    "Pod": ("v1", SPEC),
    "Deployment": (
        "apps/v1",
        f'{{"replicas":3,"selector":{SELECTOR},"strategy":{{"type":"RollingUpdate","rollingUpdate":{{"maxSurge":"25%","maxUnavailable":1}}}},"template":{TEMPLATE}}}',
    ),
    "StatefulSet": ("apps/v1", f'{{"serviceName":"web","replicas":3,"selector":{SELECTOR},"template":{TEMPLATE}}}'),
    "DaemonSet": ("apps/v1", f'{{"selector":{SELECTOR},"template":{TEMPLATE}}}'),
    "ReplicaSet": ("apps/v1", f'{{"replicas":1,"selector":{SELECTOR},"template":{TEMPLATE}}}'),
    "ReplicationController": ("v1", f'{{"replicas":1,"selector":{{"app":"web"}},"template":{TEMPLATE}}}'),
    "Job": ("batch/v1", f'{{"parallelism":2,"backoffLimit":3,"template":{ONCE}}}'),
    "CronJob": ("batch/v1", f'{{"schedule":"0 3 * * *","suspend":false,"jobTemplate":{{"spec":{{"template":{ONCE}}}}}}}'),
}


class Text(str):
    """A value as it stands in JSON, quotes included."""


class Object(list):
    """Members, repeated ones included; each is [name as JSON, value]."""


def parse(text):
    return json.loads(
        text,
        object_pairs_hook=lambda pairs: Object([quoted(name), plain(value)] for name, value in pairs),
        parse_int=Text,
        parse_float=Text,
    )


def quoted(text):
    return Text(json.dumps(text, ensure_ascii=False))


def plain(value):
    if isinstance(value, Object) or (isinstance(value, list) and not isinstance(value, Object)):
        return value if isinstance(value, Object) else [plain(each) for each in value]
    return value if isinstance(value, Text) else Text(json.dumps(value, ensure_ascii=False))


def render(node):
    if isinstance(node, Object):
        return "{" + ",".join(f"{name}:{render(value)}" for name, value in node) + "}"
    if isinstance(node, list):
        return "[" + ",".join(render(value) for value in node) + "]"
    return node


NUMBERS = ["0", "-0", "-1", "1", "2", "1.5", "1.0", "1e3", "1E2", "-2147483648", "2147483647", "2147483648", "9223372036854775808"]
NUMBERS += ["99999999999999999999", "-2147483649", "0.1", "1e400"]
WORDS = ["", "x", "app", "rev", "tier", "DoNotSchedule", "ScheduleAnyway", "Honor", "Ignore", "Exists", "In", "NotIn", "DoesNotExist"]
WORDS += ["Gt", "zone", "bad key", "a/b/c", "/x", "x/", "UPPER.example/x", "example.com/x", "-x", "x-", "é", "\u2028", "<b>&", "a" * 64]
WORDS += ["a" * 254 + "/x", "\U0001f600", "\u00a0", "\u200b", "2026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "yesterday", "1Gi", "500m"]
WORDS += ["1.5Ki", "ten", " 5", "25%", "1e3", "TCP", "Always", "é" * 32, "x\ny", "\u0000", "tab\t", "'", "a\"b\\c", "x=y,z"]
ESCAPED = ['"\\ud800"', '"\\udc00x"', '"\\ud83d\\ude00"', '"\\u0041"', '"\\/"', '"a\\u00e9"', '"\\ud800\\u0041"']
NAMES = ["maxskew", "MaxSkew", "topologykey", "labelselector", "foo", "", "matchLabelKeys", "maxSkew", "spec", "a.b", "é", "\u2028", "x y"]


def junk(rng):
    return rng.choice(
        [
            lambda: Text("null"),
            lambda: Text("null"),
            lambda: Text(rng.choice(["true", "false"])),
            lambda: Text(rng.choice(NUMBERS)),
            lambda: quoted(rng.choice(WORDS)),
            lambda: quoted(rng.choice(WORDS)),
            lambda: Text(rng.choice(ESCAPED)),
            lambda: [],
            lambda: Object(),
            lambda: [Text("null")],
            lambda: [quoted(rng.choice(WORDS)), Text(rng.choice(NUMBERS))],
            lambda: Object([[quoted(rng.choice(WORDS)), Text(rng.choice(["null", '"v"', "1"]))]]),
        ]
    )()


def places(node, inside, found):
    """Every container, with whether it is in the constraints."""
    found.append((node, inside))
    for child in node:
        name, value = child if isinstance(node, Object) else ("", child)
        if isinstance(value, list):
            places(value, inside or name == f'"{SPREAD}"', found)
    return found


def copy(node):
    if isinstance(node, Object):
        return Object([name, copy(value)] for name, value in node)
    return [copy(value) for value in node] if isinstance(node, list) else node


def mutate(rng, root, kept=()):
    containers = places(root, False, [])
    wanted = rng.random() < 0.7
    node = rng.choice([each for each, inside in containers if inside == wanted] or [root])
    if not node:
        node.append([quoted(rng.choice(NAMES)), junk(rng)] if isinstance(node, Object) else junk(rng))
        return
    index = rng.randrange(len(node))
    if node is root and node[index][0] in kept:
        return
    kind = rng.random()
    if not isinstance(node, Object):
        if kind < 0.4:
            node[index] = junk(rng)
        elif kind < 0.7:
            node.insert(index, junk(rng))
        elif kind < 0.85:
            node.append(copy(node[index]))
        else:
            del node[index]
    elif kind < 0.4:
        node[index] = [node[index][0], junk(rng)]
    elif kind < 0.5:
        node.append([node[index][0], junk(rng)])
    elif kind < 0.6:
        other = rng.choice(node)
        node.append([node[index][0], copy(other[1])])
    elif kind < 0.7:
        node.append([node[index][0], copy(node[index][1])])
    elif kind < 0.8:
        node.insert(index, [quoted(rng.choice(NAMES)), junk(rng)])
    elif kind < 0.9:
        node[index] = [quoted(rng.choice(NAMES + WORDS)), node[index][1]]
    else:
        del node[index]


ARGS = (
    '{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"PodTopologySpreadArgs","defaultingType":"List","defaultConstraints":['
    '{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","minDomains":2},'
    '{"maxSkew":2,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","nodeTaintsPolicy":"Honor"}]}'
)


def args_scenario(rng, name):
    root = parse(ARGS)
    if rng.random() < 0.5:
        del root[:2]
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        mutate(rng, root)
    if rng.random() < 0.03:
        # What does not begin like an object is read as YAML upstream, where these escapes are faults.
        root = rng.choice([Text("5"), Text('"x"'), Text("true"), Text("null"), [], [Text("null")]])
    return f'{{"id":"{name}","args":{render(root)}}}'


def scenario(rng, name):
    kind = rng.choice(["Pod", "Pod", "Pod", *BASES])
    version, spec = BASES[kind]
    root = parse(f'{{"apiVersion":"{version}","kind":"{kind}","metadata":{META},"spec":{spec}}}')
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4, 6])):
        mutate(rng, root, ('"apiVersion"', '"kind"'))
    return f'{{"id":"{name}","object":{render(root)}}}'


def expected(answer):
    if "decodeError" in answer or "warnings" not in answer:
        return answer
    errors = [each for each in answer["errors"] if SPREAD in each["field"]]
    if len(errors) < len(answer["errors"]):
        answer.pop("warnings")
    else:
        answer["warnings"] = [each for each in answer["warnings"] if SPREAD in each]
    return {**answer, "errors": errors}


def main(oracle, command, seed, count, out):
    rng = random.Random(f"mutate-{command}-{seed}")
    draw = {"validate": scenario, "args": args_scenario}[command]
    lines = [draw(rng, f"mutate-{command}-{seed}-{i}") for i in range(int(count))]
    ran = subprocess.run([oracle, command], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    with gzip.open(out, "wt", encoding="utf-8") as file:
        for line, answer in zip(lines, answers, strict=True):
            file.write(f'{{"scenario":{line},"expected":{json.dumps(expected(answer), ensure_ascii=False)}}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
