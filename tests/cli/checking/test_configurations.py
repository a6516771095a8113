"""SpreadPolicy and KubeSchedulerConfiguration among the files: checked as their readers read them."""

import json

import pytest

POLICY = "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = (
    "profiles:\n- pluginConfig:\n  - name: PodTopologySpread\n    args:\n      defaultingType: %s\n"
    "      defaultConstraints:\n      - {maxSkew: %s, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}\n"
)
DEFAULTS = (
    "defaults:\n  mode: inject\n  defaultConstraints:\n  - {topologyKey: zone, maxSkew: %s, whenUnsatisfiable: %s}\n"
)
SYSTEM = (
    'KubeSchedulerConfiguration: profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "System": '
    "when .defaultConstraints are not empty"
)
CASES = [
    pytest.param(SCHEDULER + ARGS % ("List", 1), "", id="constraints of a list"),
    pytest.param(SCHEDULER + ARGS % ("System", 1), f"7:23: error: {SYSTEM}", id="constraints beside System"),
    pytest.param(
        SCHEDULER + ARGS % ("List", 0), "maxSkew: Invalid value: 0: not in valid range (0, inf)", id="maxSkew 0"
    ),
    pytest.param(SCHEDULER, "", id="the defaults of kube-scheduler"),
    pytest.param(POLICY + DEFAULTS % (1, "ScheduleAnyway"), "", id="a policy"),
    pytest.param(
        POLICY + DEFAULTS % (0, "ScheduleAnyway"), "6:34: error: SpreadPolicy: ", id="a policy with maxSkew 0"
    ),
    pytest.param(POLICY + DEFAULTS % (1, "Never"), 'Unsupported value: "Never"', id="a policy with a wrong value"),
    pytest.param(POLICY + "ceiling: never\n", "3:10: error: SpreadPolicy: ceiling: must be one of", id="a ceiling"),
    pytest.param(POLICY + "ceilling: deny\n", 'unknown field; did you mean "ceiling"?', id="a misspelt field"),
    pytest.param(POLICY.replace("/v1alpha1", "/v1"), "apiVersion: must be config", id="a version of ours"),
    pytest.param(POLICY.replace("config.", ""), "apiVersion: must be config", id="a group of ours"),
    pytest.param(POLICY.replace("evenspread.io", "example.com"), "", id="a kind of another project"),
    pytest.param(POLICY + "schedulerConfiguration: /run/absent.yaml\n", "", id="a file that only replicas have"),
]


def _indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def _in_config_map(text):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata:\n  a.yaml: |\n{_indented(text)}"


def _in_list(text):
    item = _indented(text).replace("    ", "  - ", 1)
    return f"apiVersion: v1\nkind: List\nitems:\n{item}"


@pytest.mark.parametrize(("text", "said"), CASES)
def test_each_fault_is_an_error_where_it_stands(check, text, said):
    code, out, err = check("web.yaml", "--fail-on", "low", web=text)
    assert "unread-constraints" not in out
    assert (code, said in err) == (3 if said else 0, True)
    assert said or not err


@pytest.mark.parametrize(("text", "said"), CASES)
@pytest.mark.parametrize("wrap", [_in_config_map, _in_list])
def test_the_same_in_another_object(check, text, said, wrap):
    code, _, err = check("web.yaml", web=wrap(text))
    message = said.rpartition("error: ")[2]
    assert (code, message in err) == (3 if said else 0, True)
    assert said or not err


def test_a_fault_in_a_config_map_names_the_key(check):
    _, _, err = check("web.yaml", web=_in_config_map(SCHEDULER + ARGS % ("System", 1)))
    assert f"web.yaml:5:3: error: ConfigMap settings: a.yaml:7:23: {SYSTEM}\n" in err


def test_a_fault_in_json(run):
    value = {"apiVersion": POLICY.split()[1], "kind": "SpreadPolicy", "ceiling": "never"}
    code, _, err = run("check", "-", stdin=json.dumps(value, indent="\t").encode())
    assert (code, "<stdin>:4:2: error: SpreadPolicy: ceiling: must be one of" in err) == (3, True)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param(POLICY + "ceiling: ${CEILING}\n", "note: SpreadPolicy: ceiling: must be", id="a placeholder"),
        pytest.param(
            SCHEDULER.replace("/v1\n", "/v1beta3\n"),
            "1:13: note: KubeSchedulerConfiguration: apiVersion: must be",
            id="a version that only older kube-schedulers read",
        ),
        pytest.param(
            POLICY + "exemptions:\n- {rule: max-skew, reason: old, expires: 2020-01-01, match: {namespace: a}}\n",
            "note: SpreadPolicy: exemptions[0]",
            id="an exemption that is over",
        ),
    ],
)
def test_what_is_legal_or_not_filled_in_yet_is_a_note(check, text, note):
    code, _, err = check("web.yaml", web=text)
    assert (code, note in err) == (0, True), err


def test_a_template_in_a_config_map_is_left_alone(check):
    assert check("web.yaml", web=_in_config_map(POLICY + "{{- if .Values.x }}\nceiling: never\n{{- end }}\n"))[0] == 0


def test_a_second_document_has_its_own_lines(check):
    _, _, err = check("web.yaml", web=f"{POLICY}---\n{POLICY}ceiling: never\n")
    assert "web.yaml:6:10: error: SpreadPolicy: ceiling" in err
