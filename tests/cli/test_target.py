"""One object by its kind and name: how it is written, and where it is found."""

import pytest

from webhook.cli.exit_codes import CommandError, Exit
from webhook.cli.target import NamedObject, get_object, parse_object
from webhook.cluster.connection import ApiResponse
from webhook.cluster.errors import ClusterError
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.snapshot.open_file import load_snapshot

THING = EmbeddedKind(api_version="example.com/v1", kind="Thing", template_path="spec.template")
DEPLOYMENT = NamedObject(kind="Deployment", groups=("apps",), namespace="shop", name="web")
ROLLOUT = NamedObject(kind="Rollout", groups=("argoproj.io",), namespace="shop", name="web")


class FakeServer:
    """Answers by path; anything else is not there."""

    def __init__(self, **answers):
        self.answers = {path.replace("__", "/"): answer for path, answer in answers.items()}
        self.asked = []

    def send(self, method, path):
        assert method == "GET"
        self.asked.append(path)
        found = self.answers.get(path, (404, {"message": "not found"}))
        if isinstance(found, Exception):
            raise found
        return ApiResponse(status=found[0], content=found[1])


def server(answers):
    made = FakeServer()
    made.answers = answers
    return made


@pytest.mark.parametrize(
    ("text", "kind", "groups"),
    [
        ("pod/web", "Pod", ("",)),
        ("po/web", "Pod", ("",)),
        ("pods/web", "Pod", ("",)),
        ("Deployment/web", "Deployment", ("apps",)),
        ("deploy/web", "Deployment", ("apps",)),
        ("deployments.apps/web", "Deployment", ("apps",)),
        ("rs/web", "ReplicaSet", ("apps",)),
        ("sts/web", "StatefulSet", ("apps", "apps.kruise.io")),
        ("ds/web", "DaemonSet", ("apps", "apps.kruise.io")),
        ("job/web", "Job", ("batch", "batch.volcano.sh")),
        ("cj/web", "CronJob", ("batch",)),
        ("rc/web", "ReplicationController", ("",)),
        ("rollout/web", "Rollout", ("argoproj.io",)),
        ("thing/web", "Thing", ("example.com",)),
    ],
)
def test_names_as_kubectl_takes_them(text, kind, groups):
    assert parse_object(text, "shop", [THING]) == NamedObject(kind=kind, groups=groups, namespace="shop", name="web")


@pytest.mark.parametrize("text", ["web", "pod/", "/web", "secret/web", "pod/web/x", "thing/web", ""])
def test_what_is_no_name_of_a_workload(text):
    assert parse_object(text, "shop") is None


class TestInTheCluster:
    def test_a_built_in_kind(self):
        fake = server({"/apis/apps/v1/namespaces/shop/deployments/web": (200, {"spec": {}})})
        assert get_object(DEPLOYMENT, fake, "x") == {"spec": {}, "apiVersion": "apps/v1", "kind": "Deployment"}

    def test_a_core_kind(self):
        pod = NamedObject(kind="Pod", groups=("",), namespace="shop", name="a b")
        fake = server({"/api/v1/namespaces/shop/pods/a%20b": (200, {})})
        assert get_object(pod, fake, "x") == {"apiVersion": "v1", "kind": "Pod"}

    def test_a_custom_kind_by_its_preferred_version(self):
        resources = [{"kind": "Rollout", "name": "rollouts/scale"}, {"kind": "Rollout", "name": "rollouts"}]
        fake = server(
            {
                "/apis/argoproj.io": (200, {"preferredVersion": {"groupVersion": "argoproj.io/v1alpha1"}}),
                "/apis/argoproj.io/v1alpha1": (200, {"resources": resources}),
                "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web": (200, {"spec": 1}),
            }
        )
        assert get_object(ROLLOUT, fake, "x")["spec"] == 1

    def test_the_first_group_that_has_it(self):
        both = NamedObject(kind="Job", groups=("batch", "batch.volcano.sh"), namespace="shop", name="web")
        fake = server({})
        assert get_object(both, fake, "x") is None
        assert fake.asked == ["/apis/batch/v1/namespaces/shop/jobs/web", "/apis/batch.volcano.sh"]

    @pytest.mark.parametrize(
        "answers",
        [
            {},
            {"/apis/argoproj.io": (200, {"preferredVersion": 7})},
            {"/apis/argoproj.io": (200, {"preferredVersion": {"groupVersion": "argoproj.io/v1"}})},
            {
                "/apis/argoproj.io": (200, {"preferredVersion": {"groupVersion": "argoproj.io/v1"}}),
                "/apis/argoproj.io/v1": (200, {"resources": [{"kind": "Other", "name": "others"}]}),
            },
        ],
        ids=["no group", "no version", "no resources", "another kind"],
    )
    def test_a_kind_that_the_server_lacks(self, answers):
        assert get_object(ROLLOUT, server(answers), "x") is None

    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            ((403, {"message": "not yours"}), "cluster x: 403 not yours"),
            ((500, {}), "cluster x: 500 Internal Server Error"),
            ((520, {}), "cluster x: 520"),
            (ClusterError("no route"), "cluster x: no route"),
        ],
    )
    def test_a_server_that_refuses(self, answer, told):
        with pytest.raises(CommandError, match=told) as stopped:
            get_object(DEPLOYMENT, server({"/apis/apps/v1/namespaces/shop/deployments/web": answer}), "cluster x")
        assert stopped.value.code == Exit.CLUSTER


class TestInAFile:
    def test_the_object_of_that_group_namespace_and_name(self, tmp_path):
        file = tmp_path / "s.jsonl"
        lines = [
            '{"kind": "Snapshot"}',
            '{"apiVersion": "other/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"}}',
            '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "x", "name": "web"}}',
            '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}',
        ]
        file.write_text("\n".join(lines))
        found = load_snapshot(str(file), keep=DEPLOYMENT.is_in)
        assert [bytes(each.raw).decode() for each in found.kept] == [lines[3]]
        assert load_snapshot(str(file), keep=ROLLOUT.is_in).kept == ()
        assert load_snapshot(str(file)).kept == ()
