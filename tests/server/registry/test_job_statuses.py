"""How Jobs end: each line holds on the embedded and on the real server."""

import pytest

from .test_refusals import INVALID, KINDS, REQUIRED, ask, causes, collection

BEGUN, DONE = "2024-01-01T00:00:00Z", "2024-01-01T00:10:00Z"
TIMES = {"startTime": BEGUN, "completionTime": DONE}
WHY, WHEN, SINCE = (f"status.{key}" for key in ("conditions", "completionTime", "startTime"))


def having(*kinds, **status):
    return {"conditions": [{"type": kind, "status": "True"} for kind in kinds], **status}


ENDED = having("SuccessCriteriaMet", "Complete", **TIMES)
LIVES = [  # statuses that are written one after another, and the causes of refusing the last
    ([ENDED], None),
    ([having("FailureTarget", "Failed", startTime=BEGUN)], None),
    ([having("Complete")], [(REQUIRED, WHEN), (INVALID, WHY), (REQUIRED, SINCE)]),
    ([having("Complete", **TIMES)], [(INVALID, WHY)]),
    ([having("Failed", startTime=BEGUN)], [(INVALID, WHY)]),
    ([{"completionTime": DONE}], [(INVALID, WHEN)]),
    ([{**ENDED, "active": 1}], [(INVALID, "status.active")]),
    ([{**ENDED, "startTime": DONE, "completionTime": BEGUN}], [(INVALID, WHEN)]),
    ([{"active": 1, "ready": 2}], [(INVALID, "status.ready")]),
    ([{"active": -1}], [(INVALID, "status.active")]),
    ([{"completedIndexes": "0"}], [(INVALID, "status.completedIndexes")]),
    ([ENDED, {"completionTime": "2024-01-01T00:20:00Z"}], [(INVALID, WHEN)]),
    ([{"startTime": BEGUN}, {"startTime": DONE}], [(INVALID, SINCE)]),
    ([{"failed": 2}, {"failed": 1}], [(INVALID, "status.failed")]),
    ([ENDED, {"conditions": None}], [(INVALID, WHEN), (INVALID, WHY), (INVALID, WHY)]),
]


@pytest.mark.parametrize("index", range(len(LIVES)))
async def test_a_job_ends_with_all_that_belongs_to_its_end(api, index):
    statuses, wanted = LIVES[index]
    path = collection(api, "jobs")
    code, body = await ask(api, "POST", path, {"metadata": {"name": "j"}, **KINDS["jobs"][1]})
    assert code == 201, body
    for status in statuses:
        assert code in (200, 201), body
        code, body = await ask(api, "PATCH", f"{path}/j/status", {"status": status}, "application/merge-patch+json")
    assert (code, causes(body) if wanted else None) == (422 if wanted else 200, wanted), body


async def test_a_budgets_conditions_are_whole(api):
    path = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
    await ask(api, "POST", path, {"metadata": {"name": "b"}, "spec": {"selector": {}}})
    changed = {"status": {"conditions": [{"type": "A", "status": "X"}]}}
    code, body = await ask(api, "PATCH", f"{path}/b/status", changed, "application/merge-patch+json")
    at = "status.conditions[0]"
    wanted = [
        ("FieldValueNotSupported", f"{at}.status"),
        (REQUIRED, f"{at}.lastTransitionTime"),
        (REQUIRED, f"{at}.reason"),
    ]
    assert (code, causes(body)) == (422, wanted)
