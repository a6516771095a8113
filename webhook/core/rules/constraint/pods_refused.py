"""Find workloads that kube-apiserver accepts, although it refuses their pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from webhook.core.api import gates
from webhook.core.api.label_syntax import MAX_LABEL_VALUE_BYTES
from webhook.core.api.types import LabelSelector, PodAffinityTerm
from webhook.core.api.written_selector import is_refused, requirements, selected_keys, selector_as_json, without_key
from webhook.core.apiserver.validation import are_clearly_valid
from webhook.core.budget import Reason
from webhook.core.json_edits import Edit
from webhook.core.policy.policy import Mode
from webhook.core.rules.frame.api_errors import UNREAD_TEMPLATE, broken_at, fix_of
from webhook.core.rules.frame.fixes import Fix, all_of, changes
from webhook.core.rules.frame.own_pods import LATE_LABELS
from webhook.core.rules.frame.rule import Finding, NotEvaluated, Reevaluated, Rule, RuleAnswer, Severity, guarded
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.text import one_line, quoted
from webhook.core.workloads.controller_labels import may_be_created_with
from webhook.core.workloads.kinds import POD, POD_TEMPLATE, STATEFUL_SET
from webhook.core.workloads.labels_at_creation import is_placeholder, labels_at_creation
from webhook.core.workloads.reading import reaches_template, takes_any_template
from webhook.core.workloads.refused_pods import Refusal, refusals, terms_with_label_keys
from webhook.core.workloads.workload import Template, Workload
from webhook.core.yaml_text import one_field

_REVISION_OF_NAME = Reason(
    f"hash of the template (with it the label controller-revision-hash may exceed {MAX_LABEL_VALUE_BYTES} bytes)"
)
# Also the texts of admission policies.
NO_POD = "no pod can be created: {fault}"
IN_BOTH = "{key} is in labelSelector and in matchLabelKeys"
TWICE = "matchLabelKeys has {key} twice"
_HASH = 10  # The most characters of a revision hash: the digits of the largest 32-bit number.


def evaluate(subject: Subject) -> Iterable[RuleAnswer]:
    """Yield the errors reported by kube-apiserver only when the controller creates the next pod of a template."""
    workload = subject.workload
    # No controller makes pods of pods and PodTemplates.
    if workload.group_kind in (POD, POD_TEMPLATE):
        return ()
    # A quick check covers most workloads.
    plain = workload.built_in and not _is_long(workload) and subject.plainly_right
    if plain and all(each.pod.pod_spec.affinity is None for each in workload.templates):
        return ()
    return chain.from_iterable(guarded((REFUSED,), _of_template, each, subject) for each in workload.templates)


REFUSED = Rule(
    id="pods-refused",
    title="kube-apiserver accepts the object but refuses all its pods",
    severity=Severity.HIGH,
    mode=Mode.DENY,
    why=(
        "kube-apiserver validates pods more strictly than pod templates:\n\n"
        "- Since Kubernetes 1.34, it merges matchLabelKeys into the labelSelector of a new pod, and refuses a key "
        "that is in both. It merges nothing in a template.\n"
        "- For pod affinity terms, it does so in every release.\n"
        "- Before 1.34, it hardly validated the template of a StatefulSet.\n\n"
        "Your workload is accepted, but stays at 0 pods. No pod is Pending, and the only trace is an event of the "
        "controller."
    ),
    evaluate=evaluate,
    reevaluated=Reevaluated.AFTER_FIXES,
    of_a_part=True,
    without_constraints=True,
)


def _of_template(template: Template, subject: Subject) -> Iterator[RuleAnswer]:
    workload, version = subject.workload, subject.version
    spec = template.pod.pod_spec
    terms = tuple(terms_with_label_keys(spec))
    plain = workload.built_in and are_clearly_valid(spec.constraints) and not terms
    if plain and not _is_long(workload):
        return
    placed = [each for each in subject.placed if each.template is template]
    late = [each for each in refusals(workload, template, version) if each.late]
    for each in late:
        # Kubernetes reports this error only once the selector is valid, so the rule is not evaluated yet.
        yield (
            _finding(each, placed, subject) if reaches_template(workload) else NotEvaluated(REFUSED.id, UNREAD_TEMPLATE)
        )
    if late:
        return
    # Keys with their merged selectors.
    joined = [(term.match_label_keys or (), selector) for _, term, selector in terms]
    if gates.MERGES_SPREAD_KEYS.holds(version):
        own = (each.constraint for each in placed)
        joined += [(each.match_label_keys or (), each.selector) for each in own if each.selector is not None]
    if any(_may_be_refused(*each, template, workload) for each in joined):
        yield NotEvaluated(REFUSED.id, LATE_LABELS)
    elif _is_long(workload):
        yield NotEvaluated(REFUSED.id, _REVISION_OF_NAME)


def _may_be_refused(keys: Sequence[str], selector: LabelSelector, template: Template, workload: Workload) -> bool:
    given, asked = labels_at_creation(workload, template.pod), selected_keys(selector)
    return any(
        key not in given and (key in asked or keys.count(key) > 1) and may_be_created_with(workload, key)
        for key in keys
    )


def _is_long(workload: Workload) -> bool:
    is_set = workload.group_kind == STATEFUL_SET
    return is_set and len(workload.meta.name) + len("-") + _HASH > MAX_LABEL_VALUE_BYTES


def _finding(refusal: Refusal, placed: Sequence[Placed], subject: Subject) -> Finding:
    error, workload = refusal.error, subject.workload
    said = error.text.removeprefix(f"{error.field}: ")
    if refusal.term is not None and refusal.index is None:
        return _of_term(refusal, refusal.term, workload)
    if refusal.index is None:
        # The label with the name has a hash behind it, after a hyphen.
        most = MAX_LABEL_VALUE_BYTES - _HASH - len("-")
        is_name = refusal.path == "metadata.name"
        warning = "the name is too long for a label" if is_name else f"label: {said}"
        fix = Fix(f"use a name of at most {most} characters, because pod labels contain it" if is_name else "")
        return _refused_pods(refusal, workload, warning, fix, f"{refusal.path} {said}")
    where = placed[refusal.index]
    if takes_any_template(workload, subject.version):
        broken = broken_at(error, "spec.topologySpreadConstraints", placed, subject)
        return _refused_pods(refusal, workload, broken.warning, fix_of(broken), broken.key)
    key = str(error.bad_value)
    fix = _fix(where, refusal.path, workload)
    warning = f"{where.name}: {_twice(key, where.constraint.selector)}"
    return replace(_refused_pods(refusal, workload, warning, fix, f"{where.key} {key} {said}"), remedy=fix.text)


def _refused_pods(refusal: Refusal, workload: Workload, warning: str, fix: Fix, key: str) -> Finding:
    which = "this workload"
    if len(workload.templates) > 1:
        which = one_line(_template_of(refusal, workload).path.rstrip("."))
    return Finding(
        rule=REFUSED.id,
        path=refusal.path,
        summary=f"no pod of {which} can be created: {refusal.error.text}",
        warning=NO_POD.format(fault=warning),
        detail=f"kube-apiserver accepts the {workload.kind} but refuses all its pods: {refusal.error.text}",
        **fix.fields,
        key=key,
    )


def _template_of(refusal: Refusal, workload: Workload) -> Template:
    return max(
        (each for each in workload.templates if refusal.path.startswith(each.path)), key=lambda each: len(each.path)
    )


def _twice(key: str, selector: LabelSelector | None) -> str:
    return (IN_BOTH if key in selected_keys(selector) else TWICE).format(key=quoted(key, 40))


def _of_term(refusal: Refusal, term: PodAffinityTerm, workload: Workload) -> Finding:
    """Return the finding about a pod affinity term with a label in both matchLabelKeys and the selector."""
    key, path = str(refusal.error.bad_value), refusal.path.rpartition(".")[0]
    labels = labels_at_creation(workload, _template_of(refusal, workload).pod)
    selector, keys = _once(term.label_selector or LabelSelector(), term.match_label_keys or (), labels)
    fix = Fix()
    if selector != term.label_selector:
        right = selector_as_json(selector)
        fix = Fix(f"set {one_field('labelSelector', right)}", (Edit(f"{path}.labelSelector", right),))
    if keys != list(term.match_label_keys or ()):
        text = f"set {one_field('matchLabelKeys', keys)}" if keys else "remove matchLabelKeys"
        fix = all_of((fix, Fix(text, (Edit(f"{path}.matchLabelKeys", keys or None),))))
    kind = "podAntiAffinity" if ".podAntiAffinity." in path else "podAffinity"
    warning = f"{kind}: {_twice(key, term.label_selector)}"
    return replace(_refused_pods(refusal, workload, warning, fix, f"{path} {key}"), remedy=fix.text)


def _fix(placed: Placed, path: str, workload: Workload) -> Fix:
    """Remove the duplicate of each label key from matchLabelKeys or the selector. The counted pods stay the same.

    A key stays in the selector if the selector names its only value, else in matchLabelKeys. If an operator adds to the
    selector, the author has to choose.
    """
    constraint, labels = placed.constraint, labels_at_creation(workload, placed.template.pod)
    before, written = constraint.selector or LabelSelector(), constraint.match_label_keys or ()
    selector, keys = _once(before, written, labels)
    if selector != before and not workload.whole:
        gone = selected_keys(before) - selected_keys(selector)
        key = next(each for each in written if each in gone)
        return Fix(f"use {quoted(key)} in matchLabelKeys or in labelSelector, not in both")
    changed: dict[str, object] = {}
    if selector != constraint.selector:
        changed["labelSelector"] = selector_as_json(selector)
    if keys != list(written):
        changed["matchLabelKeys"] = keys or None
    return changes(placed, at=path, named=False, **changed)


def _once(
    selector: LabelSelector, written: Sequence[str], labels: Mapping[str, str]
) -> tuple[LabelSelector, list[str]]:
    """Return the selector and the matchLabelKeys, with each label key in only one of them."""
    keys = list(dict.fromkeys(written))
    for key in [each for each in keys if each in labels]:
        asked = [each for each in requirements(selector) if each.key == key]
        if not asked:
            continue
        value = labels[key]
        named = any(each.operator == "In" and {*each.values} == {value} for each in asked)
        # The selector requires exactly the value of the pods, so the key adds nothing.
        if not is_placeholder(value) and named and all(is_refused(each) or each.matches(labels) for each in asked):
            keys.remove(key)
        else:
            selector = without_key(selector, key)
    return selector, keys
