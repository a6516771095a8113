"""A figure of a bench with its goal: a row of the table of `python -m bench`."""

import operator
from collections.abc import Callable
from typing import NamedTuple


class Figure(NamedTuple):
    """A measured number and its bound. Ratios and counts survive a busy machine, times do not."""

    name: str
    measured: float
    bound: float
    unit: str
    compare: Callable[[float, float], bool]

    @property
    def holds(self) -> bool:
        return self.compare(self.measured, self.bound)

    @property
    def goal(self) -> str:
        """The bound in words."""
        return f"{'at most' if self.compare is operator.le else 'at least'} {self.bound:,g} {self.unit}".rstrip()


def at_most(name: str, measured: float, bound: float, unit: str = "") -> Figure:
    return Figure(name, measured, bound, unit, operator.le)


def at_least(name: str, measured: float, bound: float, unit: str = "") -> Figure:
    return Figure(name, measured, bound, unit, operator.ge)
