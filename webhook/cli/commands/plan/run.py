"""The plan of a group beside what its caps as maxSkew would come to."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from webhook.cli.commands.plan.targets import Asked
from webhook.core.groups.derive import Derived
from webhook.core.groups.fields import has_fields, naive
from webhook.core.groups.group import Fields, Group
from webhook.core.groups.outlook import EFFORT, Outlook, outlook
from webhook.core.groups.plan import Plan, batches
from webhook.core.groups.status.stored import anew, kept
from webhook.core.placement.simulation import Effort, Step
from webhook.core.policy.policy import Policy

_FEW = 4  # shards whose orders can all be followed


class Answer(Struct, frozen=True, kw_only=True):
    """What is said of a group.

    Shape: ``naive`` are the fields of its first shard before; ``own`` says that its template has them. ``seen`` is what
    they come to, None where the group has no enforced cap. ``stands`` says that the derived fields are those stored.
    """

    asked: Asked
    derived: Derived
    stands: bool
    naive: Fields
    own: bool
    seen: Outlook | None

    @property
    def group(self) -> Group:
        """The group."""
        return self.asked.known.group

    @property
    def fits(self) -> bool:
        """Whether the derived fields place all pods in every order."""
        return self.derived.fits

    @property
    def broken(self) -> Mapping[str, int]:
        """By topology key: how full a domain was seen to get with the fields before, where that is above the cap."""
        worst = self.seen.worst if self.seen is not None else {}
        return {key: each.pods for key, each in worst.items() if each.pods > (self.group.most(key) or 0)}

    def restarts(self, plan: Plan) -> int:
        """How many workloads that there are get other fields by the derived plan than their templates have."""
        pins = plan.loads.of_shards if plan.loads is not None else ((),) * len(plan.shards)
        shards = {each.name: each for each in self.asked.known.shards}
        there = [(each.name, zones) for each, zones in zip(plan.shards, pins, strict=True) if each.exists]
        return sum(not has_fields(self.group, shards[name], plan.constraints, zones) for name, zones in there)

    def named(self, steps: Sequence[Step]) -> list[tuple[str, str]]:
        """The pods of these steps, each with its node."""
        of, made, shards = self.group, Counter[int](), self.asked.known.shards
        found = []
        for step in steps:
            number = made[step.batch]
            made[step.batch] += 1
            shard = shards[step.batch + number // of.pods_per_shard]
            found.append((f"{shard.name}-{number % of.pods_per_shard}", step.node))
        return found


def answer(asked: Asked, policy: Policy) -> Answer:
    """Derive the plan, and play the fields before."""
    group, shards = asked.known.group, asked.known.shards[: asked.known.group.shards]
    known = asked.known
    stands = kept(known, asked.before, policy, searches=True) if asked.before.zones else None
    derived = stands if stands is not None and stands.fits else anew(known, asked.freed, policy, searches=True)
    before = {each.name: naive(group, each) for each in shards}
    own = shards[0].pod.pod_spec.constraints
    keys = dict.fromkeys(each.topology_key for each in group.caps if each.enforced)
    effort: Effort = EFFORT if len(shards) <= _FEW or not group.never_share else replace(EFFORT, states=1)
    first = before[shards[0].name]
    return Answer(
        asked=asked,
        derived=derived,
        stands=derived is stands,
        naive=first,
        own=bool(own) and first.constraints == own,
        seen=outlook(batches(group, shards, before, derived.setting), known.index, keys, effort) if keys else None,
    )
