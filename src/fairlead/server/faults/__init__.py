"""What can go wrong between a client and the server, on purpose and from a seed: `Plan` says what, `Faults` does it."""

from fairlead.server.faults.injection import Faults
from fairlead.server.faults.plan import Fault, Plan, PlanError

__all__ = ["Fault", "Faults", "Plan", "PlanError"]
