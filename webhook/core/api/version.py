"""The Kubernetes version whose behaviour is asked for.

Behaviour that changed between versions is decided by asking a gate of `gates` about this one value. Supported are 1.31
to 1.37, and what is known of 1.38.
"""

import re
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3})(?!\d))?(?:[.+-].*)?")
_NEWEST_PATCH = 999  # more than any release will have


class KubernetesVersion(NamedTuple):
    """A release; compares as a tuple of numbers. Without a patch level, the newest of its minor release is meant."""

    major: int
    minor: int
    patch: int = _NEWEST_PATCH

    def __str__(self) -> str:
        """The minor release as users write it: ``1.37``."""
        return f"{self.major}.{self.minor}"


# The releases whose own code was asked, and the one that is announced: docs/exactness.md.
OLDEST = KubernetesVersion(1, 31, 0)
NEWEST = KubernetesVersion(1, 38)
RECORDED = KubernetesVersion(1, 37)  # where no release is named; most of the vectors in conformance/ are of this one


def parse_version(text: str) -> KubernetesVersion:
    """Read ``1.37``, ``v1.37.1`` or ``v1.37.1+k3s1``.

    Errors: ValueError for any other text, and for a release that is not supported.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no Kubernetes version; write it as 1.37")
    version = KubernetesVersion(int(match[1]), int(match[2]), int(match[3] or _NEWEST_PATCH))
    if not OLDEST <= version <= NEWEST:
        raise ValueError(f"Kubernetes {version} is not supported; {OLDEST} to {NEWEST} are")
    return version
