"""Records what Kubernetes' releases and two operators take of the kinds that the chart makes.

``PYTHONPATH=tests python -m chart.recorded`` has Go download the releases as modules (170 MB, so by hand) and writes
tests/testdata/chart-schemas.json: names of fields, their types, and what is required.
"""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import yaml

RECORDED = Path(__file__).parents[1] / "testdata" / "chart-schemas.json"
RELEASES = ("1.31.0", "1.32.0", "1.33.0", "1.34.0", "1.35.0", "1.36.0", "1.37.0")
KINDS = (
    "v1 ConfigMap",
    "v1 Pod",
    "v1 Secret",
    "v1 Service",
    "v1 ServiceAccount",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "apps/v1 Deployment",
    "autoscaling/v2 HorizontalPodAutoscaler",
    "batch/v1 Job",
    "coordination.k8s.io/v1 Lease",
    "networking.k8s.io/v1 NetworkPolicy",
    "policy/v1 PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
    "rbac.authorization.k8s.io/v1 Role",
    "rbac.authorization.k8s.io/v1 RoleBinding",
)
# Module, version, and the files of the definitions in it.
OPERATORS = (
    (
        "github.com/prometheus-operator/prometheus-operator",
        "v0.85.0",
        r"/example/prometheus-operator-crd/monitoring\.coreos\.com_(prometheusrules|servicemonitors)\.yaml$",
    ),
    ("github.com/cert-manager/cert-manager", "v1.19.1", r"/deploy/crds/cert-manager\.io_(certificates|issuers)\.yaml$"),
)
# Values that JSON writes in more than one type, by what the definitions of Kubernetes call them.
_MANY = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
}
_KEPT = ("type", "required", "enum")


def strict(part):
    """A part of a schema that also refuses fields which it does not name; references stay."""
    if "$ref" in part:
        return {"$ref": part["$ref"].replace("definitions/", "$defs/")}
    if part.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    made = {name: part[name] for name in _KEPT if name in part}
    if "properties" in part:
        made["properties"] = {name: strict(inner) for name, inner in part["properties"].items()}
        made["additionalProperties"] = bool(part.get("x-kubernetes-preserve-unknown-fields"))
    if "items" in part:
        made["items"] = strict(part["items"])
    if isinstance(part.get("additionalProperties"), dict):
        made["additionalProperties"] = strict(part["additionalProperties"])
    return made


def _definitions(swagger):
    """The definitions that KINDS need, and each kind's own."""
    known = {name: _MANY.get(name) or strict(part) for name, part in swagger["definitions"].items()}
    roots = {
        f"{each['group']}/{each['version']} {each['kind']}".removeprefix("/"): name
        for name, part in swagger["definitions"].items()
        for each in part.get("x-kubernetes-group-version-kind", ())
    }
    kinds = {kind: roots[kind] for kind in KINDS}
    needed, waiting = {}, [*kinds.values()]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = known[name]
            waiting += re.findall(r'#/\$defs/([^"]+)"', json.dumps(known[name]))
    return kinds, needed


def _source(module, version):
    download = ["go", "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(download, cwd="/", check=True, capture_output=True, text=True)  # noqa: S603  of names written above
    return zipfile.ZipFile(json.loads(done.stdout)["Zip"])


def _operators():
    for module, version, pattern in OPERATORS:
        source = _source(module, version)
        for file in (each for each in source.namelist() if re.search(pattern, each)):
            spec = yaml.safe_load(source.read(file))["spec"]
            (served,) = spec["versions"]
            schema = strict(served["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            yield f"{spec['group']}/{served['name']} {spec['names']['kind']}", schema


def main():
    definitions = {}  # name -> [{"releases": [...], "schema": ...}], as most stay the same from release to release
    for release in RELEASES:
        print(release, file=sys.stderr)  # noqa: T201  it takes a minute
        source = _source("k8s.io/kubernetes", f"v{release}")
        swagger = source.read(f"k8s.io/kubernetes@v{release}/api/openapi-spec/swagger.json")
        kinds, needed = _definitions(json.loads(swagger))
        for name, schema in needed.items():
            versions = definitions.setdefault(name, [])
            if not versions or versions[-1]["schema"] != schema:
                versions.append({"releases": [], "schema": schema})
            versions[-1]["releases"].append(release)
    lines = [f" {json.dumps(name)}: {json.dumps(definitions[name])}" for name in sorted(definitions)]
    others = [f" {json.dumps(name)}: {json.dumps(schema)}" for name, schema in sorted(_operators())]
    RECORDED.write_text(
        f'{{"releases": {json.dumps(RELEASES)},\n"kinds": {json.dumps(kinds)},\n"definitions": {{\n'
        + ",\n".join(lines)
        + '\n},\n"operators": {\n'
        + ",\n".join(others)
        + "\n}}\n"
    )


if __name__ == "__main__":
    main()
