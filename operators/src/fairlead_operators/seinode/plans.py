"""Plans: pure functions for `decide`. A plan is made once, and only who made it carries it out.

The name of its executor costs nothing, since it is written with the plan. A second process that comes by sees it and
leaves the plan alone; if nothing moved for a while the executor is taken for dead and the plan taken over, by a
decision too, so that only one does.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import fairlead as fl
from fairlead.api.times import parse

TAKEOVER = 30.0
"""Seconds without a move after which another process may take a plan over: many passes of an executor that lives."""

Plan = dict[str, Any]
Tasks = Callable[[fl.Draft], Sequence[tuple[str, dict[str, str]]]]
"""What is to be done for an object: types and parameters; nothing when it is as it should be."""


def task(plan_id: str, index: int, kind: str, params: dict[str, str]) -> dict[str, Any]:
    """A task. Its id follows from the plan's, so that submitting it twice submits it once."""
    return {"type": kind, "id": digest([plan_id, kind, index]), "status": "Pending", "params": params}


def ensure(tasks: Tasks, *, new_id: str, executor: str, now: str) -> Callable[[fl.Draft], Plan | None]:
    """Decides on the plan that is to be carried out: the active one, a failed one as it is, or a new one."""

    def decide(draft: fl.Draft) -> Plan | None:
        plan = draft.status.get("plan")
        if plan and plan["phase"] == "Active":
            if plan["executor"] != executor and parse(now) - parse(plan["movedAt"]) > TAKEOVER:
                plan["executor"], plan["movedAt"] = executor, now
            return dict(plan.plain())
        if plan and plan["phase"] == "Failed" and plan["generation"] == draft.generation:
            return dict(plan.plain())
        wanted = tasks(draft)
        if not wanted:
            return None
        draft.status["plan"] = new = {
            "id": new_id,
            "generation": draft.generation,
            "executor": executor,
            "movedAt": now,
            "phase": "Active",
            "tasks": [task(new_id, index, kind, params) for index, (kind, params) in enumerate(wanted)],
        }
        return new

    return decide


def advance(
    plan: Plan, done: Sequence[str], *, now: str, failure: tuple[int, str] | None = None, **reached: Any
) -> Callable[[fl.Draft], None]:
    """Decides what is written of the progress: nothing if the plan is not this one any more.

    `done` are the ids of tasks, `failure` the index of one and what it said, `reached` what status says at the end.
    """

    def decide(draft: fl.Draft) -> None:
        live = draft.status.get("plan")
        if not live or live["id"] != plan["id"] or live["executor"] != plan["executor"] or live["phase"] != "Active":
            return
        moved = False
        for item in live["tasks"]:
            if item["id"] in done and item["status"] != "Complete":
                item["status"] = "Complete"
                moved = True
        if failure:
            index, detail = failure
            live["tasks"][index]["status"] = "Failed"
            live["phase"], live["failedTaskIndex"], live["failedTaskDetail"] = "Failed", index, detail
        elif len(done) == len(plan["tasks"]):
            live["phase"] = "Complete"
            for key, value in reached.items():
                draft.status[key] = value
        if moved:
            live["movedAt"] = now

    return decide


def digest(value: Any) -> str:
    """A short name for a value: of a template its revision, of a task its id."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
