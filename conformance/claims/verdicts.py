"""What the referee says of the findings of a world, and of their fixes."""

import re
from functools import cached_property

import msgspec

from conformance.claims.controller import most_of, own_names, question, replicas_of, rollout, template_of
from conformance.claims.readings import FIT, HOLD, LOSS, READINGS, ROLLOUT, edited
from conformance.claims.silences import silence, wrongly_silent
from conformance.claims.together import RULE as DIFFER
from conformance.claims.together import unspoken
from conformance.claims.worlds import NAMESPACE, NOW, ZONE
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.api.types import Pod, TypeMeta
from webhook.core.index.readers import decode_object
from webhook.core.policy.policy import Messages, Mode, Policy
from webhook.core.review.examination import examine
from webhook.core.context import Context
from webhook.core.rules.placement.frame.case import PlacementRule
from webhook.core.rules.rule_set import BY_ID, RULES
from webhook.core.api.version import RECORDED

OF_PLACES = frozenset(rule.id for rule in RULES if isinstance(rule, PlacementRule))
DRY_RUN = frozenset({"replicas-do-not-fit", "replicas-can-get-stuck", ROLLOUT})
_POD = msgspec.json.Decoder(Pod)
# Rules that ask for constraints instead of looking at them; one is off unless configured, and stays so.
LEFT_OUT = frozenset({"system-defaults-lost", "spread-required"})
# Beside these, revision-mixed is silent on purpose: until the constraint is right, how rollouts end is of no interest.
SILENCE_ROLLOUTS = frozenset(
    {"selector-null", "selector-empty", "selector-not-self", "spread-conflicts-affinity", "spread-without-effect"}
)
# Every other rule on, and names as an administrator sees them.
POLICY = Policy(
    ceiling=Mode.DENY,
    rules={rule.id: Mode.WARN for rule in RULES if rule.id not in LEFT_OUT},
    messages=Messages(detail="full"),
    capacity="fixed",
)


class Inspection:
    """One world, what our rules say of it, and the referee to ask about it."""

    def __init__(self, world, referee):
        self.world, self.referee = world, referee
        self.manifest, self.after = world["workload"], {}

    @property
    def wanted(self):
        return replicas_of(self.manifest) if self.manifest["kind"] != "DaemonSet" else len(self.nodes())

    def nodes(self):
        return [each for each in self.world["objects"] if each["kind"] == "Node"]

    def pods(self):
        return [each for each in self.world["objects"] if each["kind"] == "Pod"]

    def question(self, **more):
        return question(self.world, **more)

    def place(self, **more):
        return self.referee.place(self.question(**more))

    @cached_property
    def is_rolled(self):
        """Whether the referee knows the rollout: of a Deployment, whose pods stand on nodes that are there."""
        nodes = {each["metadata"]["name"] for each in self.nodes()}
        own = own_names(self.world)
        there = all(each["spec"].get("nodeName") in nodes for each in self.pods() if f"{NAMESPACE}/{each['metadata']['name']}" in own)
        return self.manifest["kind"] == "Deployment" and there

    def roll(self, manifest=None):
        """What a rolling update of the Deployment to this template comes to."""
        return self.referee.place(rollout(self.world, manifest))

    @cached_property
    def index(self):
        index = ClusterIndex(RECORDED)
        # What has pods is in the cluster.
        applied = [self.world["workload"]] if own_names(self.world) else []
        for each in [*self.world["objects"], *applied]:
            raw = msgspec.json.encode(each)
            if each["kind"] == "Pod":
                index.apply_pod("ADDED", _POD.decode(raw), each["metadata"]["name"])
            else:
                value = decode_object(msgspec.Raw(raw), TypeMeta(api_version=each["apiVersion"], kind=each["kind"]))
                if value is not None:
                    index.apply("ADDED", value)
        index.taken_at = NOW
        return index

    def examine(self, manifest=None):
        raw = msgspec.json.encode(manifest or self.manifest)
        return examine(raw, Context(policy=POLICY, index=self.index, version=RECORDED, now=NOW))

    @cached_property
    def examined(self):
        return self.examine()

    def fixed(self, finding):
        """The manifest after the finding's fix, and what is said of it."""
        changed = edited(self.manifest, [(each.path, each.value) for each in finding.edits])
        if id(finding) not in self.after:
            self.after[id(finding)] = self.examine(changed)
        return changed, self.after[id(finding)]

    @cached_property
    def notes(self):
        """The rules whose fixes let another rule make a note that had nothing to say before."""
        fixes = [each for each in self.findings if each.edits and each.rule not in LEFT_OUT]
        return [each.rule for each in fixes if brought_by(self, self.fixed(each)[1])]

    @cached_property
    def silence(self):
        return silence(self)

    @cached_property
    def findings(self):
        return [each.finding for each in self.examined.findings]


