"""What `explain` says first: that kube-apiserver refuses the pod, so that no scheduler will ever see it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Raw, Struct

from webhook.cli.checking.frame import Frame
from webhook.cli.terminal import GREEN, RED, Paint
from webhook.core.apiserver.decoding import DecodeError
from webhook.core.rules.constraint.pods_refused import evaluate
from webhook.core.rules.frame.rule import Finding
from webhook.core.rules.frame.subject import Subject, place
from webhook.core.text import one_line
from webhook.core.workloads.reading import read_exactly, read_workload, stated_type
from webhook.core.workloads.refused_pods import refusals
from webhook.core.workloads.workload import Template, Workload

_WIDTH = 80


class Refused(Struct, frozen=True, kw_only=True):
    """One error of kube-apiserver about the pod, in its words.

    Shape: ``title`` says of whose pods it is; ``path`` is where the cause stands in the object that was written, and
    ``fix`` what to change there, where that is known.
    """

    title: str
    message: str
    path: str
    fix: str = ""


def refused(workload: Workload, template: Template, frame: Frame) -> tuple[Refused, ...]:
    """Why kube-apiserver refuses the next pod of a template; empty where it does not."""
    found = refusals(workload, template, frame.version)
    if not found:
        return ()
    subject = Subject(workload=workload, placed=place(workload), circumstances=frame.circumstances())
    fixes = {each.path: each.fix for each in evaluate(subject) if isinstance(each, Finding)}
    title = "no pod of this workload can be created"
    if workload.kind == "Pod":
        title = "this pod cannot be created"
    elif len(workload.templates) > 1:
        title = f"no pod of {one_line(template.path.rstrip('.'))} can be created"
    return tuple(
        Refused(title=title, message=each.error.text, path=each.path, fix=fixes.get(each.path, "")) for each in found
    )


def refused_of(raw: bytes | Raw | Mapping[str, object], frame: Frame) -> tuple[Refused, ...]:
    """The same of all templates of an object; of one that cannot be decoded nothing is said."""
    try:
        value, _ = read_exactly(raw, stated_type(raw))
        workload = read_workload(value, frame.policy.workloads)
    except DecodeError:
        return ()
    if workload is None:
        return ()
    return tuple(each for template in workload.templates for each in refused(workload, template, frame))


def render(found: Sequence[Refused], paint: Paint, *, exists: bool) -> Iterator[str]:
    """The lines that stand above the rest of a page.

    Shape: ``exists`` says that the rest is about another pod, which is there.
    """
    for each in found:
        text = f"{each.title}: {one_line(each.message, 1024)}"
        for line in textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False):
            yield paint(line, RED) + "\n"
        yield f"  at {one_line(each.path)}\n"
        if each.fix:
            yield f"  {paint('fix', GREEN)}: {one_line(each.fix, 500)}\n"
    if found:
        yield ("" if exists else "below: what the scheduler would say of it, once it can be created\n") + "\n"
