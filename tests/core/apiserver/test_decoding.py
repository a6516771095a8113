"""What kube-apiserver's decoder makes of JSON that a stricter one refuses, and how it words what it refuses."""

import json

import msgspec
import pytest

from webhook.core.api.types import PodTemplate, TypeMeta
from webhook.core.api.version import RECORDED, parse_version
from webhook.core.apiserver.decoding import DecodeError, as_go_reads, decode, decode_strictly, type_of
from webhook.core.apiserver.go_json import go_type, is_plain

POD = msgspec.json.Decoder(PodTemplate)
FIELD = "Go struct field"
SPREAD = "spec.topologySpreadConstraints"


def raw(spec, metadata='{"name":"p"}'):
    return f'{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},"spec":{spec}}}'.encode()


def spread(constraint):
    return raw(f'{{"topologySpreadConstraints":[{{}},{constraint}]}}')


def as_json(value):
    return json.loads(msgspec.json.encode(value))


def pod(body):
    return decode(body, POD, "v1.Pod")


def refusal(body, go_type="v1.Pod"):
    with pytest.raises(DecodeError) as caught:
        decode_strictly(body, POD, go_type)
    return caught.value


def in_constraint(value, field, type_):
    return f"cannot unmarshal {value} into {FIELD} TopologySpreadConstraint.{SPREAD}.{field} of type {type_}"


