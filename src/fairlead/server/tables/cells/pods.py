"""The table cells of Pods."""

from typing import Any

from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import format_age
from fairlead.server.tables.cells.formatters import NONE, at

_DONE = ("Succeeded", "Failed")


def ready(obj: Object) -> str:
    return _summarize(obj)[0]


def status(obj: Object) -> str:
    return _summarize(obj)[1]


def restarts(obj: Object, now: float) -> str:
    _, _, number, last = _summarize(obj)
    return f"{number} ({format_age(last, now)} ago)" if number and last else str(number)


def gates(obj: Object) -> str:
    gates = obj["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    true = {c["type"] for c in at(obj, "status", "conditions") or () if c.get("status") == "True"}
    return f"{sum(1 for g in gates if g['conditionType'] in true)}/{len(gates)}"


def conditions(obj: Object) -> list[Object]:
    """Return the table row conditions of a Pod that has succeeded or failed."""
    phase = at(obj, "status", "phase")
    message = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


def _summarize(obj: Object) -> tuple[str, str, int, str]:
    """Return ready containers ("1/2"), status, number of restarts, and time of the last restart of a Pod."""
    spec, state = obj["spec"], obj.get("status") or {}
    conditions = {c.get("type"): c for c in state.get("conditions") or ()}
    restartable = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    reason = state.get("reason") or state.get("phase") or ""
    if (conditions.get("PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    ready_count, counted, waiting = _summarize_init_containers(spec, state, restartable)
    if not waiting or (conditions.get("Initialized") or {}).get("status") == "True":
        running, reason, statuses = _summarize_containers(state, waiting or reason, conditions)
        ready_count += running
        counted = [*(status for status in counted if status.get("name") in restartable), *statuses]
    else:
        reason = waiting
    if obj["metadata"].get("deletionTimestamp"):
        if state.get("reason") == "NodeLost":
            reason = "Unknown"
        elif state.get("phase") not in _DONE:
            reason = "Terminating"
    last = max((at(status, "lastState", "terminated", "finishedAt") or "" for status in counted), default="")
    total = len(spec.get("containers") or ()) + len(restartable)
    return f"{ready_count}/{total}", reason, sum(status.get("restartCount") or 0 for status in counted), last


def _summarize_init_containers(spec: Object, state: Object, restartable: set[str]) -> tuple[int, list[Object], str]:
    """Return how many init containers are ready, their statuses so far, and why the Pod waits for one, if it does."""
    ready_count, counted_statuses = 0, []
    for index, status in enumerate(state.get("initContainerStatuses") or ()):
        counted_statuses.append(status)
        ended, waiting_reason = at(status, "state", "terminated"), at(status, "state", "waiting", "reason")
        if ended is not None and not ended.get("exitCode"):
            continue
        if status.get("name") in restartable and status.get("started"):
            ready_count += bool(status.get("ready"))
            continue
        if ended is not None:
            return ready_count, counted_statuses, f"Init:{_get_termination_reason(ended)}"
        if waiting_reason and waiting_reason != "PodInitializing":
            return ready_count, counted_statuses, f"Init:{waiting_reason}"
        return ready_count, counted_statuses, f"Init:{index}/{len(spec.get('initContainers') or ())}"
    return ready_count, counted_statuses, ""


def _summarize_containers(state: Object, reason: str, conditions: dict[Any, Object]) -> tuple[int, str, list[Object]]:
    """Return how many containers are ready, the reason for the Pod's status, and the container statuses."""
    ready_count, failure = 0, ""
    listed = state.get("containerStatuses") or []
    for status in reversed(listed):
        ended, waiting_reason = at(status, "state", "terminated"), at(status, "state", "waiting", "reason")
        if waiting_reason:
            reason = waiting_reason
        elif ended is not None:
            reason = _get_termination_reason(ended)
            failure = reason if ended.get("exitCode") else failure
        elif status.get("ready") and at(status, "state", "running") is not None:
            ready_count += 1
    if reason == "Completed":
        if ready_count and (conditions.get("Ready") or {}).get("status") == "True":
            reason = "Running"
        elif failure or ready_count:
            reason = failure or "NotReady"
    return ready_count, reason, listed


def _get_termination_reason(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode') or 0}"
