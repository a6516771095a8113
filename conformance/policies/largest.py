"""The largest objects that the expressions of admission policies may meet."""

LONG = {f"{'p' * 60}.{'q' * 180}.{number:03}/{'n' * 63}": "v" * 63 for number in range(250)}
REVISION = {"app": "web", "pod-template-hash": "6d9f"}



def largest_objects(kind):
    """Yield objects with as many parts of each kind as Kubernetes accepts, and more than the expressions examine."""
    many = {f"l{number}": "v" * 60 for number in range(250)}
    entries = [{"key": f"k{number}", "operator": "In", "values": ["x" * 60]} for number in range(8)]
    near = [f"topology.kubernetes.io/z{number:03}" for number in range(1_200)]
    zone = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    over = [zone | {"topologyKey": key, "labelSelector": {"matchExpressions": entries}} for key in near]
    keys = [f"m{number}" for number in range(60)]
    values = [{"key": "a", "operator": "In", "values": ["y" * 60] * 20_000}]
    conditions = [{"key": key, "operator": "NotIn", "values": ["x"]} for key in [*LONG][:128]]
    short = [zone | {"topologyKey": f"z{number}"} for number in range(20_000)]
    for constraints, own in (
        ([zone | {"labelSelector": {"matchLabels": LONG}}], {"app": "web"}),
        ([zone | {"labelSelector": {"matchLabels": dict([*LONG.items()][:64])}}], {key: "w" for key in LONG}),
        ([zone | {"labelSelector": {"matchLabels": LONG}}], {key: "w" for key in LONG}),
        ([zone | {"labelSelector": {"matchExpressions": conditions}}], {key: "x" for key in LONG}),
        ([zone | {"labelSelector": {}, "matchLabelKeys": [*LONG][:16]}] * 16, {"app": "web"}),
        (short, {"app": "web"}),
        ([zone | {"labelSelector": {"matchLabels": many}}], {"app": "web"}),
        ([zone | {"labelSelector": {"matchLabels": many}}], {f"l{number}": "w" for number in range(5_000)}),
        ([zone | {"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": [*keys, *keys]}], {"m1": "x"}),
        ([zone | {"labelSelector": {}, "matchLabelKeys": keys}], {"app": "web"}),
        (over[:16], {"app": "web"}),
        (over, {"app": "web"}),
        ([zone | {"topologyKey": "topology.kubernetes.io/" + "z" * 900_000, "labelSelector": {}}], {"app": "web"}),
        ([zone | {"labelSelector": {"matchExpressions": values}}], {}),
    ):
        spec = {"containers": [{"name": "web", "image": "web"}], "topologySpreadConstraints": constraints}
        exempt = {"evenspread.io/exempt": "," * 200_000}
        metadata = {"name": "w", "annotations": exempt, "labels": own}
        if kind == "Pod":
            yield {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
            continue
        chosen = own or {"app": "web"}
        template = {"metadata": {"labels": chosen}, "spec": spec}
        made = {"replicas": 3, "selector": {"matchLabels": chosen}, "template": template}
        yield {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": made}


def largest_pods():
    """Yield pods of a ReplicaSet with the most and longest labels and annotations for defaults, and larger pods."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d9f", "uid": "u", "controller": True}
    others = [owner | {"controller": False}] * 5_000
    annotations = {key[:-10] + f"-{number:03}": "a" * 700 for number, key in enumerate([*LONG, *"abcdef"])}
    for labels, given, owners in (
        (62, annotations, [owner]),
        (62, {"a": "b" * 262_000}, [owner]),
        (20, annotations, [owner]),
        (0, {}, [*others, owner]),
        (250, annotations, [owner]),
        (62, annotations | LONG, [owner]),
    ):
        own = REVISION | dict([*LONG.items()][:labels])
        metadata = {"name": "w", "labels": own, "annotations": given, "ownerReferences": owners}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "web"}]}}
