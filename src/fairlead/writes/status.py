"""Status reports: the status fields and conditions of one reconcile, written with at most one request."""

from dataclasses import dataclass, field
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.times import rfc3339
from fairlead.writes.decide import decide
from fairlead.writes.draft import Draft
from fairlead.writes.errors import StatusSuperseded
from fairlead.writes.json_values import reject_cycles, require_text
from fairlead.writes.no_op import digest
from fairlead.writes.tracked import TrackedMap, plain
from fairlead.writes.writer import LastWrite, Writer, describe_object

STATUSES = ("True", "False", "Unknown")


@dataclass
class StatusReport:
    """The status fields and conditions that a reconcile sets. The last value of a field or condition counts.

    `generation` is the generation of the reconciled object. With `observed`, the report also sets
    status.observedGeneration to it.
    """

    generation: int
    observed: bool = True
    fields: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def set(self, **fields: Any) -> None:
        """Set status fields. Each value replaces the whole field, and None removes the field.

        Raises:
            ValueError: for conditions, which other controllers write too (use `condition`), and for
                observedGeneration, which the report sets itself.
        """
        if "conditions" in fields:
            raise ValueError("set(conditions=…) would remove the conditions of others: use condition(type, …) instead")
        if "observedGeneration" in fields:
            raise ValueError("the report sets observedGeneration to the generation that was reconciled: do not set it")
        for name, value in fields.items():
            with reject_cycles(f"status.{name}"):
                self.fields[name] = plain(value, f"status.{name}")

    def condition(self, type: str, status: bool | str | None, reason: str, message: str = "") -> None:  # noqa: A002
        """Set a condition. The status is True, False or None, which means Unknown."""
        value = status if isinstance(status, str) else "Unknown" if status is None else str(status)
        if value not in STATUSES:
            raise ValueError(f"the status of a condition must be True, False or Unknown, not {value!r}")
        for field_name, text in {"type": type, "reason": reason, "message": message}.items():
            require_text(text, f"the {field_name} of condition {type}")
        self.conditions[type] = {"status": value, "reason": reason, "message": message}


async def write_status(writer: Writer, kind: Kind, obj: Object, report: StatusReport) -> Object:
    """Write the report to the object's status with at most one request, and return the object.

    Guarantees:
        Fields and conditions that the report does not contain stay as they are.
        observedGeneration never decreases, neither in status nor in a condition.
        lastTransitionTime changes only if the condition's status changes.
        Nothing is sent if nothing would change.

    Does not guarantee:
        The contents of other writers' conditions are not compared, so they may change at the same time.

    Raises:
        StatusSuperseded: the status already reports on a newer generation.
        The errors of `decide`.

    Example:
        report = StatusReport(obj.generation)
        report.set(phase="Ready")
        report.condition("Ready", True, "Reconciled")
        obj = await write_status(writer, kind, obj, report)
    """
    target = describe_object(kind, obj.name, obj.namespace)
    now = rfc3339(writer.world.clock.now())

    def write(draft: Draft) -> None:
        if report.observed:
            reported = _to_generation(draft.status.get("observedGeneration"))
            if reported > report.generation:
                raise StatusSuperseded(target, report.generation, reported)
            draft.status["observedGeneration"] = report.generation
        for name, value in report.fields.items():
            if value is not None:
                draft.status[name] = value
            elif name in draft.status:
                del draft.status[name]
        for type_, condition in report.conditions.items():
            _set_condition(draft, target, type_, {**condition, "observedGeneration": report.generation}, now)

    # The server may drop or default a part of the report. The same report is not sent again while the status is still
    # what the server made of it.
    last_writes = writer.last_writes_of(kind, obj.name, obj.namespace)
    payload = digest([report.generation, report.observed, report.fields, report.conditions])
    base = writer.newest(kind, obj)
    last = last_writes.get((writer.manager, "status"))
    if last and (last.uid, last.payload, last.outcome) == (base.uid, payload, _digest_outcome(report, base)):
        return writer.skip("patch", kind, base, "status")
    after = (await decide(writer, kind, base, write)).object
    outcome = _digest_outcome(report, after)
    last_writes[writer.manager, "status"] = LastWrite(after.uid, after.resource_version, payload, outcome)
    return after


def _digest_outcome(report: StatusReport, obj: Object) -> bytes:
    """Return a hash of the object's values of the status fields and conditions that the report contains."""
    status = obj.status if isinstance(obj.status, dict) else {}
    fields = {name: status[name] for name in (*report.fields, "observedGeneration") if name in status}
    conditions = status.get("conditions")
    if isinstance(conditions, list):
        types = list(report.conditions)
        conditions = [item for item in conditions if isinstance(item, dict) and item.get("type") in types]
    return digest([fields, conditions])


def _set_condition(draft: Draft, target: str, type_: str, condition: dict[str, Any], now: str) -> None:
    existing = draft.condition(type_)
    if existing is None:
        conditions = draft.status.get("conditions")
        new = {"type": type_, **condition, "lastTransitionTime": now}
        if conditions is None:
            draft.status["conditions"] = [new]
        else:
            conditions.append(new)
        return
    get = existing.get_unrecorded if isinstance(existing, TrackedMap) else existing.get
    reported = _to_generation(get("observedGeneration"))
    if reported > condition["observedGeneration"]:
        raise StatusSuperseded(f"{target}, condition {type_}", condition["observedGeneration"], reported)
    if existing.get("status") != condition["status"]:
        existing["lastTransitionTime"] = now
    for key, value in condition.items():
        existing[key] = value


def _to_generation(value: Any) -> int:
    """Return an observedGeneration, or 0 if the value is not an integer."""
    return value if isinstance(value, int) else 0
