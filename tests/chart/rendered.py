"""The chart as Helm renders it, and its objects by kind."""

import functools
import json
from pathlib import Path

import helm_python
import yaml

CHART = Path(__file__).parents[2] / "charts" / "evenspread"
CA = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n"
ZERO = {}
INJECT = {"config": {"defaults": {"mode": "inject"}}}
# With what Helm would read from a cluster.
EXISTING = {"certificates": {"mode": "existingSecret", "caBundle": CA}}
CERT_MANAGER = {"certificates": {"mode": "certManager"}}


@functools.cache
def chart():
    return helm_python.Chart.load(CHART)


def files(values, name="evenspread", namespace="platform"):
    """Text by file, of those that render to something."""
    return _files(json.dumps(values), name, namespace)


@functools.cache
def _files(values, name, namespace):
    rendered = chart().render(json.loads(values), name=name, namespace=namespace)
    return {file.removeprefix("evenspread/templates/"): text for file, text in rendered.items() if text.strip()}


def objects(values, name="evenspread", namespace="platform"):
    """Every object that is installed, and test hooks."""
    found = files(values, name, namespace)
    texts = [text for file, text in found.items() if file != "NOTES.txt"]
    # As safe as SafeLoader, by libyaml, and ten times as fast.
    return [each for text in texts for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def one(kind, values, component="webhook", ending="", **settings):
    """The object of a kind that belongs to a role, or whose name ends so."""
    (found,) = [
        each
        for each in objects(values, **settings)
        if each["kind"] == kind
        and each["metadata"]["labels"]["app.kubernetes.io/component"] == component
        and each["metadata"]["name"].endswith(ending)
    ]
    return found


def names(values, **settings):
    """Kind and name of every object, sorted."""
    return sorted(f"{each['kind']}/{each['metadata']['name']}" for each in objects(values, **settings))


def refusal(values):
    """What Helm says of values that it does not take; empty if it takes them."""
    try:
        files(values)
    except helm_python.HelmError as error:
        return str(error)
    return ""
