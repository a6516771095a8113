"""The rules topology-key-typo and spread-required as expressions."""

from webhook.core.admission_policies.cel import literal, literals, name, one_slip, text
from webhook.core.admission_policies.expressions import (
    SPEC,
    RulePart,
    is_kind,
    usual_rule,
)
from webhook.core.api.well_known import HOSTNAME, REGION, ZONE
from webhook.core.index.key_suggestions import MEANT_BY_NAME, WELL_KNOWN, WRONG_PREFIXES
from webhook.core.policy.policy import Policy
from webhook.core.rules.cluster import effect, topology_key
from webhook.core.workloads.kinds import NATIVE, traits


def _place(key: str) -> str:
    """The well-known key meant by a bare name. Empty for other names."""
    by_place = ((place, [each for each, meant in MEANT_BY_NAME.items() if meant == place]) for place in _PLACES)
    return "".join(f"{key} in {literals(names)} ? {literal(place)} : " for place, names in by_place) + '""'


_PLACES = (ZONE, HOSTNAME, REGION)


def misspelt_topology_key(policy: Policy) -> RulePart:
    """The rule topology-key-typo, for a wrong prefix, a wrong letter, or a bare name."""
    prefix, last = "k.substring(0, k.lastIndexOf('/'))", "k.substring(k.lastIndexOf('/') + 1).lowerAscii()"
    slip = "".join(
        f"k.size() >= {len(place) - 1} && k.size() <= {len(place) + 1} && k.matches({literal(one_slip(place))}) ?"
        f" {literal(place)} : "
        for place in _PLACES
    )
    known = literals(sorted({*WELL_KNOWN, *policy.domains}))
    meant = (
        f"k in {known} ? \"\" : k.contains('/') && {prefix} in {literals(sorted(WRONG_PREFIXES))} &&"
        f' ({_place(last)}) != "" ? ({_place(last)}) : {slip}""'
    )
    # Unless the rule is configured, it only audits a bare name such as zone.
    bare = f'k in {known} ? "" : {_place("k.lowerAscii()")}' if topology_key.TYPO.id in policy.rules else '""'
    keys, first = "variables.at.map(i, variables.constraints[i].topologyKey)", "variables.misspeltAt[0]"
    key = f"variables.constraints[{first}].topologyKey"
    parts = {"meant": f"variables.bare[{first}]", "key": key}
    wrong, own = text(topology_key.NO_SUCH_LABEL, key=name(key, 256)), text(topology_key.NOT_SET, **parts)
    variables = (
        ("meant", f"{keys}.map(k, {meant})"),
        ("bare", f"{keys}.map(k, {bare})"),
        ("misspeltAt", 'variables.at.filter(i, variables.meant[i] != "" || variables.bare[i] != "")'),
        ("misspeltSummary", f'variables.meant[{first}] != "" ? {wrong} : {own}'),
        (
            "misspeltRemedy",
            f'"use " + (variables.meant[{first}] != "" ? variables.meant[{first}] : variables.bare[{first}])',
        ),
    )
    found = "variables.misspeltAt.size() > 0"
    return variables, usual_rule(topology_key.TYPO, found, "variables.misspeltSummary", "variables.misspeltRemedy")


def required_constraints() -> RulePart:
    """The rule spread-required, which is off unless configured."""
    affinity = "variables.template.spec.affinity"
    terms = f"{affinity}.podAntiAffinity"
    apart = " || ".join(
        f"has({terms}.{when}DuringSchedulingIgnoredDuringExecution)"
        f" && {terms}.{when}DuringSchedulingIgnoredDuringExecution.size() > 0"
        for when in ("required", "preferred")
    )
    has_terms = f"has({affinity}) && has({terms})"
    serving = is_kind(kind for kind in NATIVE if traits(kind).serves)
    thousands = '(n < 1000 ? string(n) : string(n / 1000) + "," + string(1000 + n % 1000).substring(1))'
    replicas = f'[variables.replicas].map(n, {thousands} + " replicas")[0]'
    variables = (
        ("replicas", f"{serving} && has({SPEC}.replicas) ? int({SPEC}.replicas) : 1"),
        (
            "unspread",
            f"variables.replicas > 1 && variables.constraints.size() == 0 && !({has_terms} && ({apart}))",
        ),
        ("unspreadSummary", text(effect.REQUIRED_SUMMARY, replicas=replicas)),
    )
    remedy = literal(effect.REQUIRED_REMEDY)
    return variables, usual_rule(effect.SPREAD_REQUIRED, "variables.unspread", "variables.unspreadSummary", remedy)
