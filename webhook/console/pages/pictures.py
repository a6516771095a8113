"""Counts of pods as SVG: shapes without text, which stretch with the table that they stand in.

Colours come from the style sheet by class, so that a page needs no inline style.
"""

from markupsafe import Markup

_COLUMN_HEIGHT = 24


def bar(pods: int, *, full: int, least: int | None = None, limit: int | None = None, others: int = 0) -> Markup:
    """A bar from left to right; what is above the limit is marked, and so are the limit and the global minimum.

    Args:
        pods: How many there are.
        full: The number of pods that fills the width.
        least: The global minimum.
        limit: The most that maxSkew allows.
        others: Those of ``pods`` that belong to other workloads; drawn lighter, behind the workload's own.
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
    """A small upright bar, beside its number.

    Unit: pods.
    """
    height = round(_COLUMN_HEIGHT * pods / max(full, 1), 1)
    shown = max(height, 1.0)  # a line at the ground for none
    name = "above" if high else "pods"
    shape = f'<rect class="{name}" x="0" y="{_COLUMN_HEIGHT - shown:g}" width="8" height="{shown:g}"/>'
    return Markup(  # noqa: S704 made of numbers and words of ours
        f'<svg class="column" viewBox="0 0 8 {_COLUMN_HEIGHT}" aria-hidden="true" focusable="false">{shape}</svg>'
    )


def _rect(name: str, x: float, width: float) -> str:
    return f'<rect class="{name}" x="{x:.4g}" y="0" width="{width:.4g}" height="10"/>'