@pytest.mark.parametrize(
    ("constraint", "text", "path"),
    [
        pytest.param(
            '{"maxSkew":"1"}', in_constraint("string", "maxSkew", "int32"), ".maxSkew", id="text for a number"
        ),
        pytest.param('{"maxSkew":1.5}', in_constraint("number 1.5", "maxSkew", "int32"), ".maxSkew", id="a fraction"),
        pytest.param('{"maxSkew":1.0}', in_constraint("number 1.0", "maxSkew", "int32"), ".maxSkew", id="1.0"),
        pytest.param('{"maxSkew":1e3}', in_constraint("number 1e3", "maxSkew", "int32"), ".maxSkew", id="1e3"),
        pytest.param(
            '{"maxSkew":2147483648}', in_constraint("number 2147483648", "maxSkew", "int32"), ".maxSkew", id="32 bits"
        ),
        pytest.param('{"maxSkew":true}', in_constraint("bool", "maxSkew", "int32"), ".maxSkew", id="a bool"),
        pytest.param(
            '{"topologyKey":5}', in_constraint("number", "topologyKey", "string"), ".topologyKey", id="a key 5"
        ),
        pytest.param(
            '{"topologyKey":[]}', in_constraint("array", "topologyKey", "string"), ".topologyKey", id="a list"
        ),
        pytest.param(
            '{"whenUnsatisfiable":1}',
            in_constraint("number", "whenUnsatisfiable", "v1.UnsatisfiableConstraintAction"),
            ".whenUnsatisfiable",
            id="a named type",
        ),
        pytest.param(
            '{"matchLabelKeys":"rev"}',
            in_constraint("string", "matchLabelKeys", "[]string"),
            ".matchLabelKeys",
            id="no list",
        ),
        pytest.param(
            '{"matchLabelKeys":[{}]}',
            in_constraint("object", "matchLabelKeys", "string"),
            ".matchLabelKeys[0]",
            id="entry",
        ),
        pytest.param(
            '{"labelSelector":"app=web"}',
            in_constraint("string", "labelSelector", "v1.LabelSelector"),
            ".labelSelector",
            id="a selector as text",
        ),
        pytest.param(
            '{"labelSelector":{"matchLabels":{"app":1}}}',
            f"cannot unmarshal number into {FIELD} LabelSelector.{SPREAD}.labelSelector.matchLabels of type string",
            ".labelSelector.matchLabels.app",
            id="a number as a label",
        ),
        pytest.param(
            '{"labelSelector":{"matchLabels":[]}}',
            f"cannot unmarshal array into {FIELD} LabelSelector.{SPREAD}.labelSelector.matchLabels "
            "of type map[string]string",
            ".labelSelector.matchLabels",
            id="a list for a map",
        ),
        pytest.param(
            '"zone"',
            f"cannot unmarshal string into {FIELD} PodSpec.{SPREAD} of type v1.TopologySpreadConstraint",
            "",
            id="an entry that is text",
        ),
        pytest.param(
            '{"topologyKey":1,"maxSkew":"x"}',
            in_constraint("number", "topologyKey", "string"),
            ".topologyKey",
            id="the first",
        ),
    ],
)
def test_a_wrong_type_is_worded_as_kube_apiserver_does(constraint, text, path):
    error = refusal(spread(constraint))
    assert error.text == f"json: {text}"
    assert error.path == f"{SPREAD}[1]{path}"
    assert error.message == f'Pod in version "v1" cannot be handled as a Pod: json: {text}'
    assert str(error) == error.message


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(b"5", "json: cannot unmarshal number into Go value of type v1.Pod", id="no object"),
        pytest.param(
            raw("[]"),
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
            id="spec is a list",
        ),
        pytest.param(
            raw("{}", '{"labels":{"a":true}}'),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            id="a label is a bool",
        ),
        pytest.param(
            raw('{"containers":[{"resources":{"limits":{"cpu":"much"}}}],"topologySpreadConstraints":5}'),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a quantity ends the decoding",
        ),
        pytest.param(
            raw('{"topologySpreadConstraints":5,"containers":[{"resources":{"limits":{"cpu":"1X"}}}]}'),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="also after a wrong type",
        ),
        pytest.param(
            raw('{"overhead":{"cpu":"1\\n"}}'),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="an escape in a quantity",
        ),
        pytest.param(
            raw("{}", '{"deletionTimestamp":"2026-01-01T00:00:00Z","name":5}'),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
            id="a good time",
        ),
        pytest.param(
            raw("{}", '{"creationTimestamp":"yesterday","name":5}'),
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
            id="a time ends the decoding",
        ),
        pytest.param(
            raw("{}", '{"name":"p","creationTimestamp":5}'),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            id="a time that is a number",
        ),
        pytest.param(
            raw('{"volumes":[{"emptyDir":{},"hostPath":[]}],"topologySpreadConstraints":5}'),
            "json: cannot unmarshal array into Go struct field Volume.spec.volumes.VolumeSource.hostPath "
            "of type v1.HostPathVolumeSource",
            id="an embedded struct is named",
        ),
        pytest.param(
            b'{"spec":', "the object is not valid JSON: Expecting value: line 1 column 9 (char 8)", id="cut off"
        ),
        pytest.param(raw("NaN"), "the object is not valid JSON: NaN is not JSON", id="NaN, which Python would take"),
        pytest.param(b"[" * 4000, "the object is not valid JSON: exceeded max depth", id="nested too deeply"),
        pytest.param(
            b'{"spec":[' + b"1," * 4096 + b"1]}",
            "a value has the wrong type. Beyond 4,096 values, evenspread does not search for its field",
            id="too many values",
        ),
    ],
)
def test_other_refusals(body, text):
    assert refusal(body).text == text


