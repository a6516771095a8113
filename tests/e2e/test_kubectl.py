"""What kubectl prints of our answers, to the last character."""

import pytest
from e2e.objects import HOST, clean, constraint, pod, workload
from e2e.registration import registered

ZERO = "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"
OTHERS = constraint(labelSelector={"matchLabels": {"app": "web-v2"}})


@pytest.fixture(name="hooked")
def _hooked(plane, namespace, strict):
    with registered(plane, namespace, strict.server):
        yield namespace


def refusal(namespace, text):
    start = 'Error from server (Forbidden): error when creating "STDIN": admission webhook "validate.evenspread.io"'
    return f"{start} denied the request: {text.format(namespace=namespace, zero=ZERO)}"


@pytest.mark.parametrize(
    ("made", "err"),
    [
        pytest.param(
            workload("Rollout", "web", constraint(maxSkew=0)),
            """\
Rollout {namespace}/web: {zero}
  1 max-skew  spec.template.spec.topologySpreadConstraints[0].maxSkew
    Invalid value: 0: must be greater than zero
    fix: maxSkew: 1
  check before pushing: kubectl evenspread check -f FILE
""",
            id="one problem",
        ),
        pytest.param(
            workload(
                "Rollout",
                "web",
                constraint(maxSkew=0),
                constraint(topologyKey=HOST, minDomains=3, whenUnsatisfiable="ScheduleAnyway"),
            ),
            """\
Rollout {namespace}/web: {zero} (1 of 2 problems)
  1 max-skew  spec.template.spec.topologySpreadConstraints[0].maxSkew
    Invalid value: 0: must be greater than zero
    fix: maxSkew: 1
  2 min-domains  spec.template.spec.topologySpreadConstraints[1].minDomains
    Invalid value: 3: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway
    fix: remove minDomains
  check before pushing: kubectl evenspread check -f FILE
""",
            id="two problems",
        ),
    ],
)
def test_a_denial_is_read_as(kubectl, hooked, made, err):
    ran = kubectl("-n", hooked, "create", "-f", "-", stdin=made)

    assert ran == (1, "", refusal(hooked, err))


@pytest.mark.parametrize(
    ("made", "out", "err"),
    [
        pytest.param(clean("Deployment"), "deployment.apps/web created\n", "", id="nothing to say"),
        pytest.param(
            workload("Deployment", "web", OTHERS),
            "deployment.apps/web created\n",
            "Warning: evenspread/selector-not-self: zone[0] counts app=web-v2 but the pods have app=web; use app=web\n",
            id="one warning",
        ),
        pytest.param(
            pod("web", OTHERS),
            "pod/web created\n",
            "Warning: evenspread/selector-not-self: zone[0] counts app=web-v2 but this pod has app=web,"
            " so it does not spread it; use app=web\n",
            id="a pod",
        ),
        pytest.param(
            workload("Rollout", "web", constraint(labelSelector=None)),
            "rollout.argoproj.io/web created\n",
            "Warning: evenspread/selector-null: zone[0] has no labelSelector, so it counts no pods; use app=web\n",
            id="what the API server says of its own kinds only",
        ),
        pytest.param(
            workload("Deployment", "web", constraint(labelSelector=None)),
            "deployment.apps/web created\n",
            "Warning: spec.template.spec.topologySpreadConstraints[0].labelSelector:"
            " a null labelSelector results in matching no pod\n",
            id="what the API server says itself is not said again",
        ),
        pytest.param(
            workload(
                "Deployment",
                "web",
                OTHERS,
                constraint(topologyKey="topology.kubernetes.io/hostname"),
                constraint(topologyKey=HOST, matchLabelKeys=["controller-revision-hash"], labelSelector={}),
            ),
            "deployment.apps/web created\n",
            "Warning: evenspread/selector-empty: hostname[2]: labelSelector {} counts no existing pod"
            " (Kubernetes 1.37); use app=web\n"
            "Warning: evenspread/selector-not-self: zone[0] counts app=web-v2 but the pods have app=web;"
            " use app=web\n"
            "Warning: evenspread/match-label-key-wrong-kind: hostname[2]:"
            " Deployment pods never have controller-revision-hash\n"
            "Warning: evenspread: 1 more finding; to list all: kubectl evenspread check --cluster -f FILE\n",
            id="more than three",
        ),
    ],
)
def test_a_warning_is_read_as(kubectl, hooked, made, out, err):
    ran = kubectl("-n", hooked, "create", "-f", "-", stdin=made)

    assert ran == (0, out, err)


def test_the_pods_of_a_deployment_warn_nobody_and_its_owner_is_warned_once(kubectl, hooked):
    kubectl("-n", hooked, "create", "-f", "-", stdin=workload("Deployment", "web", OTHERS))

    for arguments in (
        ["annotate", "deployment/web", "note=x"],
        ["scale", "deployment/web", "--replicas=3"],
        ["rollout", "restart", "deployment/web"],
    ):
        ran = kubectl("-n", hooked, *arguments)
        assert (ran.code, ran.err) == (0, "")


def test_a_pod_that_is_denied_for_its_owner_is_never_seen(plane, kubectl, namespace, denying):
    """The Deployment came before the webhook: its ReplicaSet goes on making pods, and nothing speaks of failure."""
    kubectl("-n", namespace, "create", "-f", "-", stdin=workload("Deployment", "web", OTHERS))
    with registered(plane, namespace, denying.server):
        kubectl("-n", namespace, "delete", "pods", "--all", "--now")
        ran = kubectl("-n", namespace, "rollout", "status", "deployment/web", "--timeout=60s")
        events = kubectl("-n", namespace, "get", "events", "-o", "name", "--field-selector", "reason=FailedCreate")

    assert ran.out.splitlines()[-1:] == ['deployment "web" successfully rolled out']
    assert (events.code, events.out) == (0, "")
