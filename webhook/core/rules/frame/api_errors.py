"""Texts and fixes for kube-apiserver's errors about constraints.

A fix only uses values from the manifest. It never guesses a whenUnsatisfiable or a node label.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from webhook.core.api.label_syntax import key_faults, value_faults
from webhook.core.api.types import DO_NOT_SCHEDULE, HONOR, IGNORE, SCHEDULE_ANYWAY, LabelSelectorRequirement
from webhook.core.apiserver.field_errors import ErrorType, FieldError
from webhook.core.budget import Reason
from webhook.core.json_edits import Edit, value_at
from webhook.core.rules.frame.fixes import Fix, changes, redundant
from webhook.core.rules.frame.own_pods import own_labels
from webhook.core.rules.frame.subject import Placed, Subject
from webhook.core.spelling import nearest
from webhook.core.text import one_line, together
from webhook.core.yaml_text import flow, flow_scalar, one_field

UNREAD_TEMPLATE = Reason("template (kube-apiserver does not validate it while spec.selector is invalid)")
_FIELD = re.compile(r"\[(\d+)\](?:\.(\{[^}]*\}|\w+))?(.*)", re.DOTALL)
_ACTIONS = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
_POLICIES = (HONOR, IGNORE)
# Within this many wrong letters, hyphens and case aside, a value was meant to be the API's.
_SLIPS = 2
_MOST_KEYS = 64  # The most matchLabelKeys of a constraint with edits. For more, the fix is an instruction.
_MAX_COMPARED_LETTERS = 32  # The longest valid value has 14 letters, and comparing takes time for each letter.
_MAX_REMOVED_CONSTRAINTS = 16  # The most constraints removed by a fix. For more, the fix is an instruction.
_OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(("in", "=", "==", "equal", "equals"), "In"),
    **dict.fromkeys(("notin", "!=", "notequal", "notequals"), "NotIn"),
    **dict.fromkeys(("exists", "exist"), "Exists"),
    **dict.fromkeys(("doesnotexist", "doesnotexists", "notexist", "notexists", "!"), "DoesNotExist"),
}
_INDEX = re.compile(r"\[\d+\]")
_EXPRESSION = re.compile(r"\.matchExpressions\[(\d+)\]\.(operator|values)")
_MISFIT = re.compile(r"json: cannot unmarshal (string|number|bool).* of type (\S+)", re.DOTALL)
_DIGITS = re.compile(r"[-+]?[0-9]{1,10}", re.ASCII)
_LIST = "[]v1.TopologySpreadConstraint"
_MOST_TEXT_CHARS = 4096  # The start of a text shows its intended type, and the author chooses its length.
_COMPOSITE = ("[]", "map[", "v1.")  # The start of Go's type names of lists, maps and structs.
# A list or mapping printed by a Helm template without toYaml. Source: Go fmt ``printValue``, the verb %v.
_GO_TEXT = re.compile(r"\s*\[*map\[(?:\]|[^\]\s:]+:)")
# Text in YAML or JSON: an item, a key, or a bracket.
_YAML_TEXT = re.compile(r"^[ \t]*(?:-\s|[\w./\"'-]+:(?:\s|$)|\[|\{(?!\{))", re.MULTILINE)
# Paths of label keys and values.
_LABEL_TEXTS = re.compile(r"\.(?:labels|matchLabels|nodeSelector)[.\[][^\[\]]+\]?|\.(?:values|matchLabelKeys)\[\d+\]")
_POSITIVE = {"maxSkew", "minDomains"}
_MAX_INT32 = 2**31 - 1  # maxSkew and minDomains are of this type


class _Broken(Struct, frozen=True):
    """kube-apiserver's error about a field of one constraint.

    Attributes:
        error: kube-apiserver's error.
        field: The constraint's field.
        rest: The path below ``field``.
        placed: The constraint.
        beside: All constraints of the template.
        subject: The reviewed object.
    """

    error: FieldError
    field: str
    rest: str
    placed: Placed
    beside: Sequence[Placed]
    subject: Subject

    @property
    def path(self) -> str:
        """The field's path in the reviewed object. `error` has the path in the pod."""
        return f"{self.placed.path}.{self.field}{self.rest}"

    @property
    def said(self) -> str:
        """The error without its path."""
        return self.error.text.removeprefix(f"{self.error.field}: ")

    @property
    def warning(self) -> str:
        """The error in a warning: ``zone[0].maxSkew: …``."""
        name = self.placed.name
        return f"{name}.{self.field}: {self.said}" if self.field.isalnum() else f"{name}: {self.said}"

    @property
    def key(self) -> str:
        """The key of the finding (`Finding.key`)."""
        return f"{self.placed.key} {self.field}{self.rest} {self.said}"


