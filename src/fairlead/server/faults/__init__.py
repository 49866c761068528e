"""Fault injection between a client and the server, repeatable from a seed: `Plan` describes the faults."""

from fairlead.server.faults.injection import FaultInjector
from fairlead.server.faults.plan import Fault, Plan, PlanError

__all__ = ["Fault", "FaultInjector", "Plan", "PlanError"]
