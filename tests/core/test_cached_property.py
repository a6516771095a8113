"""What is computed when it is first asked for."""

from msgspec import Struct

from webhook.core.cached_property import cached_property

ASKED = []


class Square(Struct, frozen=True, dict=True):
    side: int

    @cached_property
    def area(self) -> int:
        """In square metres."""
        ASKED.append(self.side)
        return self.side**2


def test_it_is_computed_once_for_each():
    ASKED.clear()
    two, three = Square(2), Square(3)
    assert (two.area, three.area, two.area) == (4, 9, 4)
    assert ASKED == [2, 3]


def test_it_is_no_part_of_the_value():
    other = Square(2)
    assert other.area == 4
    assert (other, hash(other)) == (Square(2), hash(Square(2)))


def test_the_class_has_the_property_itself():
    assert isinstance(Square.area, cached_property)
    assert Square.area.__doc__ == "In square metres."