def contradictions(inspected):
    """Every claim that does not hold: rule, what is claimed, what is wrong with it."""
    for finding in inspected.findings:
        if any(re.search(r"\bNone\b", text) for text in (finding.summary, finding.remedy, finding.detail, finding.fix)):
            yield finding.rule, finding.summary, "a message shows a value that the object does not have"
        if finding.rule in OF_PLACES and "schedulingGroup" in template_of(inspected.manifest)["spec"]:
            yield finding.rule, finding.summary, "it claims something of the places of a PodGroup's pods"
        reading, promises = READINGS.get(finding.rule, (None, False))
        if reading is not None:
            for fault in reading(inspected, finding):
                yield finding.rule, finding.summary, fault
        if finding.rule not in LEFT_OUT:
            for fault in of_the_fix(inspected, finding, promises):
                yield finding.rule, f"{finding.summary}; fix: {finding.fix}", fault
    if (rule := wrongly_silent(inspected)) is not None:
        yield rule, "nothing", f"pods have no place because of spread: {inspected.silence}"
    if (left_out := unspoken(inspected)) is not None:
        yield DIFFER, "nothing", left_out
    for each in inspected.examined.not_evaluated:
        if each.fault is not None:
            yield each.rule, "the rule failed", repr(each.fault)


def identity(finding):
    """What stays the same in another version of the object, in which a constraint may be soft."""
    key = (finding.key or finding.path).replace(" DoNotSchedule", "").replace(" ScheduleAnyway", "")
    return finding.rule, key


def of_the_fix(inspected, finding, promises):
    """A fix takes its finding away, brings none that warns, and lets all replicas have a place if it promises that."""
    if not finding.edits:
        return
    fixed, examined = inspected.fixed(finding)
    after = {identity(each.finding) for each in examined.findings}
    if examined.decode_error is not None:
        yield f"after it the object cannot be read: {examined.decode_error.text}"
    if identity(finding) in after:
        kept = next(each.finding for each in examined.findings if identity(each.finding) == identity(finding))
        yield f"after it the rule still says: {kept.summary}"
    for brought in brought_by(inspected, examined):
        hidden = brought.rule == "revision-mixed" and finding.rule in SILENCE_ROLLOUTS
        if (warns(brought) and not hidden) or brought.rule == finding.rule:
            yield f"after it {brought.rule} says: {brought.summary}"
    if promises:
        yield from of_places(inspected, finding, fixed)


def warns(finding):
    """Whether people are warned where nobody configured the rule; else it is a note for whoever asks."""
    return BY_ID[finding.rule].mode.rank > Mode.AUDIT.rank if finding.warns is None else finding.warns


def brought_by(inspected, examined):
    """The findings that were not there before, in the order of rules."""
    before = {identity(each) for each in inspected.findings}
    return [each.finding for each in examined.findings if identity(each.finding) not in before]


def of_places(inspected, finding, fixed):
    if finding.rule == "replicas-do-not-fit" and inspected.manifest["kind"] == "Pod":
        if not inspected.place(manifest=fixed)["most"]:
            yield "after it the pod has no place"
        return
    said = next((found for each in (FIT, HOLD) if (found := each.search(finding.summary))), None)
    wanted = most_of(inspected.world) if said and not said[2] else inspected.wanted
    # A StatefulSet's pods keep their names and are replaced one by one: these rules promise nothing of all of them anew.
    by_name = inspected.manifest["kind"] == "StatefulSet" and finding.rule in DRY_RUN
    for anew in (False,) if by_name else (False, True):
        placed = inspected.place(replicas=wanted, manifest=fixed, anew=anew)
        if placed["fewest"] < placed["queued"]:
            start = "placed anew" if anew else "beside those that run"
            yield f"after it, {start}, some order places {placed['fewest']} of {placed['queued']}"
    if finding.rule == ROLLOUT and inspected.is_rolled:
        rolled = inspected.roll(fixed)
        if rolled["exact"] and rolled["fewest"] < wanted:
            yield f"after it some order of a rollout places {rolled['fewest']} of {wanted}"
    if (lost := LOSS.search(finding.summary)) is not None:
        lose = {"key": ZONE, "value": lost[1], "truth": "unreachable"}
        today = inspected.place(manifest=fixed)
        placed = inspected.place(manifest=fixed, lose={**lose, "after": True} if today["queued"] else lose)
        if placed["mostPending"]:
            yield f"after it, in some order {placed['mostPending']} of {placed['queued']} replacements stay Pending"