def test_an_integer_or_text_is_worded_as_an_integer():
    body = b'{"spec":{"strategy":{"rollingUpdate":{"maxSurge":%s}}}}'

    def strictly(value):
        return decode_strictly(body % value, msgspec.json.Decoder(dict), "v1.Deployment")[0]

    assert strictly(b'"25%"')["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"
    assert strictly(b"1")["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 1
    with pytest.raises(DecodeError) as caught:
        strictly(b"1.5")
    assert caught.value.text == (
        "json: cannot unmarshal number 1.5 into Go struct field "
        "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32"
    )


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        pytest.param("null", {}, id="a null entry is an empty one"),
        pytest.param('{"maxSkew":null,"topologyKey":null}', {}, id="null scalars are absent"),
        pytest.param('{"MaxSkew":3,"maxskew":3}', {}, id="names are case-sensitive"),
        pytest.param('{"maxSkew":1,"maxSkew":2}', {"maxSkew": 2}, id="the last of two"),
        pytest.param('{"maxSkew":1,"maxSkew":null}', {"maxSkew": 1}, id="null changes no number"),
        pytest.param('{"matchLabelKeys":[null]}', {"matchLabelKeys": [""]}, id="a null key is an empty one"),
        pytest.param('{"matchLabelKeys":null}', {}, id="a null list is absent"),
        pytest.param(
            '{"labelSelector":{"matchLabels":{"a":null}}}',
            {"labelSelector": {"matchLabels": {"a": ""}}},
            id="a null value is an empty one",
        ),
        pytest.param('{"labelSelector":null}', {"labelSelector": None}, id="a null selector"),
        pytest.param(
            '{"labelSelector":{"matchExpressions":[null]}}',
            {"labelSelector": {"matchExpressions": [{}]}},
            id="null there",
        ),
        pytest.param(
            '{"topologyKey":"\\ud800x","maxSkew":1,"labelSelector":{"matchLabels":{"\\ud800":"b"}}}',
            {"topologyKey": "\ufffdx", "maxSkew": 1, "labelSelector": {"matchLabels": {"\ufffd": "b"}}},
            id="half of a surrogate pair",
        ),
        pytest.param('{"topologyKey":"\\ud83d\\ude00"}', {"topologyKey": "\U0001f600"}, id="a surrogate pair"),
    ],
)
def test_what_decodes_nevertheless(constraint, expected):
    decoded, _ = decode_strictly(spread(constraint), POD, "v1.Pod")
    assert as_json(decoded.pod_spec.constraints[1]) == expected


def test_null_is_the_zero_of_every_type():
    spec = """{"securityContext":{"supplementalGroups":[null]},"terminationGracePeriodSeconds":null,
      "containers":[{"stdin":null,"livenessProbe":{"httpGet":{"port":null}},"resources":{"limits":{"cpu":null}}}]}"""
    value, _ = as_go_reads(raw(spec, '{"creationTimestamp":null,"managedFields":[{"fieldsV1":{"f:x":{}}}]}'), "v1.Pod")
    assert value == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"creationTimestamp": None, "managedFields": [{}]},
        "spec": {
            "securityContext": {"supplementalGroups": [0]},
            "containers": [{"livenessProbe": {"httpGet": {"port": 0}}, "resources": {"limits": {"cpu": "0"}}}],
            "terminationGracePeriodSeconds": None,
        },
    }


def test_bytes_that_are_no_utf8_are_replaced_one_by_one():
    body = raw('{"topologySpreadConstraints":[{"topologyKey":"a??"}]}').replace(b"??", b"\xff\xc3")
    assert pod(body).pod_spec.constraints[0].topology_key == "a\ufffd\ufffd"


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        pytest.param(
            '{"matchLabels":{"a":"1"}}', '{"matchLabels":{"b":"2"}}', {"matchLabels": {"a": "1", "b": "2"}}, id="maps"
        ),
        pytest.param(
            '{"matchExpressions":[{"key":"a"},{"key":"b"}]}',
            '{"matchExpressions":[{"operator":"Exists"}]}',
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            id="entries of lists",
        ),
        pytest.param(
            '{"matchExpressions":[{"key":"a"},{"key":"b"}]}',
            '{"matchExpressions":[]}',
            {"matchExpressions": []},
            id="an empty list starts anew",
        ),
        pytest.param('{"matchLabels":{"a":"1"}}', "null", None, id="null forgets"),
    ],
)
def test_a_field_that_stands_twice_is_decoded_into_the_same_value(first, second, merged):
    body = spread(f'{{"labelSelector":{first},"labelSelector":{second}}}')
    decoded, warnings = decode_strictly(body, POD, "v1.Pod")
    assert as_json(decoded.pod_spec.constraints[1])["labelSelector"] == merged
    assert warnings == (f'duplicate field "{SPREAD}[1].labelSelector"',)


