"""Test an operator with pytest, without Docker: the types of the fixtures, faults and virtual time.

The fixtures `cluster`, `operator` and `api_server` come from the pytest plugin, which is active when fairlead is
installed.

Example:
    from fairlead.testing import Cluster, Fault, StartOperator

    async def test_greeting(cluster: Cluster, operator: StartOperator) -> None:
        cluster.faults(Fault(status=503, verb="patch", count=3))
        await operator(op)
        await cluster.create(Greeting("hello", spec={"who": "world"}))
        await cluster.wait_until_idle()
        assert await cluster.get(fl.ConfigMap, "hello") is not None
"""

from typing import TYPE_CHECKING

__all__ = [
    "Cluster",
    "CountingTransport",
    "Deadlock",
    "Fault",
    "FaultInjector",
    "Plan",
    "PlanError",
    "RealServer",
    "Running",
    "Server",
    "SlowTransport",
    "StartOperator",
    "VirtualClock",
    "virtual",
]

if TYPE_CHECKING:
    from fairlead.runtime.running import Running
    from fairlead.server.app import Server
    from fairlead.server.faults import Fault, FaultInjector, Plan, PlanError
    from fairlead.testing import virtual
    from fairlead.testing.cluster import Cluster, StartOperator
    from fairlead.testing.network import CountingTransport, SlowTransport
    from fairlead.testing.real import RealServer
    from fairlead.testing.virtual import Deadlock, VirtualClock
else:
    from fairlead.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "fairlead.runtime.running": ("Running",),
            "fairlead.server.app": ("Server",),
            "fairlead.server.faults": ("Fault", "FaultInjector", "Plan", "PlanError"),
            "fairlead.testing.cluster": ("Cluster", "StartOperator"),
            "fairlead.testing.network": ("CountingTransport", "SlowTransport"),
            "fairlead.testing.real": ("RealServer",),
            "fairlead.testing.virtual": ("Deadlock", "VirtualClock", "virtual"),
        },
    )
