"""The chart's alerts as Prometheus evaluates them: each fires when it should, and is silent one step away."""

import json
import shutil
import subprocess

import pytest
from chart.rendered import CERT_MANAGER, EXISTING, ZERO
from chart.test_monitoring import rules

HOURS = 3
FAIL = {"webhook": {"failurePolicy": "Fail"}}
EVERY = {**FAIL, "admission": {"static": "policies"}}
WEBHOOK = 'namespace="platform",job="evenspread-webhook"'
CONTROLLER = 'namespace="platform",job="evenspread-controller"'
CAPPED = 'exported_namespace="shop",name="cache",topology_key="topology.kubernetes.io/zone"'
WAITING = 'exported_namespace="shop",kind="Deployment",name="web"'
OURS = 'name="validate.evenspread.io"'
REQUESTS = ('evenspread_admission_requests_total{%,route="validate"}', "0+10x{}")
# Series that fire, and such that do not; % stands for the labels of the webhook's targets. Values: promtool's notation,
# one a minute, {} for how many. Its clock begins in 1970.
ALERTS = {
    "EvenspreadDown": ([("up{%}", "0x{}")], [("up{%}", "1x{}")]),
    "EvenspreadNotAsked": (
        [(f"apiserver_admission_webhook_fail_open_count{{{OURS}}}", "0+1x{}")],
        [(f"apiserver_admission_webhook_fail_open_count{{{OURS}}}", "7x{}")],
    ),
    "EvenspreadRefusesUnasked": (
        [(f'apiserver_admission_webhook_rejection_count{{{OURS},error_type="calling_webhook_error"}}', "0+1x{}")],
        [(f'apiserver_admission_webhook_rejection_count{{{OURS},error_type="no_error"}}', "0+1x{}")],
    ),
    "EvenspreadSlow": (
        [
            ('evenspread_admission_duration_seconds_bucket{%,route="validate",le="1.0"}', "0x{}"),
            ('evenspread_admission_duration_seconds_bucket{%,route="validate",le="3.0"}', "0+60x{}"),
            ('evenspread_admission_duration_seconds_bucket{%,route="validate",le="+Inf"}', "0+60x{}"),
        ],
        [
            ('evenspread_admission_duration_seconds_bucket{%,route="validate",le="1.0"}', "0+60x{}"),
            ('evenspread_admission_duration_seconds_bucket{%,route="validate",le="+Inf"}', "0+60x{}"),
        ],
    ),
    "EvenspreadTooBusy": (
        [('evenspread_admission_refusals_total{%,status="429"}', "0+1x{}")],
        [('evenspread_admission_refusals_total{%,status="400"}', "0+1x{}")],
    ),
    "EvenspreadFaulty": (
        [('evenspread_rule_results_total{%,result="error"}', "0+1x{}")],
        [
            ('evenspread_rule_results_total{%,result="fail"}', "0+1x{}"),
            ("evenspread_admission_errors_total{%}", "1x{}"),
        ],
    ),
    "EvenspreadPolicyRefused": ([("evenspread_config_valid{%}", "0x{}")], [("evenspread_config_valid{%}", "1x{}")]),
    "EvenspreadCacheStale": (
        [('evenspread_cluster_age_seconds{%,resource="pods"}', "61x{}")],
        [('evenspread_cluster_age_seconds{%,resource="pods"}', "59x{}")],
    ),
    "EvenspreadObjectsLeftOut": (
        [('evenspread_cluster_left_out_objects{%,resource="pods"}', "1x{}")],
        [('evenspread_cluster_left_out_objects{%,resource="pods"}', "0x{}")],
    ),
    "EvenspreadNotEvaluated": (
        [('evenspread_rule_results_total{%,rule="x",result="not-evaluated"}', "0+2x{}"), REQUESTS],
        [('evenspread_rule_results_total{%,rule="x",result="not-evaluated"}', "0+1x{}"), REQUESTS],
    ),
    "EvenspreadCertificateEnds": (
        [("evenspread_certificate_expiry_timestamp_seconds{%}", "160000x{}")],
        [("evenspread_certificate_expiry_timestamp_seconds{%}", "170000x{}")],
    ),
    "EvenspreadCAEnds": (
        [("evenspread_ca_expiry_timestamp_seconds{%}", "7890000x{}")],
        [("evenspread_ca_expiry_timestamp_seconds{%}", "7900000x{}")],
    ),
    "EvenspreadNoController": (
        [(f"evenspread_leader{{{CONTROLLER}}}", "0x{}")],
        [(f"evenspread_leader{{{CONTROLLER}}}", "1x{}")],
    ),
    "EvenspreadNotTrusted": (
        [(f"evenspread_ca_bundle_valid{{{CONTROLLER}}}", "0x{}")],
        [(f"evenspread_ca_bundle_valid{{{CONTROLLER}}}", "1x{}")],
    ),
    "EvenspreadPoliciesDiffer": (
        [(f"evenspread_admission_policies_valid{{{CONTROLLER}}}", "0x{}")],
        [(f"evenspread_admission_policies_valid{{{CONTROLLER}}}", "1x{}")],
    ),
    # The interval is five minutes: three of them, and a quarter of an hour.
    "EvenspreadScanLate": (
        [(f"evenspread_scan_last_success_timestamp_seconds{{{CONTROLLER}}}", "8000x{}")],
        [(f"evenspread_scan_last_success_timestamp_seconds{{{CONTROLLER}}}", "9100x{}")],
    ),
    "EvenspreadNoScan": (
        [(f"evenspread_leader{{{CONTROLLER}}}", "1x{}")],
        [(f"evenspread_scan_last_success_timestamp_seconds{{{CONTROLLER}}}", "0x{}")],
    ),
    "EvenspreadScanDiffers": (
        [(f"evenspread_scan_differences_total{{{CONTROLLER}}}", "1x{}")],
        [(f"evenspread_scan_differences_total{{{CONTROLLER}}}", "0x{}")],
    ),
    "EvenspreadReportsNotWritten": (
        [(f'evenspread_report_writes_total{{{CONTROLLER},outcome="failed"}}', "0+1x{}")],
        [(f'evenspread_report_writes_total{{{CONTROLLER},outcome="refused"}}', "0+1x{}")],
    ),
    "EvenspreadReportsRefused": (
        [
            (f'evenspread_report_writes_total{{{CONTROLLER},outcome="refused"}}', "0+1x{}"),
            (f'evenspread_report_writes_total{{{CONTROLLER},outcome="written"}}', "7x{}"),
        ],
        [
            (f'evenspread_report_writes_total{{{CONTROLLER},outcome="refused"}}', "0+1x{}"),
            (f'evenspread_report_writes_total{{{CONTROLLER},outcome="removed"}}', "0+1x{}"),
        ],
    ),
    "EvenspreadGroupCapExceeded": (
        [(f"evenspread_group_cap_exceeded_pods{{{CONTROLLER},{CAPPED}}}", "1x{}")],
        [(f"evenspread_group_cap_exceeded_pods{{{CONTROLLER},{CAPPED}}}", "0x{}")],
    ),
    "EvenspreadPodsPending": (
        [(f"evenspread_spread_pending_pods{{{CONTROLLER},{WAITING}}}", "1x{}")],
        [
            (f"evenspread_spread_pending_pods{{{CONTROLLER},{WAITING}}}", "0x{}"),
            (f'evenspread_pending_pods{{{CONTROLLER},cause="spread"}}', "9x{}"),
        ],
    ),
    "EvenspreadLogDropped": (
        [("evenspread_log_lines_dropped_total{%}", "0+1x{}")],
        [("evenspread_log_lines_dropped_total{%}", "9x{}")],
    ),
}