def test_entries_beyond_the_end_of_a_list_come_back():
    twice = '"matchLabelKeys":["a","b"],"matchLabelKeys":["c"],"matchLabelKeys":[null,null]'
    decoded, _ = decode_strictly(spread(f"{{{twice}}}"), POD, "v1.Pod")
    assert decoded.pod_spec.constraints[1].match_label_keys == ("c", "b")


@pytest.mark.parametrize(
    ("body", "warnings"),
    [
        pytest.param(raw("{}"), [], id="nothing unknown"),
        pytest.param(spread('{"maxskew":1}'), [f'unknown field "{SPREAD}[1].maxskew"'], id="a name in another case"),
        pytest.param(spread('{"a\\"b":{"c":1}}'), [f'unknown field "{SPREAD}[1].a\\"b"'], id="a name with a quote"),
        pytest.param(b'{"x":1,"x":2}', ['unknown field "x"'], id="the same one twice is said once"),
        pytest.param(
            raw('{"containers":[{"img":"x"}],"hostNetwork":true,"hostNetwork":false}'),
            ['unknown field "spec.containers[0].img"', 'duplicate field "spec.hostNetwork"'],
            id="anywhere in the object, in its order",
        ),
        pytest.param(
            raw("{}", '{"labels":{"a":"1","a":"2"}}'), ['duplicate field "metadata.labels.a"'], id="a label twice"
        ),
        pytest.param(
            raw("{" + ",".join(f'"x{i}":1' for i in range(150)) + "}"),
            [f'unknown field "spec.x{i}"' for i in range(100)],
            id="a hundred at most",
        ),
    ],
)
def test_strict_warnings(body, warnings):
    assert list(decode_strictly(body, POD, "v1.Pod")[1]) == warnings


def test_a_template_inside_another_object_keeps_the_path_to_it():
    body, path = b'{"spec":{"topologySpreadConstraints":{}}}', ("spec", "tasks", "[2]", "template")
    with pytest.raises(DecodeError) as caught:
        decode(body, POD, "v1.PodTemplateSpec", path)
    assert caught.value.path == "spec.tasks[2].template.spec.topologySpreadConstraints"
    assert caught.value.message == (
        "json: cannot unmarshal object into Go struct field PodSpec.spec.tasks.template.spec.topologySpreadConstraints "
        "of type []v1.TopologySpreadConstraint"
    )
    body = b'{"spec":{"topologySpreadConstraints":[null]}}'
    assert decode(body, POD, "v1.PodTemplateSpec").pod_spec.constraints


def test_the_fast_way_refuses_in_the_same_words():
    body = spread('{"maxSkew":"1"}')
    with pytest.raises(DecodeError) as caught:
        decode(body, POD, "v1.Pod")
    assert caught.value.message == refusal(body).message


def test_the_fast_way_takes_the_last_of_two_fields():
    assert pod(spread('{"maxSkew":1,"maxSkew":2}')).pod_spec.constraints[1].max_skew == 2


def test_well_formed_objects_decode_alike_on_both_ways():
    body = json.dumps(
        {
            "metadata": {"name": "p", "labels": {"app": "web"}, "creationTimestamp": None},
            "spec": {
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "labelSelector": {}}],
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            },
        }
    ).encode()
    assert decode_strictly(body, POD, "v1.Pod") == (pod(body), ())


