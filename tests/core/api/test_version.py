import re

import pytest

from webhook.core.api.version import KubernetesVersion, parse_version


@pytest.mark.parametrize("text", ["1.37", "v1.37", "v1.37.1", " v1.37.1+k3s1 ", "v1.37.2-gke.100"])
def test_ways_to_write_a_release(text):
    assert parse_version(text)[:2] == (1, 37)
    assert str(parse_version(text)) == "1.37"


def test_without_a_patch_level_the_newest_is_meant():
    assert parse_version("1.34") == KubernetesVersion(1, 34) > parse_version("v1.34.12+k3s1") > parse_version("1.34.0")
    assert parse_version("v1.34.2-gke.100") == KubernetesVersion(1, 34, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latest", "'latest' is not a Kubernetes version. Write it like 1.37"),
        ("x" * 99, f"'{'x' * 40}' is not a Kubernetes version. Write it like 1.37"),
        ("1.30.14", "Kubernetes 1.30 is not supported. Use 1.31 to 1.37, or 1.38 as announced"),
        ("1.39", "Kubernetes 1.39 is not supported. Use 1.31 to 1.37, or 1.38 as announced"),
    ],
)
def test_what_is_no_supported_release(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_version(text)
