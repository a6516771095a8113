"""``-o manifest`` of ``evenspread plan``: what to apply, a group and its shards with the plan's fields."""

from collections.abc import Iterator, Mapping

import msgspec
import yaml

from webhook.cli.explaining.as_json import Json
from webhook.cli.planning.as_json import fields_as_json
from webhook.cli.planning.run import Answer
from webhook.cli.planning.written import Written
from webhook.core.groups.group import Fields, Group, Shard
from webhook.core.json_edits import Edit, applied

_MADE_UP = "made up: give it your containers, volumes and Service"


def manifests(of: Answer) -> Iterator[str]:
    """A YAML document for the SpreadGroup, and one for each shard; none without a plan, nor over another workload."""
    plan = of.derived.plan
    if plan is None:
        return
    yield _document(of.asked.manifest)
    for shard in plan.shards:
        if shard.name in of.asked.taken:
            continue
        yield from _shard(of, shard, plan.fields[shard.name])


def _shard(of: Answer, shard: Shard, fields: Fields) -> Iterator[str]:
    """The workload of a shard; one that nobody has written is as the first that somebody has, else made up."""
    group, written = of.group, of.asked.written
    own = written.get(shard.name)
    first = own or next(iter(written.values()), None)
    if first is None:
        value, path, note = _made_up(group, shard), "spec.template.", _MADE_UP
    else:
        value, path, note = first.manifest(group.namespace), first.maker.template.path, ""
    if first is not None and own is None:
        value = _renamed(value, first, group.shard_label, shard)
        note = f"as {first.name}; see whether more in it is of that shard alone"
    given = fields_as_json(fields)
    edits = (
        Edit(f"{path}spec.topologySpreadConstraints", given["constraints"] or None),
        Edit(f"{path}spec.affinity", given["affinity"]),
    )
    yield _document(applied(value, edits), note)


def _made_up(group: Group, shard: Shard) -> Json:
    labels = shard.pod.labels
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": shard.name, "namespace": group.namespace, "labels": labels},
        "spec": {
            "serviceName": group.name,
            "replicas": group.pods_per_shard,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": group.name, "image": group.name}]},
            },
        },
    }


def _renamed(value: Json, of: Written, label: str, shard: Shard) -> Json:
    """The workload of another shard: its name and its value of the label, wherever they stand."""
    old = of.maker.template.template.labels[label]

    def other(each: object) -> object:
        if isinstance(each, Mapping):
            return {key: shard.value if (key, one) == (label, old) else other(one) for key, one in each.items()}
        if isinstance(each, list):
            return [other(one) for one in each]
        return shard.name if each == of.name else each

    return {key: other(each) for key, each in value.items()}


def _document(value: Mapping[str, object], note: str = "") -> str:
    # Through JSON: the same labels in two places would else be an alias of each other.
    plain = msgspec.json.decode(msgspec.json.encode(value))
    return f"---\n{f'# {note}' + chr(10) if note else ''}{yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)}"
