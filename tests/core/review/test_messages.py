"""The words of a decision."""

import pytest
from manifest import DENY, decide, workload
from msgspec.structs import replace

from webhook.core.policy.policy import Messages, Mode, Policy
from webhook.core.review.messages import WARNING_CHARS, denial, warnings_of
from webhook.core.rules.frame.rule import Finding
from webhook.core.text import one_line, plural, quoted, shortened

STRICT = replace(DENY, rules={"selector-not-self": Mode.DENY, "revision-mixed": Mode.DENY})
FIT = Finding(
    rule="replicas-do-not-fit",
    path="spec.replicas",
    summary="2 of 7 fit: zone c (1 node, cordoned) stays at 0",
    remedy="nodeTaintsPolicy: Honor fits 7",
    detail="2 of 7 fit (cause: spread): zone a 1, b 1, c 0 (1 node, cordoned), maxSkew 1",
    fix="nodeTaintsPolicy: Honor (7 of 7) | maxSkew: 4 (7 of 7)",
)


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(
            workload("Pod", "app=web-v2", "zone hard 1 app=web"),
            "evenspread/selector-not-self: zone[0] counts app=web but this pod has app=web-v2; use app=web-v2",
            id="selector-not-self",
        ),
        pytest.param(
            workload("Pod", "app=web", "topology.kubernetes.io/hostname hard 1 app=web"),
            "evenspread/topology-key-typo: Kubernetes has no label topology.kubernetes.io/hostname;"
            " use kubernetes.io/hostname",
            id="topology-key-typo",
        ),
        pytest.param(
            workload("Deployment", "app=web", "zone hard 1 app=web", replicas=12),
            "evenspread/revision-mixed: after a rollout of 12, zones can differ by 4;"
            " add matchLabelKeys: [pod-template-hash]",
            id="revision-mixed",
        ),
        pytest.param(
            workload("StatefulSet", "app=web", "zone hard 1 app=web keys:pod-template-hash"),
            "evenspread/match-label-key-wrong-kind: zone[0]: StatefulSet pods never have pod-template-hash; remove it",
            id="match-label-key-wrong-kind",
        ),
    ],
)
def test_warnings_of_one_line(manifest, expected):
    assert decide(manifest, policy=Policy()).warnings == (expected,)
    assert len(expected) <= WARNING_CHARS


WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen one two three"


@pytest.mark.parametrize(
    ("summary", "remedy", "expected"),
    [
        pytest.param("s" * 80, "f" * 24, f"evenspread/r: {'s' * 80}; {'f' * 24}", id="both, where both fit"),
        pytest.param(
            WORDS,
            "f" * 57,
            f"evenspread/r: one two three four five six seven eight nine …; {'f' * 57}",
            id="the fix stays whole while it is the shorter half",
        ),
        pytest.param(
            WORDS,
            "f" * 58,
            f"evenspread/r: {WORDS[: WORDS.index(' three', 20)]} …",
            id="a fix of half a line is left out",
        ),
        pytest.param(
            "s" * 80, "f" * 40, f"evenspread/r: {'s' * 80}", id="so is one that leaves no word of what is wrong"
        ),
        pytest.param(
            "one two " + "x" * 200, "", "evenspread/r: one two …", id="a word too long for the line is left out"
        ),
    ],
)
def test_which_half_of_a_warning_is_cut(summary, remedy, expected):
    assert warnings_of([Finding(rule="r", path="spec", summary=summary, remedy=remedy)]) == (expected,)
    assert len(expected) <= WARNING_CHARS


@pytest.mark.parametrize(
    ("count", "tail"),
    [
        (3, None),
        (4, "evenspread: 1 more finding; to list all: kubectl evenspread check --cluster -f FILE"),
        (6, "evenspread: 3 more findings; to list all: kubectl evenspread check --cluster -f FILE"),
    ],
)
def test_at_most_three_warnings_and_a_tail(count, tail):
    told = warnings_of([FIT] * count)
    one = "2 of 7 fit: zone c (1 node, cordoned) stays at 0; nodeTaintsPolicy: Honor fits 7"
    assert told[:3] == (f"evenspread/replicas-do-not-fit: {one}",) * 3
    assert told[3:] == (() if tail is None else (tail,))


