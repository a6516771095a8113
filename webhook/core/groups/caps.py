"""How many pods of a group one domain may hold, and what spread constraints make of that.

Pods that all have one hard constraint, and that it counts, come to stand in a domain in numbers up to

    floor((pods - maxSkew) / domains) + maxSkew

if the domains are empty at first and stay the same: the fullest has at most maxSkew more than each of the others. So
``maxSkew: 8`` does not keep 18 pods in three zones below 9; 4 does. With minDomains above the number of domains the
global minimum is 0, and maxSkew is the most pods that a domain takes.
"""

from fractions import Fraction
from math import ceil, floor

from msgspec import Struct

from webhook.core.api.types import LabelSelector

# More than any cluster has domains, so that a domain that is added does not end the cap.
MIN_DOMAINS_OF_A_CAP = 1_000_000
# More than any group has pods: a hard constraint with it keeps pods from nodes without the label, and from no other.
MAX_SKEW_OF_A_LABEL = 1_000_000


class Cap(Struct, frozen=True, kw_only=True):
    """The most pods of a group in one domain of a key.

    Attributes:
        amount: A number of pods, or a share of them all if ``of_pods``.
        strict: Whether the amount itself is too many.
        selector: The pods that count. None for all.
        enforced: False if the cap is observed only.
    """

    topology_key: str
    amount: Fraction
    of_pods: bool = False
    strict: bool = False
    selector: LabelSelector | None = None
    enforced: bool = True

    def most(self, pods: int) -> int:
        """The most pods of a group of so many that a domain may hold."""
        amount = self.amount * pods if self.of_pods else self.amount
        return ceil(amount) - 1 if self.strict else floor(amount)

    @property
    def text(self) -> str:
        """How its author wrote it: ``less than 1/2``, ``at most 5``."""
        return f"{'less than' if self.strict else 'at most'} {self.amount}"


def fullest(pods: int, domains: int, max_skew: int) -> int:
    """The most pods that one of so many domains can come to hold under maxSkew."""
    return pods if max_skew >= pods else (pods - max_skew) // domains + max_skew


def safe_max_skew(pods: int, domains: int, most: int) -> int | None:
    """The largest maxSkew under which no domain comes to hold more than ``most``; None if there is none."""
    if most >= pods:
        return pods
    if domains < 2:
        return None
    found = ceil(Fraction(domains * (most + 1) - pods, domains - 1)) - 1
    return found if found >= 1 else None
