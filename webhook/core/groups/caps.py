"""Caps: the most pods of a group in a domain, and the maxSkew to keep them.

If all pods have the same hard constraint and match its selector, the fullest domain can get

    floor((pods - maxSkew) / domains) + maxSkew

pods. This holds for a fixed set of domains, empty at the start. ``maxSkew: 8`` does not keep 18 pods in three zones
below 9, but ``maxSkew: 4`` does. With minDomains above the number of domains the global minimum is 0, and maxSkew
itself is the cap.
"""

from fractions import Fraction
from math import ceil, floor

from msgspec import Struct

from webhook.core.api.types import LabelSelector

# In domains. No cluster reaches it, so a new domain never ends the cap.
MIN_DOMAINS_OF_A_CAP = 1_000_000
# In pods. No group reaches it, so a hard constraint with it only rejects nodes without the label.
MAX_SKEW_OF_A_LABEL = 1_000_000


class Cap(Struct, frozen=True, kw_only=True):
    """The most pods of a group in a domain of a key.

    Attributes:
        topology_key: The key of the domains.
        amount: A number of pods, or a fraction of all pods with ``of_pods``.
        of_pods: Whether the amount is a fraction.
        strict: Whether a domain must have fewer pods than the amount.
        selector: Selects the counted pods. None for all.
        enforced: False for a cap that is only observed.
    """

    topology_key: str
    amount: Fraction
    of_pods: bool = False
    strict: bool = False
    selector: LabelSelector | None = None
    enforced: bool = True

    def most(self, pods: int) -> int:
        """The cap in pods of a domain, for a group of ``pods`` pods."""
        amount = self.amount * pods if self.of_pods else self.amount
        return ceil(amount) - 1 if self.strict else floor(amount)

    @property
    def text(self) -> str:
        """The cap in words: ``less than 1/2``, ``at most 5``."""
        return f"{'less than' if self.strict else 'at most'} {self.amount}"


def fullest(pods: int, domains: int, max_skew: int) -> int:
    """The most pods that a domain can get under maxSkew, over all orders."""
    return pods if max_skew >= pods else (pods - max_skew) // domains + max_skew


def safe_max_skew(pods: int, domains: int, most: int) -> int | None:
    """The largest maxSkew under which every domain gets at most ``most`` pods. None if no maxSkew is small enough."""
    if most >= pods:
        return pods
    if domains < 2:
        return None
    skew = ceil(Fraction(domains * (most + 1) - pods, domains - 1)) - 1
    return skew if skew >= 1 else None
