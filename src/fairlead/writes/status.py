"""A status report: gathered during a reconcile, flushed once, nothing sent when nothing changed."""

from dataclasses import dataclass, field
from typing import Any

from fairlead.api.kinds import Kind
from fairlead.api.objects import Object
from fairlead.api.times import rfc3339
from fairlead.writes.decide import decide
from fairlead.writes.draft import Draft
from fairlead.writes.elision import digest
from fairlead.writes.errors import StatusSuperseded
from fairlead.writes.values import finite, text
from fairlead.writes.view import MapView, plain
from fairlead.writes.writer import Memo, Writer, told

STATUSES = ("True", "False", "Unknown")


@dataclass
class Report:
    """What is to be said in status. The last word on a field or condition counts.

    `generation` is that of the object which was reconciled; with `observed`, status.observedGeneration says it too.
    """

    generation: int
    observed: bool = True
    fields: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def set(self, **fields: Any) -> None:
        """Fields of status, each replaced whole. None takes a field away.

        Not conditions, which others write too, nor observedGeneration, which never goes back: each has its own way.
        """
        if "conditions" in fields:
            raise ValueError("set(conditions=…) would drop what others report: name each with condition(type, …)")
        if "observedGeneration" in fields:
            raise ValueError("observedGeneration is that of the object which was reconciled: leave it to the report")
        for name, value in fields.items():
            with finite(f"status.{name}"):
                self.fields[name] = plain(value, f"status.{name}")

    def condition(self, type: str, status: bool | str | None, reason: str, message: str = "") -> None:  # noqa: A002
        """A condition. None is Unknown."""
        word = status if isinstance(status, str) else "Unknown" if status is None else str(status)
        if word not in STATUSES:
            raise ValueError(f"a condition is True, False or Unknown, not {word!r}")
        for part, said in {"type": type, "reason": reason, "message": message}.items():
            text(said, f"the {part} of condition {type}")
        self.conditions[type] = {"status": word, "reason": reason, "message": message}


async def flush(writer: Writer, kind: Kind, obj: Object, report: Report) -> Object:
    """Write the report, in one request or none.

    Guard: uid, each value that is set, the types in the list and how many when a condition is added, not what others
    say in theirs, and observedGeneration, which never goes back: raises Superseded when a newer generation has been
    reported. lastTransitionTime moves only when the condition's status does; what the report does not name stays.
    """
    what = told(kind, obj.name, obj.namespace)
    now = rfc3339(writer.world.clock.now())

    def write(draft: Draft) -> None:
        if report.observed:
            theirs = _generation(draft.status.get("observedGeneration"))
            if theirs > report.generation:
                raise StatusSuperseded(what, report.generation, theirs)
            draft.status["observedGeneration"] = report.generation
        for name, value in report.fields.items():
            if value is not None:
                draft.status[name] = value
            elif name in draft.status:
                del draft.status[name]
        for type_, said in report.conditions.items():
            _set_condition(draft, what, type_, {**said, "observedGeneration": report.generation}, now)

    # A server may drop or default what is reported: the same report is not sent again while it is what became of it.
    memos = writer.remembered(kind, obj.name, obj.namespace)
    said = digest([report.generation, report.observed, report.fields, report.conditions])
    base = writer.newest(kind, obj)
    memo = memos.get((writer.manager, "status"))
    if memo and (memo.uid, memo.payload, memo.outcome) == (base.uid, said, _outcome(report, base)):
        return base
    after = (await decide(writer, kind, base, write)).object
    memos[writer.manager, "status"] = Memo(after.uid, after.resource_version, said, _outcome(report, after))
    return after


def _outcome(report: Report, obj: Object) -> bytes:
    """What the object has of that which the report says."""
    status = obj.status if isinstance(obj.status, dict) else {}
    fields = {name: status[name] for name in (*report.fields, "observedGeneration") if name in status}
    conditions = status.get("conditions")
    if isinstance(conditions, list):
        said = list(report.conditions)
        conditions = [each for each in conditions if isinstance(each, dict) and each.get("type") in said]
    return digest([fields, conditions])


def _set_condition(draft: Draft, what: str, type_: str, said: dict[str, Any], now: str) -> None:
    found = draft.condition(type_)
    if found is None:
        conditions = draft.status.get("conditions")
        new = {"type": type_, **said, "lastTransitionTime": now}
        if conditions is None:
            draft.status["conditions"] = [new]
        else:
            conditions.append(new)
        return
    theirs = _generation((found.unnoted if isinstance(found, MapView) else found.get)("observedGeneration"))
    if theirs > said["observedGeneration"]:
        raise StatusSuperseded(f"{what}, condition {type_}", said["observedGeneration"], theirs)
    if found.get("status") != said["status"]:
        found["lastTransitionTime"] = now
    for key, value in said.items():
        found[key] = value


def _generation(value: Any) -> int:
    """The generation that is reported; what is no integer reports none."""
    return value if isinstance(value, int) else 0