def broken_at(error: FieldError, path: str, constraints: Sequence[Placed], subject: Subject) -> _Broken:
    """Find the constraint and field of an API error. ``path`` is the path of the constraint list in ``error.field``."""
    match = _FIELD.match(error.field, len(path))
    index, field, rest = (int(match[1]), match[2] or "", match[3]) if match else (0, "", "")
    return _Broken(error, field, rest, constraints[index], constraints, subject)


def fix_of(broken: _Broken) -> Fix:
    """Return the fix of an error. Empty for unknown errors."""
    fix = _FIXES.get((_INDEX.sub("[]", broken.field + broken.rest), broken.error.type))
    return Fix() if fix is None else fix(broken)


def _action(broken: _Broken) -> Fix:
    placed = broken.placed
    meant = _near(placed.constraint.when_unsatisfiable, _ACTIONS)
    if meant is None and placed.constraint.min_domains is not None:
        meant = DO_NOT_SCHEDULE  # minDomains goes with no other action
    if meant is None:
        return Fix("choose DoNotSchedule (a requirement) or ScheduleAnyway (a preference)")
    if (taken := redundant(placed, when_unsatisfiable=meant)) is not None:
        return taken
    if meant == SCHEDULE_ANYWAY and placed.constraint.min_domains is not None:
        return changes(placed, whenUnsatisfiable=meant, minDomains=None)
    return changes(placed, at=broken.path, whenUnsatisfiable=meant)


def _min_domains(broken: _Broken) -> Fix:
    constraint = broken.placed.constraint
    hardened = _action(broken)
    is_meant = (constraint.min_domains or 0) > 0 and constraint.when_unsatisfiable != SCHEDULE_ANYWAY
    if is_meant and [each.value for each in hardened.edits] == [DO_NOT_SCHEDULE]:
        return hardened
    return changes(broken.placed, minDomains=None)


def _policy(broken: _Broken) -> Fix:
    written = broken.error.bad_value
    meant = _near(str(written), _POLICIES) if written else None
    if written and not meant:
        return Fix("choose Honor or Ignore")
    return changes(broken.placed, at=None, named=False, **{broken.field: meant})


def _near(written: str | None, allowed: Sequence[str]) -> str | None:
    """Return the probably intended value. None if the written value differs by more than two letters."""
    letters = "".join(filter(str.isalpha, written or ""))[:_MAX_COMPARED_LETTERS].lower()
    by_letters = {each.lower(): each for each in allowed}
    meant = nearest(letters, by_letters, _SLIPS)
    return None if meant is None else by_letters[meant]


def _own_selector(broken: _Broken) -> Fix | None:
    own = own_labels(broken.placed, broken.subject.workload)
    return changes(broken.placed, at=broken.path, labelSelector={"matchLabels": own}) if own else None


def _keys_without_selector(broken: _Broken) -> Fix:
    placed, labels = broken.placed, broken.placed.template.pod.labels
    if any(key in labels for key in placed.constraint.match_label_keys or ()):
        return _own_selector(broken) or changes(placed, at=broken.path, labelSelector={})
    return _own_selector(broken) or Fix("add a labelSelector that matches the pods, or remove matchLabelKeys")


def _key(broken: _Broken) -> Fix:
    placed, key = broken.placed, str(broken.error.bad_value)
    keys, where = placed.constraint.match_label_keys or (), f"{placed.path}.matchLabelKeys"
    # Each key has an error and may repeat, so the work would be quadratic.
    looked = enumerate(keys) if len(keys) <= _MOST_KEYS else ()
    paths = tuple(Edit(f"{where}[{index}]") for index, each in looked if each == key)
    return Fix(f"remove {one_line(flow_scalar(key), 80)} from matchLabelKeys", paths)


