"""The limits of kube-apiserver for the size of an admission policy.

Nothing else that it refuses grows with the policy file. The limits also bound the cost of each evaluation, as
`make policies` shows.

Source: cel-go parser ExpressionSizeCodePointLimit; kubectl pkg/util apply.go GetModifiedConfiguration.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from webhook.core.admission_policies.policy_objects import STATIC_SUFFIX
from webhook.core.decoders import converted
from webhook.core.defaulting.record import MAX_ANNOTATION_BYTES

_MOST_CHARS = 100_000
# `kubectl apply` adds empty annotations and a line break to the object, and writes it into an annotation.
_MOST_BYTES = MAX_ANNOTATION_BYTES - len('kubectl.kubernetes.io/last-applied-configuration"annotations":{},\n')
_FIELDS = {
    "not-made-by-a-controller": "controllers",
    "namespaceAt": "namespaces",
    "meant": "domains",
    "has-a-configured-scheduler": "schedulerNames",
}
"""The longest expressions, and the fields of the policy file that they grow with."""


class _Named(Struct, frozen=True):
    name: str
    expression: str = ""


class _Spec(Struct, frozen=True, rename="camel"):
    match_conditions: tuple[_Named, ...] = ()
    variables: tuple[_Named, ...] = ()


class _Object(Struct, frozen=True):
    metadata: _Named
    spec: _Spec


def why_refused(made: Mapping[str, object]) -> str:
    """Return why kube-apiserver would refuse a compiled object, with the field of the policy file, or ""."""
    read = converted(made, _Object)
    name, text = read.metadata.name, msgspec.json.encode(made)
    expressions = (*read.spec.match_conditions, *read.spec.variables)
    longest = max(expressions, key=lambda each: len(each.expression), default=read.metadata)
    chars, size = len(longest.expression), len(text) + 5 * len(re.findall(b"[<>&]", text))  # kubectl escapes them.
    if chars > _MOST_CHARS:
        what = f"the expression {longest.name} of {name}"
        why = f"{what} has {chars:,} characters, and kube-apiserver accepts {_MOST_CHARS:,}"
    elif size > _MOST_BYTES and not name.endswith(STATIC_SUFFIX):
        why = f"{name} has {size:,} bytes, and kubectl apply writes at most {_MOST_BYTES:,} into an annotation"
    else:
        return ""
    other = "exemptions" if longest.name.startswith("exempt_") else "defaults.overrides"
    return f"{_FIELDS.get(longest.name, other)} is too large: {why}"
