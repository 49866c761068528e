"""Tests of the final status of a Job. Both servers must agree with each row of the tables."""

import pytest

from .objects import MERGE_PATCH, collection_path, field_errors, new_object, send

START, END = "2024-01-01T00:00:00Z", "2024-01-01T00:10:00Z"
TIMES = {"startTime": START, "completionTime": END}


def conditions(*kinds, **status):
    return {"conditions": [{"type": kind, "status": "True"} for kind in kinds], **status}


ENDED = conditions("SuccessCriteriaMet", "Complete", **TIMES)
WRITES = [  # statuses that are written one after another, and the errors of the last
    ([ENDED], []),
    ([conditions("FailureTarget", "Failed", startTime=START)], []),
    (
        [conditions("Complete")],
        ["Required status.completionTime", "Invalid status.conditions", "Required status.startTime"],
    ),
    ([conditions("Complete", **TIMES)], ["Invalid status.conditions"]),
    ([conditions("Failed", startTime=START)], ["Invalid status.conditions"]),
    ([{"completionTime": END}], ["Invalid status.completionTime"]),
    ([{**ENDED, "active": 1}], ["Invalid status.active"]),
    ([{**ENDED, "startTime": END, "completionTime": START}], ["Invalid status.completionTime"]),
    ([{"active": 1, "ready": 2}], ["Invalid status.ready"]),
    ([{"active": -1}], ["Invalid status.active"]),
    ([{"completedIndexes": "0"}], ["Invalid status.completedIndexes"]),
    ([ENDED, {"completionTime": "2024-01-01T00:20:00Z"}], ["Invalid status.completionTime"]),
    ([{"startTime": START}, {"startTime": END}], ["Invalid status.startTime"]),
    ([{"failed": 2}, {"failed": 1}], ["Invalid status.failed"]),
    (
        [ENDED, {"conditions": None}],
        ["Invalid status.completionTime", "Invalid status.conditions", "Invalid status.conditions"],
    ),
]


@pytest.mark.parametrize("index", range(len(WRITES)))
async def test_job_status_is_rejected_unless_its_end_is_complete_and_final(api, index):
    statuses, errors = WRITES[index]
    path = collection_path(api, "jobs")
    code, body = await send(api, "POST", path, new_object("jobs", "j"))
    assert code == 201, body
    for status in statuses:
        assert code in (200, 201), body
        code, body = await send(api, "PATCH", f"{path}/j/status", {"status": status}, MERGE_PATCH)
    assert (code, field_errors(body)) == (422 if errors else 200, errors), body
