"""Whatever style a manifest is written in: the constraints are added, and nothing else is touched."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.cli.commands.check.add_defaults import amend
from webhook.cli.frame import Frame
from webhook.core.api.types import SpreadConstraint
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.policy.defaults import DefaultConstraint, Defaults
from webhook.core.policy.policy import Policy
from webhook.manifests.reading.files import File

KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
SOFT = (SpreadConstraint(max_skew=2, topology_key=key, when_unsatisfiable="ScheduleAnyway") for key in KEYS)
POLICY = Policy(defaults=Defaults(default_constraints=tuple(DefaultConstraint(constraint=each) for each in SOFT)))
TEXTS = st.sampled_from(["web", "y", "1e3", "é", "a: b", "# no", "x", "~", "0o7", "- a", "🐙"])
LABELS = ("web", "y", "1e3", "null", "0o7", "true", "a.b-c", "2026-01-01", "x")
VALUES = st.sampled_from(LABELS)
COMMENTS = st.sampled_from(["", "", "", "  # note", " # {a: [", "  # 'é"])


def shuffled(draw, value):
    return {key: value[key] for key in draw(st.permutations([*value]))}


@st.composite
def workloads(draw):
    labels = {"app": draw(VALUES), draw(VALUES): draw(VALUES)}
    spec = {"containers": [{"name": "c", "args": draw(st.lists(TEXTS, max_size=2))}], "nodeSelector": {"a": "b"}}
    own = draw(st.sampled_from(["absent", "absent", "null", "empty"]))
    if own != "absent":
        spec["topologySpreadConstraints"] = None if own == "null" else []
    template = shuffled(draw, {"metadata": {"labels": labels}, "spec": shuffled(draw, spec)})
    body = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "web", "namespace": draw(st.sampled_from(["shop", "y"])), "annotations": {"n": draw(TEXTS)}}
    kind = draw(st.sampled_from(["Deployment", "StatefulSet"]))
    return shuffled(draw, {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": shuffled(draw, body)})


def quoted(draw, value):
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    styles = [json.dumps(value, ensure_ascii=False), "'" + value.replace("'", "''") + "'"]
    if value in {"web", "a.b-c", "x", "Deployment", "StatefulSet", "apps/v1", "shop", "c", "b"}:
        styles.append(value)
    return draw(st.sampled_from(styles))


def lines(draw, value, style, depth=0):
    """Block style with comments and blank lines; small mappings may be in flow style."""
    step, dash = style
    for key, item in value.items():
        name = json.dumps(key) if key in LABELS else key  # a plain y is a boolean to kubectl
        note = draw(COMMENTS)
        if draw(st.integers(0, 6)) == 0:
            yield draw(st.sampled_from(["", "# a line", " " * (depth + 1) + "# another"]))
        if isinstance(item, dict) and (key in {"spec", "template"} or draw(st.booleans())):
            yield f"{' ' * depth}{name}:{note}"
            yield from lines(draw, item, style, depth + step)
        elif isinstance(item, list) and item and draw(st.booleans()):
            yield f"{' ' * depth}{name}:{note}"
            for each in item:
                yield f"{' ' * (depth + dash)}- {json.dumps(each, ensure_ascii=False)}{draw(COMMENTS)}"
        elif isinstance(item, dict | list):
            yield f"{' ' * depth}{name}: {json.dumps(item, ensure_ascii=False)}{note}"
        elif item is None:
            yield f"{' ' * depth}{name}:{draw(st.sampled_from(['', ' null', ' ~']))}{note}"
        else:
            yield f"{' ' * depth}{name}: {quoted(draw, item)}{note}"


@st.composite
def yaml_files(draw):
    """A file of one to three documents, or of one List, and the objects in it."""
    objects = draw(st.lists(workloads(), min_size=1, max_size=3))
    written = []
    for each in objects:
        style = (draw(st.sampled_from([2, 4])), draw(st.sampled_from([0, 2])))
        written.append([*lines(draw, each, style)])
    if draw(st.booleans()):
        text = "\n---\n".join("\n".join(each) for each in written)
    else:
        items = ["- " + "\n  ".join(each).lstrip() for each in written]
        text = "apiVersion: v1\nkind: List\nitems:\n" + "\n".join(items)
    return objects, text


@st.composite
def styled(draw):
    objects, text = draw(yaml_files())
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return objects, (draw(st.sampled_from(["", "\ufeff"])) + text).encode()


@st.composite
def json_files(draw):
    objects = draw(st.lists(workloads(), min_size=1, max_size=3))
    indent = draw(st.sampled_from([None, 1, 2, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")])) if indent is None else None
    ascii_only = draw(st.booleans())

    def text(value):
        return json.dumps(value, indent=indent, separators=separators, ensure_ascii=ascii_only)

    if draw(st.booleans()):
        return objects, "\n".join(map(text, objects)).encode()
    return objects, text({"apiVersion": "v1", "kind": "List", "items": objects}).encode()


def amended(data):
    frame = Frame(policy=POLICY, today="2026-11-21")
    return amend([File("f", data)], frame, ClusterIndex())


def opened(values):
    return [item for value in values for item in (value["items"] if value["kind"] == "List" else [value])]


def check(objects, data, load):
    amendment = amended(data)
    assert (amendment.refused, amendment.faults) == ((), ())
    [file] = amendment.files
    assert len(file.additions) == len(objects)
    # Another reader than ours sees the same objects with the constraints in them.
    after = opened(load(file.after))
    for addition, now, before in zip(file.additions, after, objects, strict=True):
        assert now["spec"]["template"]["spec"].pop("topologySpreadConstraints") == list(addition.constraints)
        before["spec"]["template"]["spec"].pop("topologySpreadConstraints", None)
        assert now == before
    rest = iter(file.after)
    kept = data if b"topologySpreadConstraints" not in data else b""
    assert all(byte in rest for byte in kept)
    again = amended(file.after)
    assert (again.files, again.refused) == ((), ())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(styled())
def test_yaml(case):
    check(*case, lambda data: [*yaml.safe_load_all(data.decode().removeprefix("\ufeff"))])


@settings(max_examples=30, deadline=None)
@given(json_files())
def test_json(case):
    def load(data):
        text, found, at = data.decode(), [], 0
        while at < len(text):
            value, at = json.JSONDecoder().raw_decode(text, at)
            found.append(value)
            at += len(text[at:]) - len(text[at:].lstrip())
        return found

    check(*case, load)


PIECES = "&a ¦*a¦!!map ¦  ¦\t¦? ¦: ¦\n¦\n  ¦\r¦# c\n¦---\n¦- ¦|\n¦[¦]¦{¦{{¦<<: *a\n¦null¦\"¦'¦\u2028¦\x85¦\0¦items:\n"
PIECES += "¦topologySpreadConstraints: ¦apiVersion: v1\n"


@st.composite
def broken(draw):
    """A good file into which something fell."""
    _, data = draw(st.one_of(styled(), json_files()))
    text = data.decode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        text = (
            text[:start]
            + draw(st.sampled_from(PIECES.split("¦")))
            + text[start + draw(st.sampled_from([0, 0, 1, 5])) :]
        )
    return text.encode()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(broken())
def test_whatever_is_in_a_file_what_is_added_stays_added(data):
    for file in amended(data).files:
        assert amended(file.after).files == ()
