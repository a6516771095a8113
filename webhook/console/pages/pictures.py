"""Draw numbers of pods as SVG shapes without text, as wide as their table cell.

The style sheet colours the shapes by class, so pages need no inline style.
"""

from markupsafe import Markup

_COLUMN_HEIGHT = 24


def bar(pods: int, *, full: int, least: int | None = None, limit: int | None = None, others: int = 0) -> Markup:
    """Draw a horizontal bar. Marks the excess over the limit, the limit and the global minimum.

    Args:
        pods: The number of pods.
        full: The number of pods that fills the width.
        least: The global minimum.
        limit: The most pods maxSkew allows.
        others: The part of ``pods`` from other workloads, drawn lighter behind the workload's own.
    """
    whole = max(full, 1)
    within = pods if limit is None else min(pods, limit)
    own = min(within, pods - others)
    shapes = [_rect("pods", 0, own / whole * 100)]
    if own < within:
        shapes.append(_rect("others", own / whole * 100, (within - own) / whole * 100))
    if within < pods:
        shapes.append(_rect("above", within / whole * 100, (pods - within) / whole * 100))
    for name, at in (("least", least), ("limit", limit)):
        if at is not None:
            x = f"{min(at / whole, 1) * 100:.4g}"
            shapes.append(f'<line class="{name}" x1="{x}" x2="{x}" y1="0" y2="10"/>')
    inner = "".join(shapes)
    return Markup(  # noqa: S704 made of numbers and words of ours
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f"{inner}</svg>"
    )


def column(pods: int, *, full: int, high: bool) -> Markup:
    """Draw a small upright bar for a number of pods."""
    height = round(_COLUMN_HEIGHT * pods / max(full, 1), 1)
    shown = max(height, 1.0)  # a line at the ground for none
    name = "above" if high else "pods"
    shape = f'<rect class="{name}" x="0" y="{_COLUMN_HEIGHT - shown:g}" width="8" height="{shown:g}"/>'
    return Markup(  # noqa: S704 made of numbers and words of ours
        f'<svg class="column" viewBox="0 0 8 {_COLUMN_HEIGHT}" aria-hidden="true" focusable="false">{shape}</svg>'
    )


def _rect(name: str, x: float, width: float) -> str:
    return f'<rect class="{name}" x="{x:.4g}" y="0" width="{width:.4g}" height="10"/>'
