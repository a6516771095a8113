"""The decoders of types, made one at a time: nobody else makes one, nor shows msgspec a type that has none.

When a Struct is first read, msgspec writes down how its fields are to be read, in a place that all threads see, and
other threads run meanwhile. One that reads the same Struct then finds a part of it, and the process ends by a
segmentation fault (msgspec 0.22): so did a controller now and then, when the first lists of all kinds came at once.
"""

import threading
from typing import Any, TypeVar, overload

import msgspec

_Read = TypeVar("_Read")

# The core starts no thread; but the threads of others all come here.
_making = threading.Lock()
_made: dict[Any, msgspec.json.Decoder[Any]] = {}


@overload
def decoder_of(into: type[_Read]) -> msgspec.json.Decoder[_Read]: ...
@overload
def decoder_of(into: Any) -> msgspec.json.Decoder[Any]: ...  # noqa: ANN401 a union is no `type`
def decoder_of(into: Any) -> msgspec.json.Decoder[Any]:
    """The one decoder of JSON into this type."""
    made = _made.get(into)
    if made is None:
        with _making:
            made = _made.setdefault(into, msgspec.json.Decoder(into))
    return made


@overload
def converted(value: object, into: type[_Read]) -> _Read: ...
@overload
def converted(value: object, into: Any) -> Any: ...  # noqa: ANN401 as above
def converted(value: object, into: Any) -> Any:
    """The value of this type that plain values, as JSON has them, stand for.

    Errors: msgspec.ValidationError.
    """
    return msgspec.convert(value, decoder_of(into).type)
