"""Fault injection between a client and the server.

A `Plan` describes the faults, and its seed makes them repeatable.
"""

from fairlead.server.faults.injection import FaultInjector
from fairlead.server.faults.plan import Fault, Plan, PlanError

__all__ = ["Fault", "FaultInjector", "Plan", "PlanError"]
