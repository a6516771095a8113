"""The Kubernetes version whose behaviour is computed.

A gate of `gates` decides by this one value which release's behaviour applies. ``SUPPORTED`` names the releases in the
words that every message uses.
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


# Each supported release was compared with its own code: docs/releases.md.
OLDEST = KubernetesVersion(1, 31, 0)
RECORDED = KubernetesVersion(1, 37)  # the newest supported one, and the default; most vectors in conformance/ are of it
# Not released yet: accepted, and judged by the changes that upstream has merged. There is no code to compare with.
ANNOUNCED = KubernetesVersion(1, 38)
SUPPORTED = f"{OLDEST} to {RECORDED}"


def parse_version(text: str) -> KubernetesVersion:
    """Read ``1.37``, ``v1.37.1`` or ``v1.37.1+k3s1``.

    Errors: ValueError for any other text, and for a release outside `OLDEST` to `ANNOUNCED`.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no Kubernetes version; write it as 1.37")
    version = KubernetesVersion(int(match[1]), int(match[2]), int(match[3] or _NEWEST_PATCH))
    if not OLDEST <= version <= ANNOUNCED:
        raise ValueError(f"Kubernetes {version} is not supported; {SUPPORTED} are, and {ANNOUNCED} as announced")
    return version
