"""Describe the domains of a constraint's topologyKey for a hover text in the editor."""

from collections import Counter

from webhook.cli.commands.lsp.open_file import workloads
from webhook.cli.frame import Frame
from webhook.core.scan.actual_skew import skews_of_templates
from webhook.core.scan.scan_context import scan_context
from webhook.core.scan.scan_results import ActualSkew
from webhook.core.text import one_line, plural
from webhook.core.workloads.workload import Workload
from webhook.manifests.reading.files import File
from webhook.manifests.reading.manifest import FieldPosition

_MOST_ROWS = 12  # above, the domains are usually hosts
_NO_CLUSTER = "no nodes known: start `evenspread lsp` with --snapshot FILE or --cluster"


def topology_at(file: File, line: int, character: int, frame: Frame) -> tuple[FieldPosition, str] | None:
    """Return the topologyKey at a line and character, and its domains as Markdown.

    Line and character count from 0. None if the position is not in a topologyKey.
    """
    for manifest, workload in workloads(file, frame):
        for template in workload.templates:
            for number, constraint in enumerate(template.pod.pod_spec.constraints):
                path = f"{template.constraints_path}[{number}]"
                place = manifest.locate(f"{path}.topologyKey")
                start = place.column - 1
                if constraint.topology_key and place.line == line + 1 and start <= character <= start + place.width:
                    return place, _domains(constraint.topology_key, workload, path, frame)
    return None


def _domains(key: str, workload: Workload, path: str, frame: Frame) -> str:
    name = f"`{one_line(key)}`"
    if frame.index is None or frame.index.nodes.view().size == 0:
        return f"{name}: {_NO_CLUSTER}"
    column = frame.index.nodes.view().column(key)
    nodes = Counter(column.values[number] for number in column.domain_of if number >= 0)
    head = f"{name}: {plural(len(nodes), 'domain')}, {plural(nodes.total(), 'node')}"
    within = scan_context(frame.context(workload.meta.namespace or frame.namespace))
    skews = (skew for _, _, of_template in skews_of_templates(workload, within, stand_in=True) for skew in of_template)
    skew = next((skew for skew in skews if skew.path == path), None)
    return "\n\n".join(filter(None, (head, _table(nodes, skew), _summary(skew))))


def _table(nodes: Counter[str], skew: ActualSkew | None) -> str:
    if not 0 < len(nodes) <= _MOST_ROWS:
        return ""
    if skew is None:
        rows = [f"| {one_line(domain)} | {count:,} |" for domain, count in sorted(nodes.items())]
        return "\n".join(("| domain | nodes |", "|---|--:|", *rows))
    pods = {domain: f"{count:,}" for domain, count in skew.domains.items()}
    rows = [
        f"| {one_line(domain)} | {count:,} | {pods.get(domain, 'does not count')} |"
        for domain, count in sorted(nodes.items())
    ]
    return "\n".join(("| domain | nodes | matching pods |", "|---|--:|--:|", *rows))


def _summary(skew: ActualSkew | None) -> str:
    if skew is None or skew.skew is None:
        return ""
    return f"{plural(sum(skew.domains.values()), 'matching pod')}: skew {skew.skew:,}, maxSkew {skew.max_skew:,}"
