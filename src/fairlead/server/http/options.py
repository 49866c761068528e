"""What a request's query says beside the object: dryRun, fieldManager, fieldValidation, force, and their checks."""

from dataclasses import dataclass

from fairlead.server.errors import field_errors
from fairlead.server.errors.field_errors import FieldError, quote_go
from fairlead.server.errors.statuses import StatusError, bad_request, invalid_kind
from fairlead.server.http.messages import Request

TRUE = ("true", "1", "t", "T", "TRUE", "True")
FALSE = ("false", "0")


@dataclass(slots=True)
class WriteOptions:
    """Options of a write. `manager` is the fieldManager given, or the User-Agent's first word."""

    dry_run: bool
    manager: str
    validation: str  # Ignore, Warn or Strict
    force: bool = False


def truth(value: str) -> bool:
    """A boolean of the query: anything but false and 0 is true, an empty value too."""
    return value.lower() not in FALSE


def option_failure(kind: str, causes: list[FieldError]) -> StatusError:
    return invalid_kind("meta.k8s.io", kind, "", causes)


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """The options of a create, update or patch; `kind` is CreateOptions, UpdateOptions or PatchOptions."""
    found: list[FieldError] = []
    manager = request.first("fieldManager")
    forced = "force" in request.query
    if kind == "PatchOptions":
        if forced and not apply:
            found.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
        if apply and not manager:
            found.append(field_errors.required("fieldManager", "is required for apply patch"))
    found += field_errors.validate_manager_name("fieldManager", manager)
    found += dry_run_causes(request.query.get("dryRun", []))
    validation = request.first("fieldValidation")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        found.append(field_errors.not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if found:
        raise option_failure(kind, found)
    return WriteOptions(
        dry_run=bool(request.query.get("dryRun")),
        manager=manager or default_manager(request),
        validation=validation or "Warn",
        force=forced and truth(request.first("force")),
    )


def dry_run_causes(values: list[str]) -> list[FieldError]:
    if values and set(values) != {"All"}:
        return [field_errors.not_supported("dryRun", values, ["All"])]
    return []


def default_manager(request: Request) -> str:
    """Writers that give no fieldManager are known by their User-Agent up to the first slash."""
    agent = request.headers.get("user-agent", "")
    prefix = agent.split("/")[0]
    printable = prefix if prefix.isprintable() else "".join(ch for ch in prefix if ch.isprintable())
    return printable[:128]


def integer(request: Request, key: str) -> int | None:
    """An int64 of the query, as the conversion of query parameters words its refusal."""
    text = request.first(key)
    if not text:
        return None
    try:
        value = int(text)
        if not -(2**63) <= value < 2**63 or text.strip() != text or "_" in text:
            raise ValueError
    except ValueError:
        raise bad_request(f"strconv.ParseInt: parsing {quote_go(text)}: {unparsed(text)}") from None
    return value


def unparsed(text: str, *, signed: bool = True) -> str:
    """Why Go does not take a text for an integer."""
    digits = text[1:] if signed and text[:1] in ("+", "-") else text
    return "value out of range" if digits.isascii() and digits.isdigit() else "invalid syntax"
