"""Records of the history as text, for logs, pages and commands."""

from collections.abc import Iterable

from fairlead.api.history import Cause, FieldChange, ObjectRef, Record

MAX_PATHS = 8
"""The changed fields that a line names. The others are counted."""

_DONE = {"created": "created", "changed": "changed", "deleted": "deleted", "deleting": "marked for deletion"}
_PLANNED = {"created": "would create", "changed": "would change", "deleted": "would delete", "deleting": "would delete"}


def describe_object(ref: ObjectRef | None, namespace: str | None = None) -> str:
    """Return `Kind namespace/name`. The namespace is left out if it is the given one."""
    if ref is None:
        return ""
    return str(ref._replace(namespace=None) if ref.namespace == namespace else ref)


def describe_cause(cause: Cause, namespace: str | None = None) -> str:
    """Return why a pass ran, for example `ConfigMap hello modified by this process`."""
    match cause.source:
        case "start":
            return "start: the object exists"
        case "resync":
            return "resync"
        case "retry":
            return f"retry {cause.attempt}"
        case "conflict":
            return "retry after a conflict"
        case "requeue_after":
            return f"timer: {format_seconds(cause.seconds)} after an earlier pass"
    role = {"child": "child ", "mapped": "watched "}.get(cause.source, "")
    by_whom = " by this process" if cause.is_own else ""
    changed_suffix = f" ({', '.join(cause.changed)})" if cause.changed and not cause.is_own else ""
    return f"{role}{describe_object(cause.object, namespace)} {cause.event}{by_whom}{changed_suffix}"


def describe_causes(record: Record, namespace: str | None = None) -> str:
    """Return the causes of a wake-up in one line, each once."""
    texts = list(dict.fromkeys(describe_cause(cause, namespace) for cause in record.causes))
    if record.more_causes:
        texts.append(f"{record.more_causes} more")
    return "; ".join(texts) or "unknown"


def describe(record: Record) -> str:
    """Return what happened in one line, without the time and the actor."""
    namespace = record.primary.namespace if record.primary is not None else None
    object_text = describe_object(record.object, namespace)
    match record.point:
        case "woken":
            return f"woken by {describe_causes(record, namespace)}"
        case "read" if record.verb == "list":
            namespace_suffix = (
                f" in {record.object.namespace}" if record.object is not None and record.object.namespace else ""
            )
            kind = record.object.kind if record.object is not None else ""
            return f"listed {kind}{namespace_suffix} from {_format_source(record)}: {record.outcome} objects"
        case "read":
            version = f" at version {record.version}" if record.version else ", which does not exist"
            return f"read {object_text} from {_format_source(record)}{version}"
        case "skipped":
            return f"skipped {record.verb} of {object_text}{_format_subresource(record)}: unchanged"
        case "written":
            return _describe_write(record, object_text)
        case "ended":
            return _describe_end(record)
        case "request":
            return f"{record.verb} {record.path} {record.outcome} {format_seconds(record.seconds)}"


def _describe_write(record: Record, object_text: str) -> str:
    if record.outcome == "unchanged":
        return f"{record.verb} of {object_text}{_format_subresource(record)} changed nothing"
    action_text = (_PLANNED if record.is_dry_run else _DONE).get(record.outcome)
    if action_text is None:
        return f"{record.verb} of {object_text}{_format_subresource(record)} failed: {record.outcome}: {record.message}"
    if record.outcome == "changed" and record.fields:
        return f"{action_text} {object_text}: {describe_paths(change.path for change in record.fields)}"
    return f"{action_text} {object_text}"


def _describe_end(record: Record) -> str:
    reason = f" ({record.reason})" if record.reason else ""
    later = f", next pass in {format_seconds(record.next_look)}" if record.next_look is not None else ""
    return f"ended after {format_seconds(record.seconds)}: {record.outcome}{reason}{later}"


def describe_paths(paths: Iterable[str]) -> str:
    """Return the paths with commas. Only the first few are named."""
    named_paths = list(paths)
    omitted_suffix = f" and {len(named_paths) - MAX_PATHS} more" if len(named_paths) > MAX_PATHS else ""
    return ", ".join(named_paths[:MAX_PATHS]) + omitted_suffix


def find_transitions(fields: Iterable[FieldChange]) -> dict[str, dict[str, str]]:
    """Return the conditions whose status or reason changed: by type, the new status, reason and message if changed."""
    transitions: dict[str, dict[str, str]] = {}
    for path, _, new in fields:
        if path in ("status", "status.conditions"):
            conditions = new.get("conditions") if path == "status" and isinstance(new, dict) else new
            for condition in conditions if isinstance(conditions, list) else ():
                if isinstance(condition, dict):
                    transitions[str(condition.get("type"))] = condition
        elif path.startswith("status.conditions[type="):
            condition_type, _, key = path.removeprefix("status.conditions[type=").partition("]")
            if not key and isinstance(new, dict):
                transitions[condition_type] = new
            elif key in (".status", ".reason", ".message"):
                transitions.setdefault(condition_type, {})[key[1:]] = str(new)
    return {
        name: changed_fields
        for name, changed_fields in transitions.items()
        if "status" in changed_fields or "reason" in changed_fields
    }


def describe_transition(condition_type: str, changed_fields: dict[str, str]) -> str:
    """Return for example `Ready is now False: Waiting, no endpoints yet`."""
    details = ", ".join(changed_fields[key] for key in ("reason", "message") if changed_fields.get(key))
    status = f" is now {changed_fields['status']}" if "status" in changed_fields else ""
    return f"{condition_type}{status}" + (f": {details}" if details else "")


def format_seconds(seconds: float) -> str:
    """Return a duration such as `3.1 ms`, `12 s` or `3 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _format_source(record: Record) -> str:
    return "the server" if record.source == "live" else "the cache"


def _format_subresource(record: Record) -> str:
    return f" ({record.subresource})" if record.subresource else ""
