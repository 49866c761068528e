"""Decision functions for plans. One process creates a plan, and only that process executes it.

A plan contains the name of its executor, so other processes do not execute it. If the plan has not progressed for
TAKEOVER_AFTER seconds, another process takes it over. The takeover is a decision too, so only one process succeeds.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import fairlead as fl
from fairlead.api.times import parse

TAKEOVER_AFTER = 30.0
"""Seconds without progress until another process takes a plan over: many reconciles of a living executor."""

Plan = dict[str, Any]
Tasks = Callable[[fl.Draft], Sequence[tuple[str, dict[str, str]]]]
"""Returns the types and parameters of the tasks for an object; nothing if it is up to date."""


def make_task(plan_id: str, index: int, kind: str, params: dict[str, str]) -> dict[str, Any]:
    """Return a new task. Its id is a hash of plan, type and index, so a repeated task has the same id."""
    return {"type": kind, "id": digest([plan_id, kind, index]), "status": "Pending", "params": params}


def ensure(tasks: Tasks, *, new_id: str, executor: str, now: str) -> Callable[[fl.Draft], Plan | None]:
    """Return a decision function that returns the active plan, or the failed plan of this generation.

    Without such a plan, the function writes and returns a new plan, or returns None if there are no tasks. It takes
    over an active plan of another executor after TAKEOVER_AFTER seconds.
    """

    def decide(draft: fl.Draft) -> Plan | None:
        plan = draft.status.get("plan")
        if plan and plan["phase"] == "Active":
            if plan["executor"] != executor and parse(now) - parse(plan["movedAt"]) > TAKEOVER_AFTER:
                plan["executor"], plan["movedAt"] = executor, now
            return dict(plan.plain())
        if plan and plan["phase"] == "Failed" and plan["generation"] == draft.generation:
            return dict(plan.plain())
        new_tasks = tasks(draft)
        if not new_tasks:
            return None
        draft.status["plan"] = new = {
            "id": new_id,
            "generation": draft.generation,
            "executor": executor,
            "movedAt": now,
            "phase": "Active",
            "tasks": [make_task(new_id, index, kind, params) for index, (kind, params) in enumerate(new_tasks)],
        }
        return new

    return decide


def advance(
    plan: Plan, completed: Sequence[str], *, now: str, failure: tuple[int, str] | None = None, **final_status: Any
) -> Callable[[fl.Draft], None]:
    """Return a decision function that writes the progress of a plan. It writes nothing if another plan is active.

    `completed` are the ids of the complete tasks. `failure` is the index and the message of a failed task.
    `final_status` is written when all tasks are complete.
    """

    def decide(draft: fl.Draft) -> None:
        live = draft.status.get("plan")
        if not live or live["id"] != plan["id"] or live["executor"] != plan["executor"] or live["phase"] != "Active":
            return
        has_progressed = False
        for item in live["tasks"]:
            if item["id"] in completed and item["status"] != "Complete":
                item["status"] = "Complete"
                has_progressed = True
        if failure:
            index, detail = failure
            live["tasks"][index]["status"] = "Failed"
            live["phase"], live["failedTaskIndex"], live["failedTaskDetail"] = "Failed", index, detail
        elif len(completed) == len(plan["tasks"]):
            live["phase"] = "Complete"
            for key, value in final_status.items():
                draft.status[key] = value
        if has_progressed:
            live["movedAt"] = now

    return decide


def digest(value: Any) -> str:
    """Return a short hash of a value, for template revisions and task ids."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
