"""Field errors with kube-apiserver's texts, as in the causes of a 422 answer.

Source: apimachinery pkg/util/validation/field errors.go.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from webhook.core.api import gates
from webhook.core.api.go_text import json_text, quote
from webhook.core.api.version import KubernetesVersion


class ErrorType(StrEnum):
    """The type of an error. Source: field/errors.go ``ErrorType``."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"


_TITLES = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.FORBIDDEN: "Forbidden",
}


class FieldError(Struct, frozen=True, kw_only=True, rename="camel"):
    """A cause in a 422 response of kube-apiserver.

    Attributes:
        bad_value: The written value. Empty if upstream shows none.
        plain: Whether the value's Go type is string. Such a value is shown in Go's quotes. A value of a named type is
            shown as JSON.

    Source: field/errors.go ``Error``.
    """

    type: ErrorType
    field: str
    bad_value: str | int = ""
    detail: str = ""
    plain: bool = True

    @property
    def text(self) -> str:
        """The error as a line for users. Source: field/errors.go ``Error``."""
        shown = f"{self.field}: {_TITLES[self.type]}"
        if self.type not in {ErrorType.REQUIRED, ErrorType.FORBIDDEN}:
            is_text = self.plain and isinstance(self.bad_value, str)
            shown += ": " + (quote(str(self.bad_value)) if is_text else json_text(self.bad_value))
        return f"{shown}: {self.detail}" if self.detail else shown


def required(path: str, detail: str) -> FieldError:
    """Build the error of ``field.Required``. Source: field/errors.go ``Required``."""
    return FieldError(type=ErrorType.REQUIRED, field=path, detail=detail)


def invalid(path: str, value: str | int, detail: str, *, named_in: KubernetesVersion | None = None) -> FieldError:
    """Build the error of ``field.Invalid``.

    Set ``named_in`` to the Kubernetes release if upstream's value has a named string type. Some releases show such a
    value as JSON.

    Source: field/errors.go ``Invalid``.
    """
    plain = named_in is None or not gates.SHOWS_JSON.holds(named_in)
    return FieldError(type=ErrorType.INVALID, field=path, bad_value=value, detail=detail, plain=plain)


def forbidden(path: str, detail: str) -> FieldError:
    """Build the error of ``field.Forbidden``. Source: field/errors.go ``Forbidden``."""
    return FieldError(type=ErrorType.FORBIDDEN, field=path, detail=detail)


def duplicate(path: str, value: str) -> FieldError:
    """Build the error of ``field.Duplicate``. Source: field/errors.go ``Duplicate``."""
    return FieldError(type=ErrorType.DUPLICATE, field=path, bad_value=value)


def not_supported(path: str, value: str, supported: Sequence[str], version: KubernetesVersion) -> FieldError:
    """Build the error of ``field.NotSupported`` for a named string type. Source: field/errors.go ``NotSupported``."""
    detail = "supported values: " + ", ".join(quote(name) for name in supported)
    plain = not gates.SHOWS_JSON.holds(version)
    return FieldError(type=ErrorType.NOT_SUPPORTED, field=path, bad_value=value, detail=detail, plain=plain)


def distinct(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Drop errors with a repeated text. Source: field/errors.go ``ToAggregate``."""
    return tuple({error.text: error for error in errors}.values())
