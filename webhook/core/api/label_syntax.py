"""Check label keys and values, with kube-apiserver's messages about faults.

Source: k8s.io/apimachinery pkg/api/validate/content kube.go, dns.go, errors.go.
"""

import re
from functools import lru_cache

from webhook.core.api import gates
from webhook.core.api.version import RECORDED, KubernetesVersion

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
# Messages quote upstream's expressions above. These accept the same texts without backtracking.
_VALID_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_VALID_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
# Upstream's LabelValueMaxLength (also of the name in a key) and DNS1123SubdomainMaxLength.
MAX_LABEL_VALUE_BYTES = 63
_MAX_NAME = MAX_LABEL_VALUE_BYTES
_MAX_SUBDOMAIN = 253
# Caches hold only texts short enough to be valid, and only whether they are. Fault messages are many times longer than
# the text, and any user can send faulty labels.
_LONGEST = _MAX_SUBDOMAIN + 1 + _MAX_NAME
# More than the constraints of one cluster. Full of the longest texts, both caches take 5 MB (measured).
_CACHED = 8192

_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
)
_NAME_RULE = f"must {_CHARACTERS}'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
_VALUE_RULE = (
    f"a valid label must be an empty string or {_CHARACTERS}'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def key_faults(key: str, version: KubernetesVersion = RECORDED) -> tuple[str, ...]:
    """List kube-apiserver's messages about a label key, none for a valid key.

        >>> key_faults("example.com/")[0]
        'name part must be non-empty'

    Source: kube.go ``IsLabelKey``.
    """
    return () if len(key) <= _LONGEST and _right_key(key) else _key_faults(key, version)


@lru_cache(maxsize=_CACHED)
def _right_key(key: str) -> bool:
    return not _key_faults(key, RECORDED)


def _key_faults(key: str, version: KubernetesVersion) -> tuple[str, ...]:
    """List the messages for a key of any length. Source: kube.go ``IsLabelKey``."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        noun = "valid label key" if gates.LABEL_KEYS_IN_BYTES.holds(version) else "qualified name"
        return (f"a {noun} {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        if _bytes(prefix) > _MAX_SUBDOMAIN:
            faults.append(f"prefix part {_too_long(_MAX_SUBDOMAIN, version)}")
        if not _VALID_SUBDOMAIN.fullmatch(prefix):
            faults.append(f"prefix part {_SUBDOMAIN_RULE}")
    if not name:
        faults.append("name part must be non-empty")
    elif _bytes(name) > _MAX_NAME:
        faults.append(f"name part {_too_long(_MAX_NAME, version)}")
    if not _VALID_NAME.fullmatch(name):
        faults.append(f"name part {_NAME_RULE}")
    return tuple(faults)


def value_faults(value: str, version: KubernetesVersion = RECORDED) -> tuple[str, ...]:
    """List kube-apiserver's messages about a label value, none for a valid value. Source: kube.go ``IsLabelValue``."""
    return () if len(value) <= MAX_LABEL_VALUE_BYTES and _right_value(value) else _value_faults(value, version)


@lru_cache(maxsize=_CACHED)
def _right_value(value: str) -> bool:
    return not _value_faults(value, RECORDED)


def _value_faults(value: str, version: KubernetesVersion) -> tuple[str, ...]:
    """List kube-apiserver's messages about a label value. Empty for a valid value. Source: kube.go ``IsLabelValue``."""
    faults = []
    if _bytes(value) > MAX_LABEL_VALUE_BYTES:
        faults.append(_too_long(MAX_LABEL_VALUE_BYTES, version))
    if value and not _VALID_NAME.fullmatch(value):
        faults.append(_VALUE_RULE)
    return tuple(faults)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _too_long(limit: int, version: KubernetesVersion) -> str:
    """Source: errors.go ``MaxLenError``."""
    return f"must be no more than {limit} {'bytes' if gates.LABEL_KEYS_IN_BYTES.holds(version) else 'characters'}"
