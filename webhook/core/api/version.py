"""Supported Kubernetes releases, and the parser of version texts.

Each review and each scan assumes one release. The gates in `gates` select the behaviour of this release. Messages list
the supported releases with ``SUPPORTED``.
"""

import re
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,3})(?!\d))?(?:[.+-].*)?")
_SHOWN = 40  # characters of a wrong text in its error
_NEWEST_PATCH = 999  # above every patch number


class KubernetesVersion(NamedTuple):
    """A release. Without a patch level it means the newest patch."""

    major: int
    minor: int
    patch: int = _NEWEST_PATCH

    def __str__(self) -> str:
        """The minor release: ``1.37``."""
        return f"{self.major}.{self.minor}"


# Conformance tests compare each supported release with its own code: docs/releases.md.
OLDEST = KubernetesVersion(1, 31, 0)
# the newest supported release, the default, and the source of most cases in conformance/
RECORDED = KubernetesVersion(1, 37)
# Accepted before its release, with the changes merged upstream. Its code does not exist for comparison yet.
ANNOUNCED = KubernetesVersion(1, 38)
SUPPORTED = f"{OLDEST} to {RECORDED}"


def parse_version(text: str) -> KubernetesVersion:
    """Read ``1.37``, ``v1.37.1`` or ``v1.37.1+k3s1``.

        >>> str(parse_version("v1.37.1+k3s1"))
        '1.37'

    Raises:
        ValueError: For other texts, and for releases outside `OLDEST` to `ANNOUNCED`.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:_SHOWN]!r} is not a Kubernetes version. Write it like 1.37")
    version = KubernetesVersion(int(match[1]), int(match[2]), int(match[3] or _NEWEST_PATCH))
    if not OLDEST <= version <= ANNOUNCED:
        raise ValueError(f"Kubernetes {version} is not supported. Use {SUPPORTED}, or {ANNOUNCED} as announced")
    return version
