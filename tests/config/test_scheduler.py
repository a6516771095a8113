import os
import textwrap

import pytest

from webhook.config import ConfigError, load_policy, reloaded
from webhook.config.scheduler import CONFIGURABLE_FILTERS, read_profiles
from webhook.core.api.types import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    SpreadConstraint,
)
from webhook.core.scheduler.profile import SchedulerProfile

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
POLICY = (
    "apiVersion: config.evenspread.io/v1alpha1\nkind: SpreadPolicy\n"
    "schedulerConfiguration: scheduler.yaml\nschedulerNames: [default-scheduler, batch]\n"
)
ARGS = "profiles[0].pluginConfig[0].args"
NO_INTEGER = (
    "decoding args for plugin PodTopologySpread: json: cannot unmarshal string into Go struct field"
    " TopologySpreadConstraint.defaultConstraints.maxSkew of type int32"
)


def profiles(body):
    return read_profiles(HEAD + textwrap.dedent(body), file="s")


def test_a_profile_arrives_whole():
    assert profiles("""\
        leaderElection: {leaderElect: true}
        profiles:
        - schedulerName: batch
          plugins: {score: {disabled: [{name: ImageLocality}]}}
          pluginConfig:
          - name: PodTopologySpread
            args:
              defaultingType: List
              defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
          - name: NodeAffinity
            args:
              addedAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]
          - {name: NodeResourcesFit, args: {ignoredResources: [example.com/a], ignoredResourceGroups: [b.example.com]}}
          - {name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}
        - {}
        """) == (
        SchedulerProfile(
            name="batch",
            defaulting_type="List",
            default_constraints=(
                SpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway"),
            ),
            added_affinity=NodeAffinity(
                required=NodeSelector(
                    node_selector_terms=(
                        NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="pool", operator="Exists"),)),
                    )
                )
            ),
            ignored_resources=("example.com/a",),
            ignored_resource_groups=("b.example.com",),
        ),
        SchedulerProfile(),
    )


@pytest.mark.parametrize(
    ("plugins", "disabled"),
    [
        pytest.param("{}", (), id="nothing said"),
        pytest.param("{filter: {disabled: [{name: NodePorts}]}}", ("NodePorts",), id="one filter"),
        pytest.param("{multiPoint: {disabled: [{name: NodePorts}]}}", ("NodePorts",), id="one plugin everywhere"),
        pytest.param(
            "{multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 9}]}}",
            (),
            id="a plugin configured anew",
        ),
        pytest.param(
            "{filter: {disabled: [{name: '*'}], enabled: [{name: NodeName}]}}",
            tuple(name for name in CONFIGURABLE_FILTERS if name != "NodeName"),
            id="all filters but one",
        ),
        pytest.param(
            "{multiPoint: {disabled: [{name: '*'}]}, filter: {enabled: [{name: NodeName}, {name: Other}]}}",
            tuple(name for name in CONFIGURABLE_FILTERS if name != "NodeName"),
            id="all plugins but one filter",
        ),
        pytest.param("{score: {disabled: [{name: '*'}]}}", (), id="scores are no filters"),
    ],
)
def test_the_filters_that_a_profile_does_not_run(plugins, disabled):
    assert profiles(f"profiles: [{{plugins: {plugins}}}]")[0].disabled_filters == disabled


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: Policy\n",
            [
                's:1:13: apiVersion: must be kubescheduler.config.k8s.io/v1, is "kubescheduler.config.k8s.io/v1beta3"',
                's:2:7: kind: must be KubeSchedulerConfiguration, is "Policy"',
            ],
            id="another version and kind",
        ),
        pytest.param(
            "{}",
            [
                "s:1:1: apiVersion: must be kubescheduler.config.k8s.io/v1, is null",
                "s:1:1: kind: must be KubeSchedulerConfiguration, is null",
            ],
            id="nothing said",
        ),
        pytest.param("- a", ["s:1:1: expected object, got array"], id="a list"),
        pytest.param(
            HEAD + "profiles: {}",
            ["s:3:11: profiles: expected array, got object"],
            id="profiles that are no list",
        ),
        pytest.param(
            HEAD + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [1]}},"
            " {name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: x}]}}]}]",
            [
                "s:3:79: profiles[0].pluginConfig[0].args.ignoredResources[0]: expected str, got int",
                f"s:3:117: profiles[0].pluginConfig[1].args: decoding .profiles[0].pluginConfig[1]: {NO_INTEGER}",
            ],
            id="arguments of the wrong types",
        ),
        pytest.param(
            HEAD + "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List,"
            " defaultConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}}]}]",
            [f"s:3:114: {ARGS}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
            id="arguments that kube-scheduler refuses",
        ),
        pytest.param("a: [", ["s:2:1: not YAML: did not find expected node content"], id="no YAML"),
    ],
)
def test_a_scheduler_configuration_that_cannot_be_used(text, lines):
    with pytest.raises(ConfigError) as raised:
        read_profiles(text, file="s")
    assert raised.value.render().split("\n") == lines


def settled(path, text):
    path.write_text(text)
    os.utime(path, (1, len(text)))
    return path


def test_the_policy_carries_what_the_file_beside_it_says(tmp_path):
    settled(tmp_path / "scheduler.yaml", HEAD + "profiles: [{schedulerName: default-scheduler}]")
    loaded = load_policy(settled(tmp_path / "policy.yaml", POLICY))
    assert loaded.policy.scheduler_profiles == (SchedulerProfile(),)
    assert [line.removeprefix(f"warning: {tmp_path}/policy.yaml:") for line in loaded.rendered_warnings()] == [
        "4:37: schedulerNames[1]: batch has no profile in schedulerConfiguration",
    ]


def test_faults_of_the_other_file_are_shown_with_both_places(tmp_path):
    scheduler = settled(tmp_path / "scheduler.yaml", HEAD + "profiles: 1")
    path = settled(tmp_path / "policy.yaml", POLICY + "zzz: 1")
    with pytest.raises(ConfigError) as raised:
        load_policy(path)
    assert raised.value.render().split("\n") == [
        f"{path}:3:25: schedulerConfiguration: {scheduler}:3:11: profiles: expected array, got int",
        f"{path}:5:1: zzz: unknown field",
    ]


def test_a_change_of_the_other_file_is_a_change(tmp_path):
    scheduler = settled(tmp_path / "scheduler.yaml", HEAD)
    loaded = load_policy(settled(tmp_path / "policy.yaml", POLICY))
    settled(scheduler, HEAD + "profiles: [{}]")
    changed = reloaded(loaded)
    assert changed.policy.scheduler_profiles == (SchedulerProfile(),)
    scheduler.unlink()
    kept = reloaded(changed)
    assert kept.policy is changed.policy
    assert str(kept.error).endswith("/scheduler.yaml: cannot be read: No such file or directory")
    assert reloaded(kept) is kept
    settled(scheduler, HEAD)
    assert reloaded(kept).policy.scheduler_profiles == ()
