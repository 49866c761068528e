"""Plans from a seed and from a file."""

import pytest

from fairlead.server.faults import Fault, Plan, PlanError


def test_a_seed_gives_a_plan_that_never_refuses_a_read_of_one_object():
    plan = Plan.load("7")
    assert plan == Plan.from_seed(7)
    assert plan.seed == 7
    # Readiness checks and a client's reads of single objects are not affected, so that every suite starts.
    assert all("get" not in fault.verb and fault.verb for fault in plan.faults)


def test_a_plan_is_loaded_from_a_file(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("{seed: 1, faults: [{status: 409}]}")
    assert Plan.load(str(file)) == Plan([Fault(status=409)], seed=1)
    file.write_text("[]")
    with pytest.raises(PlanError, match=r"plan.yaml: a plan is a map"):
        Plan.load(str(file))