def test_a_denial_has_a_first_line_that_stands_alone():
    decision = decide(workload("Rollout", "app=web-v2", "zone hard 1 app=web"), policy=STRICT)
    assert decision.message.splitlines() == [
        "Rollout shop/web: zone[0] counts app=web but the pods have app=web-v2; set matchLabels app=web-v2",
        "  1 selector-not-self  spec.template.spec.topologySpreadConstraints[0].labelSelector",
        (
            "    the constraint counts app=web, but the pods have app=web-v2, so it does not spread these pods"
            " and may keep them Pending"
        ),
        "    fix: labelSelector: {matchLabels: {app: web-v2}}",
        "  check before pushing: kubectl evenspread check -f FILE",
    ]


def test_a_denial_of_two_problems():
    first = Finding(rule="selector-not-self", path="spec.x", summary="s", remedy="r", headline="h", detail="d", fix="f")
    messages = Messages(docs_url="https://docs.example/rules/", footer="Ask #platform.")
    assert denial("Rollout shop/web", [first, FIT], messages).splitlines() == [
        "Rollout shop/web: h (1 of 2 problems)",
        "  1 selector-not-self  spec.x",
        "    d",
        "    fix: f",
        "  2 replicas-do-not-fit  spec.replicas",
        "    2 of 7 fit (cause: spread): zone a 1, b 1, c 0 (1 node, cordoned), maxSkew 1",
        "    fix: nodeTaintsPolicy: Honor (7 of 7) | maxSkew: 4 (7 of 7)",
        "  check before pushing: kubectl evenspread check -f FILE",
        "  about selector-not-self: https://docs.example/rules/selector-not-self",
        "  Ask #platform.",
    ]


def test_kube_apiservers_text_stands_in_the_frame():
    text = "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"
    decision = decide(workload("Rollout", "app=web", "zone hard 0 app=web"))
    assert decision.message.splitlines() == [
        f"Rollout shop/web: {text}",
        "  1 max-skew  spec.template.spec.topologySpreadConstraints[0].maxSkew",
        "    Invalid value: 0: must be greater than zero",
        "    fix: maxSkew: 1",
        "  check before pushing: kubectl evenspread check -f FILE",
    ]


HOSTILE = "a\nb\x00\x1b[31m\u202e\u2028" + "x" * 500


def test_text_from_the_object_is_bounded_and_on_one_line():
    manifest = workload("Rollout", "app=web", "zone hard 0 app=web")
    constraint = manifest["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint["topologyKey"] = constraint["nodeTaintsPolicy"] = HOSTILE
    constraint["labelSelector"] = {"matchLabels": {HOSTILE: HOSTILE}}
    for policy in (DENY, STRICT, Policy()):
        decision = decide(manifest, policy=policy)
        for text in (*decision.warnings, *decision.message.splitlines(), *decision.audit.values()):
            assert text.isprintable()
            assert len(text) <= 1100
        assert all(len(text) <= WARNING_CHARS for text in decision.warnings)


def test_a_footer_of_several_lines_is_kept():
    text = denial("Pod shop/web", [FIT], Messages(footer="one\ntwo"))
    assert text.endswith("\n  one\n  two")


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("plain", 10, "plain"), ("a\tb\u202ec", 10, "a b c"), ("abcdef", 4, "abc…"), ("", 4, ""), ("ünï", 3, "ünï")],
)
def test_shown(text, limit, expected):
    assert one_line(text, limit) == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("one two", 7, "one two"),
        ("one two", 6, "one …"),
        ("one two, three", 10, "one two …"),
        ("one two three", 8, "one …"),
        ("one two three", 9, "one two …"),
        ("onetwo three", 5, "onet…"),
        ("one\ttwo three", 9, "one two …"),
    ],
)
def test_sentences_are_cut_between_words(text, limit, expected):
    assert shortened(text, limit) == expected
    assert len(expected) <= limit


@pytest.mark.parametrize(("count", "said"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (12000, "12,000 nodes")])
def test_one_and_several(count, said):
    assert plural(count, "node") == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zone", "zone"),
        ("zone ", '"zone "'),
        ("", '""'),
        ("a\tb", '"a\\tb"'),
        ('a"b', 'a"b'),
        ("ü", "ü"),
        ("x" * 99, "x" * 79 + "…"),
    ],
)
def test_names_with_odd_ends_are_quoted(text, said):
    assert quoted(text) == said


def test_many_problems_are_not_all_printed():
    text = denial("Pod shop/web", [FIT] * 40, Messages())
    assert "(1 of 40 problems)" in text
    assert "  and 30 more" in text
    assert len(text) < 4096
