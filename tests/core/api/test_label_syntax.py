import pytest

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.version import KubernetesVersion

NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SUBDOMAIN = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SLASHES = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"


@pytest.mark.parametrize(
    ("key", "faults"),
    [
        pytest.param("app", [], id="a plain name"),
        pytest.param("example.com/app", [], id="a prefix and a name"),
        pytest.param("A_b.c-9", [], id="all characters of a name"),
        pytest.param("a" * 63, [], id="63 bytes"),
        pytest.param("a" * 64, ["name part must be no more than 63 bytes"], id="64 bytes"),
        pytest.param("", ["name part must be non-empty", f"name part {NAME}"], id="empty"),
        pytest.param("bad key", [f"name part {NAME}"], id="a space"),
        pytest.param("app\n", [f"name part {NAME}"], id="a newline at the end"),
        pytest.param(
            "é" * 32, ["name part must be no more than 63 bytes", f"name part {NAME}"], id="bytes, not letters"
        ),
        pytest.param("-app", [f"name part {NAME}"], id="a dash first"),
        pytest.param("a/b/c", [f"a valid label key {NAME}{SLASHES}"], id="two slashes"),
        pytest.param("/zone", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param("Example.com/x", [SUBDOMAIN], id="capitals in the prefix"),
        pytest.param("a..b/x", [SUBDOMAIN], id="two dots in the prefix"),
        pytest.param("a" * 253 + "/x", [], id="a prefix of 253 bytes"),
        pytest.param("a" * 254 + "/x", ["prefix part must be no more than 253 bytes"], id="a prefix of 254 bytes"),
        pytest.param(
            "/",
            ["prefix part must be non-empty", "name part must be non-empty", f"name part {NAME}"],
            id="a slash alone",
        ),
    ],
)
def test_the_faults_of_a_label_key(key, faults):
    assert list(key_faults(key)) == faults


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("v1.2", [], id="a version"),
        pytest.param("v" * 64, ["must be no more than 63 bytes"], id="64 bytes"),
        pytest.param("v_", [VALUE], id="an underscore last"),
        pytest.param("a b", [VALUE], id="a space"),
        pytest.param("v" * 1000, ["must be no more than 63 bytes"], id="1,000 bytes"),
    ],
)
def test_the_faults_of_a_label_value(value, faults):
    assert list(value_faults(value)) == faults


@pytest.mark.parametrize(
    ("minor", "noun", "unit"),
    [
        pytest.param(34, "qualified name", "characters", id="1.34"),
        pytest.param(35, "valid label key", "bytes", id="1.35"),
    ],
)
def test_the_words_changed_in_1_35(minor, noun, unit):
    version = KubernetesVersion(1, minor)
    assert key_faults("a/b/c", version) == (f"a {noun} {NAME}{SLASHES}",)
    assert key_faults("a" * 64, version) == (f"name part must be no more than 63 {unit}",)
    assert value_faults("a" * 64, version) == (f"must be no more than 63 {unit}",)
