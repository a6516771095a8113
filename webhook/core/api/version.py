"""The Kubernetes version whose behaviour is asked for.

Behaviour that changed between versions is decided by comparing this one value with a gate of `gates`. Supported are
1.29 to 1.37, and what is known of 1.38.
"""

import re
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d{1,2})\.(\d{1,3})(?:[.+-].*)?")


class KubernetesVersion(NamedTuple):
    """A minor release; compares as a tuple of numbers."""

    major: int
    minor: int

    def __str__(self) -> str:
        """As users write it: ``1.37``."""
        return f"{self.major}.{self.minor}"


# The releases whose sources were read: docs/exactness.md.
OLDEST = KubernetesVersion(1, 29)
NEWEST = KubernetesVersion(1, 38)
RECORDED = KubernetesVersion(1, 37)  # the release whose verdicts are recorded in conformance/


def parse_version(text: str) -> KubernetesVersion:
    """Read ``1.37``, ``v1.37.1`` or ``v1.37.1+k3s1``.

    Errors: ValueError for any other text, and for a release that is not supported.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no Kubernetes version; write it as 1.37")
    version = KubernetesVersion(int(match[1]), int(match[2]))
    if not OLDEST <= version <= NEWEST:
        raise ValueError(f"Kubernetes {version} is not supported; {OLDEST} to {NEWEST} are")
    return version