# Alerts that one replica or the controller alone causes, with the other well. No other job of the namespace does.
OF_BOTH = {
    "EvenspreadCacheStale": ("evenspread_cluster_age_seconds", "61x{}"),
    "EvenspreadObjectsLeftOut": ("evenspread_cluster_left_out_objects", "1x{}"),
}
ANOTHER = 'namespace="platform",job="another"'


@pytest.fixture(name="promtool", scope="module")
def _promtool():
    program = shutil.which("promtool")
    if program is None:
        pytest.fail("promtool is not in PATH; Debian's package prometheus has it")

    def run(*arguments):
        ran = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return run


def written(folder, values):
    file = folder / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "evenspread", "rules": [*rules(values).values()]}]}))
    return file


@pytest.mark.parametrize(
    "values", [ZERO, EVERY, CERT_MANAGER, EXISTING], ids=["zero", "every", "cert-manager", "yours"]
)
def test_prometheus_takes_the_rules(promtool, tmp_path, values):
    found = promtool("check", "rules", "--lint=all", "--lint-fatal", written(tmp_path, values))
    assert f"SUCCESS: {len(rules(values))} rules found" in found


def case(alert, series, count):
    minutes = HOURS * 60
    given = [{"series": name.replace("%", WEBHOOK), "values": values.format(minutes)} for name, values in series]
    asked = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    expected = [{"labels": "{}", "value": count}]
    told = {"expr": asked, "eval_time": f"{HOURS}h", "exp_samples": expected}
    return {"interval": "1m", "input_series": given, "promql_expr_test": [told]}


def test_each_alert_fires_when_it_should_and_not_one_step_before(promtool, tmp_path):
    file = written(tmp_path, EVERY)
    assert ALERTS.keys() == rules(EVERY).keys()
    cases = [case(alert, series, 1 - at) for alert, both in ALERTS.items() for at, series in enumerate(both)]
    tests = {"rule_files": [str(file)], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "tests.json").write_text(json.dumps(tests))
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.json")


def test_a_copy_of_the_cluster_is_watched_in_replicas_and_in_the_controller(promtool, tmp_path):
    file = written(tmp_path, FAIL)
    cases = []
    for alert, (name, bad) in OF_BOTH.items():
        for labels, count in ((WEBHOOK, 1), (CONTROLLER, 1), (ANOTHER, 0)):
            well = [(f'{name}{{{each},resource="nodes"}}', "0x{}") for each in (WEBHOOK, CONTROLLER)]
            cases.append(case(alert, [*well, (f'{name}{{{labels},resource="pods"}}', bad)], count))
    tests = {"rule_files": [str(file)], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "tests.json").write_text(json.dumps(tests))
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.json")
