import yaml

from webhook.cli.commands.check.add_defaults import amend
from webhook.cli.frame import Frame
from webhook.core.api.types import SpreadConstraint
from webhook.core.index.cluster_index import ClusterIndex
from webhook.core.policy.defaults import DefaultConstraint, Defaults
from webhook.core.policy.policy import Policy
from webhook.core.workloads.custom_kinds import EmbeddedKind
from webhook.manifests.reading.documents import InputFault
from webhook.manifests.reading.files import File

SOFT = SpreadConstraint(max_skew=1, topology_key="example.com/rack", when_unsatisfiable="ScheduleAnyway")
POOL = EmbeddedKind(
    api_version="example.com/v1",
    kind="Pool",
    template_path="spec.parts[*].template",
    selector_path="spec.selector",
)
POLICY = Policy(
    defaults=Defaults(default_constraints=(DefaultConstraint(constraint=SOFT),), owners=(("example.com/v1", "Pool"),)),
    workloads=(POOL,),
)
SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: []
"""


def amended(*texts):
    frame = Frame(policy=POLICY, today="2026-11-21")
    files = [each if isinstance(each, InputFault) else File(f"{n}.yaml", each.encode()) for n, each in enumerate(texts)]
    return amend(files, frame, ClusterIndex())


def spec_of(text, *path):
    value = yaml.safe_load(text)
    for step in path:
        value = value[step]
    return value


def test_a_file_that_could_not_be_read_is_a_fault():
    fault = InputFault(file="x", message="no file matches")
    assert amended(fault, SET).faults == (fault,)


def test_objects_around_the_workloads_may_be_anything():
    odd = "---\napiVersion: v1\nkind: Service\nspec: 7\n---\napiVersion: v1\nkind: ConfigMap\n"
    odd += "---\napiVersion: v1\nkind: Service\nspec: {selector: {app: db}}\n"
    [file] = amended(SET + odd).files
    assert [each.names for each in file.additions] == ["rack[0]"]


def test_a_template_in_a_list():
    pool = "apiVersion: example.com/v1\nkind: Pool\nmetadata: {name: p}\nspec:\n  selector: {matchLabels: {app: p}}\n"
    pool += "  parts:\n  - template:\n      metadata: {labels: {app: p}}\n      spec:\n        containers: []\n"
    [file] = amended(pool).files
    [constraint] = spec_of(file.after, "spec", "parts", 0, "template", "spec", "topologySpreadConstraints")
    assert constraint["labelSelector"] == {"matchLabels": {"app": "p"}}


def test_what_the_text_turns_out_not_to_take_is_refused_and_the_rest_is_not():
    odd = SET.replace("      containers: []\n", "      topologySpreadConstraints:\n        []\n      containers: []\n")
    amendment = amended(f"{SET}---\n{odd}")
    assert [str(each) for each in amendment.refused] == [
        "0.yaml:20:5: StatefulSet db: rack[0] not added: the edited file would differ in more than the constraints"
    ]
    [file] = amendment.files
    assert [each.number for each in file.additions] == [0]
    assert file.after.endswith(odd.encode())
