"""The query parameters of a write: dryRun, fieldManager, fieldValidation, force. And `timeout`, of any request."""

from dataclasses import dataclass

from fairlead.api.gojson import quote_go
from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError
from fairlead.server.errors.statuses import StatusError, bad_request, invalid_kind
from fairlead.server.http.messages import Request
from fairlead.server.schema.times import parse_duration

TRUE = ("true", "1", "t", "T", "TRUE", "True")
FALSE = ("false", "0")


@dataclass(slots=True)
class WriteOptions:
    """The options of a write. `manager` is the fieldManager parameter, or else the User-Agent up to the first slash."""

    dry_run: bool
    manager: str
    validation: str  # Ignore, Warn or Strict
    force: bool = False


def parse_boolean(value: str) -> bool:
    """Return the value of a boolean query parameter. Every value except `false` and `0` is true, even an empty one."""
    return value.lower() not in FALSE


def check_timeout(request: Request) -> None:
    """Raise 400 if ?timeout is not a Go duration. A watch ignores it."""
    text = request.first("timeout")
    if not text or request.first("watch") or "/watch/" in request.path:
        return
    try:
        parse_duration(text)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None


def invalid_options(kind: str, errors: list[FieldError]) -> StatusError:
    return invalid_kind("meta.k8s.io", kind, "", errors)


def write_options(request: Request, kind: str, *, is_apply: bool = False) -> WriteOptions:
    """Return the options of a create, update or patch. `kind` is CreateOptions, UpdateOptions or PatchOptions."""
    errors: list[FieldError] = []
    manager = request.first("fieldManager")
    has_force = "force" in request.query
    if kind == "PatchOptions":
        if has_force and not is_apply:
            errors.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
        if is_apply and not manager:
            errors.append(field_errors.required("fieldManager", "is required for apply patch"))
    errors += field_errors.validate_manager_name("fieldManager", manager)
    errors += validate_dry_run(request.query.get("dryRun", []))
    validation = request.first("fieldValidation")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        errors.append(field_errors.not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if errors:
        raise invalid_options(kind, errors)
    return WriteOptions(
        dry_run=bool(request.query.get("dryRun")),
        manager=manager or default_manager(request),
        validation=validation or "Warn",
        force=has_force and parse_boolean(request.first("force")),
    )


def validate_dry_run(values: list[str]) -> list[FieldError]:
    if values and set(values) != {"All"}:
        return [field_errors.not_supported("dryRun", values, ["All"])]
    return []


def default_manager(request: Request) -> str:
    """Return the field manager of a request without fieldManager: its User-Agent up to the first slash."""
    agent = request.headers.get("user-agent", "")
    prefix = agent.split("/")[0]
    printable = prefix if prefix.isprintable() else "".join(ch for ch in prefix if ch.isprintable())
    return printable[:128]


def int64_option(request: Request, key: str) -> int | None:
    """Return an int64 query parameter, or None if it is not set. Raises 400 with Go's message for other values."""
    option_text = request.first(key)
    if not option_text:
        return None
    try:
        value = int(option_text)
        if not -(2**63) <= value < 2**63 or option_text.strip() != option_text or "_" in option_text:
            raise ValueError
    except ValueError:
        raise bad_request(
            f"strconv.ParseInt: parsing {quote_go(option_text)}: {integer_syntax_error(option_text)}"
        ) from None
    return value


def integer_syntax_error(text: str, *, is_signed: bool = True) -> str:
    """Return the reason in Go's error message for a text that is not a valid integer."""
    digits = text[1:] if is_signed and text[:1] in ("+", "-") else text
    return "value out of range" if digits.isascii() and digits.isdigit() else "invalid syntax"