def _label_selector(broken: _Broken) -> Fix:
    selector = broken.placed.constraint.selector
    if (found := _EXPRESSION.fullmatch(broken.rest)) and selector and selector.match_expressions:
        fix = _mended_requirement(broken, selector.match_expressions[int(found[1])], found[2])
        if fix is not None:
            return fix
    return _own_selector(broken) or Fix("use label keys and values Kubernetes accepts")


def _mended_requirement(broken: _Broken, requirement: LabelSelectorRequirement, field: str) -> Fix | None:
    path, labels = broken.path, broken.placed.template.pod.labels
    if field == "operator":
        meant = _OPERATORS.get("".join(requirement.operator.lower().replace("-", "").replace("_", "").split()))
        if meant is None or (meant in {"In", "NotIn"}) is not bool(requirement.values):
            return None
        return Fix(one_field("operator", meant), (Edit(path, meant),))
    if requirement.operator in {"Exists", "DoesNotExist"}:
        return Fix("remove values", (Edit(path),))
    own = labels.get(requirement.key)
    if requirement.operator != "In" or own is None or value_faults(own):
        return None
    verb = "add " if requirement.values is None else ""
    return Fix(verb + one_field("values", [own]), (Edit(path, [own]),))


def _keep_first(broken: _Broken) -> Fix:
    pair = _pair(broken.placed)
    # Each of them is an error with this fix: were it as long as they are many, an object could fill the memory.
    alike = (each for each in broken.beside if _pair(each) == pair)
    first, *later = islice(alike, _MAX_REMOVED_CONSTRAINTS + 2)
    if len(later) > _MAX_REMOVED_CONSTRAINTS:
        return Fix("keep the first of these constraints and remove the others")
    names = " and ".join(each.name for each in later)
    if any(each.constraint != first.constraint for each in later):
        named = together(each.name for each in (first, *later))
        return Fix(f"keep one of {named}", by_hand="their other fields differ")
    return Fix(f"remove {names}", tuple(Edit(each.path) for each in later))


def _pair(placed: Placed) -> tuple[str, str]:
    return placed.constraint.topology_key or "", placed.constraint.when_unsatisfiable or ""


# By the path below the constraint and the kind of error, because each kind needs its own fix.
_FIXES: Mapping[tuple[str, ErrorType], Callable[[_Broken], Fix]] = {
    ("maxSkew", ErrorType.INVALID): lambda broken: changes(broken.placed, maxSkew=1),
    ("topologyKey", ErrorType.REQUIRED): lambda _: Fix(
        "set topologyKey to a node label, such as topology.kubernetes.io/zone or kubernetes.io/hostname"
    ),
    ("whenUnsatisfiable", ErrorType.NOT_SUPPORTED): _action,
    ("minDomains", ErrorType.INVALID): _min_domains,
    ("nodeAffinityPolicy", ErrorType.NOT_SUPPORTED): _policy,
    ("nodeTaintsPolicy", ErrorType.NOT_SUPPORTED): _policy,
    ("matchLabelKeys", ErrorType.FORBIDDEN): _keys_without_selector,
    ("matchLabelKeys[]", ErrorType.INVALID): _key,
    # Upstream reports a duplicate key at [i][j], without the field.
    ("[]", ErrorType.INVALID): _key,
    ("labelSelector.matchLabels", ErrorType.INVALID): _label_selector,
    ("labelSelector.matchExpressions[].key", ErrorType.INVALID): _label_selector,
    ("labelSelector.matchExpressions[].operator", ErrorType.INVALID): _label_selector,
    ("labelSelector.matchExpressions[].values", ErrorType.REQUIRED): _label_selector,
    ("labelSelector.matchExpressions[].values", ErrorType.FORBIDDEN): _label_selector,
    ("labelSelector.matchExpressions[].values[]", ErrorType.INVALID): _label_selector,
    ("{topologyKey, whenUnsatisfiable}", ErrorType.DUPLICATE): _keep_first,
}