def test_quantities_may_be_numbers_or_null():
    body = raw('{"overhead":{"cpu":0.5,"memory":null},"topologySpreadConstraints":[null]}')
    assert pod(body).pod_spec.overhead == {"cpu": "0.5", "memory": "0"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'{"apiVersion":"v1","kind":"Pod"}', TypeMeta(api_version="v1", kind="Pod"), id="both"),
        pytest.param(b'{"kind":null,"spec":[', None, id="cut off"),
        pytest.param(b'{"kind":"\\ud800"}', TypeMeta(kind="\ufffd"), id="half of a surrogate pair"),
    ],
)
def test_the_type_of_an_object(body, expected):
    if expected is None:
        with pytest.raises(DecodeError, match="the object is not valid JSON"):
            type_of(body)
    else:
        assert type_of(body) == expected


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            b'{"kind":5,"apiVersion":6,"x":7}',
            "cannot unmarshal number into Go struct field .kind of type string",
            id="a number",
        ),
        pytest.param(
            b"[]",
            "cannot unmarshal array into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }',
            id="a list",
        ),
    ],
)
def test_an_object_whose_type_cannot_be_read(body, text):
    with pytest.raises(DecodeError) as caught:
        type_of(body)
    assert caught.value.message == f"couldn't get version/kind; json parse error: json: {text}"


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        pytest.param({"nodeName": "n", "hostNetwork": True, "priority": 5}, True, id="scalars"),
        pytest.param({"nodeName": None, "containers": [None], "nodeSelector": {"a": None}}, True, id="nulls"),
        pytest.param({"nodename": "n"}, False, id="an unknown field"),
        pytest.param({"nodeName": 5}, False, id="a number for text"),
        pytest.param({"hostNetwork": "true"}, False, id="text for a bool"),
        pytest.param({"priority": True}, False, id="a bool for a number"),
        pytest.param({"priority": 2**31}, False, id="more than 32 bits"),
        pytest.param({"priority": 1.0}, False, id="a fraction"),
        pytest.param({"containers": {}}, False, id="an object for a list"),
        pytest.param({"containers": ["c"]}, False, id="text for an object"),
        pytest.param({"nodeSelector": {"a": 1}}, False, id="a number in a map"),
        pytest.param({"nodeSelector": []}, False, id="a list for a map"),
        pytest.param({"overhead": {"cpu": "500m", "memory": "1Gi"}}, True, id="simple quantities"),
        pytest.param({"overhead": {"cpu": "1.5"}}, False, id="another quantity takes the long way"),
        pytest.param({"overhead": {"cpu": 1}}, False, id="so does a number"),
        pytest.param(
            {"containers": [{"livenessProbe": {"httpGet": {"port": "web"}}, "lifecycle": {"preStop": {}}}]},
            True,
            id="an integer or text",
        ),
        pytest.param({"containers": [{"livenessProbe": {"httpGet": {"port": 2**31}}}]}, False, id="a port too large"),
    ],
)
def test_a_plain_value_needs_none_of_gos_rules(spec, plain):
    assert is_plain({"kind": "Pod", "spec": spec}, go_type("v1.Pod", RECORDED)) is plain


@pytest.mark.parametrize(
    ("meta", "plain"),
    [
        pytest.param(
            {"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"fieldsV1": {"f:x": 1}}]}, True, id="good"
        ),
        pytest.param({"creationTimestamp": "yesterday"}, False, id="no time"),
        pytest.param({"creationTimestamp": 5}, False, id="a number for a time"),
    ],
)
def test_plain_metadata(meta, plain):
    assert is_plain({"metadata": meta}, go_type("v1.Pod", RECORDED)) is plain


@pytest.mark.parametrize(
    ("release", "field"), [("1.34", "volumes.emptyDir"), ("1.35", "volumes.VolumeSource.emptyDir")]
)
def test_embedded_structs_were_not_named(release, field):
    text = b'{"spec": {"volumes": [{"name": "v", "emptyDir": 5}]}}'
    with pytest.raises(DecodeError, match=f"Go struct field Volume.spec.{field} of type v1.EmptyDirVolumeSource"):
        as_go_reads(text, "v1.Pod", version=parse_version(release))


@pytest.mark.parametrize(("release", "unknown"), [("1.31", True), ("1.32", False), ("1.38", False)])
def test_fields_that_a_release_does_not_know(release, unknown):
    warnings = as_go_reads(b'{"spec": {"resources": {}}}', "v1.Pod", version=parse_version(release))[1]
    assert warnings == (('unknown field "spec.resources"',) if unknown else ())
