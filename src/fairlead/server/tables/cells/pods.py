"""The cells of a Pod: what its containers are doing, in a word."""

from typing import Any

from fairlead.server.registry.resource import Object
from fairlead.server.tables.ages import age
from fairlead.server.tables.cells.formatters import NONE, at

_DONE = ("Succeeded", "Failed")


def ready(obj: Object) -> str:
    return _told(obj)[0]


def status(obj: Object) -> str:
    return _told(obj)[1]


def restarts(obj: Object, now: float) -> str:
    _, _, number, last = _told(obj)
    return f"{number} ({age(last, now)} ago)" if number and last else str(number)


def gates(obj: Object) -> str:
    wanted = obj["spec"].get("readinessGates") or ()
    if not wanted:
        return NONE
    true = {c["type"] for c in at(obj, "status", "conditions") or () if c.get("status") == "True"}
    return f"{sum(1 for g in wanted if g['conditionType'] in true)}/{len(wanted)}"


def conditions(obj: Object) -> list[Object]:
    """What a row says of a Pod that has ended."""
    phase = at(obj, "status", "phase")
    message = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


def _told(obj: Object) -> tuple[str, str, int, str]:
    """How many containers are ready, what the Pod is doing, how often it was restarted, and when last."""
    spec, state = obj["spec"], obj.get("status") or {}
    conditions = {c.get("type"): c for c in state.get("conditions") or ()}
    staying = {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}
    reason = state.get("reason") or state.get("phase") or ""
    if (conditions.get("PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    starting, counted, waiting = _starting(spec, state, staying)
    if not waiting or (conditions.get("Initialized") or {}).get("status") == "True":
        running, reason, able = _running(state, waiting or reason, conditions)
        starting += running
        counted = [*(one for one in counted if one.get("name") in staying), *able]
    else:
        reason = waiting
    if obj["metadata"].get("deletionTimestamp"):
        if state.get("reason") == "NodeLost":
            reason = "Unknown"
        elif state.get("phase") not in _DONE:
            reason = "Terminating"
    last = max((at(one, "lastState", "terminated", "finishedAt") or "" for one in counted), default="")
    total = len(spec.get("containers") or ()) + len(staying)
    return f"{starting}/{total}", reason, sum(one.get("restartCount") or 0 for one in counted), last


def _starting(spec: Object, state: Object, staying: set[str]) -> tuple[int, list[Object], str]:
    """Of the containers that run before the others: how many are ready, which were looked at, what is waited for."""
    able, seen = 0, []
    for index, one in enumerate(state.get("initContainerStatuses") or ()):
        seen.append(one)
        ended, waits = at(one, "state", "terminated"), at(one, "state", "waiting", "reason")
        if ended is not None and not ended.get("exitCode"):
            continue
        if one.get("name") in staying and one.get("started"):
            able += bool(one.get("ready"))
            continue
        if ended is not None:
            return able, seen, f"Init:{_end(ended)}"
        if waits and waits != "PodInitializing":
            return able, seen, f"Init:{waits}"
        return able, seen, f"Init:{index}/{len(spec.get('initContainers') or ())}"
    return able, seen, ""


def _running(state: Object, reason: str, conditions: dict[Any, Object]) -> tuple[int, str, list[Object]]:
    """Of the other containers: how many are ready, what the Pod is doing by them, and they themselves."""
    able, wrong = 0, ""
    listed = state.get("containerStatuses") or []
    for one in reversed(listed):
        ended, waits = at(one, "state", "terminated"), at(one, "state", "waiting", "reason")
        if waits:
            reason = waits
        elif ended is not None:
            reason = _end(ended)
            wrong = reason if ended.get("exitCode") else wrong
        elif one.get("ready") and at(one, "state", "running") is not None:
            able += 1
    if reason == "Completed":
        if able and (conditions.get("Ready") or {}).get("status") == "True":
            reason = "Running"
        elif wrong or able:
            reason = wrong or "NotReady"
    return able, reason, listed


def _end(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode') or 0}"