def fitting(path: str, text: str, value: Callable[[], object], as_written: Callable[[str], str]) -> Fix:
    """Return a fix that converts a value to the type of its field.

    Args:
        path: The path of the field.
        text: The decoder's error about the value.
        value: Returns the object as parsed JSON.
        as_written: Returns the text of a scalar in the file, "" if unknown. The parser may turn ``1.0`` into ``1``.
    """
    found = _MISFIT.match(text)
    if found is None:
        _, is_typed, wanted = text.rpartition(" of type ")
        return _type_in_words(wanted) if is_typed else Fix(_QUANTITY if text.startswith(_QUANTITIES) else "")
    given, wanted = found[1], found[2]
    if given == "string" and wanted.startswith((*_COMPOSITE, "int")):
        written = value_at(value(), path)
        if wanted.startswith("int"):
            return _number(path, written)
        if said := _of_text(path, wanted, written):
            return Fix(said, by_hand="the text may come from a template")
        if wanted == "[]string":
            return Fix(one_field(path.rpartition(".")[2], [written]), (Edit(path, [written]),))
    if wanted == "string":
        return _text(path, as_written(path))
    return _type_in_words(wanted)


def _type_in_words(wanted: str) -> Fix:
    return Fix(_WORDS.get(wanted) or (f"write a value of type {one_line(wanted, 80)} here" if wanted else ""))


# Source: apimachinery pkg/api/resource/quantity.go ``ErrFormatWrong``.
_QUANTITIES = "quantities must match"
_QUANTITY = "write a quantity here, such as 100m or 128Mi"
_WORDS = {
    "string": "write a string here",
    "int32": "write a whole number here",
    _LIST: "write a list here (each constraint begins with a hyphen)",
    "v1.LabelSelector": "write matchLabels or matchExpressions here",
    "v1.TopologySpreadConstraint": "write the fields of a constraint here",
    "map[string]string": "write a label and its value here",
}


def _of_text(path: str, wanted: str, text: object) -> str:
    """Return advice for a field with text instead of the expected list or mapping. Empty if the text is only a name."""
    start = text[:_MOST_TEXT_CHARS] if isinstance(text, str) else ""
    is_go, is_yaml = bool(_GO_TEXT.match(start)), bool(_YAML_TEXT.search(start))
    if not (wanted == _LIST or is_go or is_yaml):
        return ""
    source = "." if path.endswith("]") else f".Values.{path.rpartition('.')[2]}"
    # A chart indents each level by two, and an item of a list is a level.
    levels = len(path.replace("[", ".[").split("."))
    meant = "a list" if wanted.startswith("[]") else "a mapping"
    undo = "remove the | or > before it, or " if "\n" in start else "remove the quotes, or "
    fault = f"this is text{' as Go prints it' if is_go else ''}, not {meant}: {undo if is_yaml and not is_go else ''}"
    return f"{fault}in a Helm template write {{{{- toYaml {source} | nindent {2 * levels} }}}}"


def _number(path: str, written: object) -> Fix:
    name = path.rpartition(".")[2]
    if not isinstance(written, str) or not _DIGITS.fullmatch(written.strip()):
        return Fix("write a whole number here, without quotes")
    number = int(written)
    if abs(number) > _MAX_INT32 or (name in _POSITIVE and number < 1):
        return Fix("write a whole number of at least 1 here, without quotes")
    return Fix(one_field(name, number), (Edit(path, number),))


def _text(path: str, written: str) -> Fix:
    found = re.search(_LABEL_TEXTS.pattern + "$", f".{path}")
    if found is None or not written or value_faults(written) or ("matchLabelKeys" in found[0] and key_faults(written)):
        return Fix("write it in quotes, because the field needs a string")
    quoted = f'"{written}"'
    if found[0].endswith("]") and path.endswith("]") and found[0].startswith((".values[", ".matchLabelKeys[")):
        return Fix(quoted, (Edit(path, written),))
    key = re.sub(r".*\.(?:labels|matchLabels|nodeSelector)[.\[]", "", f".{path}").removesuffix("]")
    return Fix(f"{flow(key)}: {quoted}", (Edit(path, written),))
