"""Simulate the controllers of a cluster, which complete Jobs and roll out StatefulSets after some time."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import fairlead as fl
from fairlead.api.errors import Conflict, NotFound
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead_operators import classic_controller
from fairlead_operators.classic_controller import ClassicContext, Key

DURATION = 2.0
"""Seconds that a Job or a rollout takes."""


def running(
    client: Client,
    world: fl.World,
    *,
    namespace: str | None = None,
    duration: float = DURATION,
    jobs_fail: bool = False,
) -> AbstractAsyncContextManager[ClassicContext]:
    """Return a context manager that runs the simulated controllers. With `jobs_fail`, all Jobs fail."""

    async def reconcile(key: Key, ctx: ClassicContext) -> None:
        stateful_set = ctx.get(fl.StatefulSet, key)
        if stateful_set is not None and stateful_set.status.get("observedGeneration") != stateful_set.generation:
            await asyncio.sleep(duration)
            revision = {"observedGeneration": stateful_set.generation, "currentRevision": "1", "updateRevision": "1"}
            pods = dict.fromkeys(("replicas", "readyReplicas", "currentReplicas", "updatedReplicas"), 1)
            await _report(stateful_set, fl.StatefulSet, {**revision, **pods}, ctx)
        for job in ctx.list(fl.Job, key[0]):
            if job.labels.get("sei.io/node") == key[1] and not job.status.get("conditions"):
                await asyncio.sleep(duration)
                await _report(job, fl.Job, _finished_status(job, rfc3339(ctx.world.clock.now()), jobs_fail), ctx)

    return classic_controller.running(
        client,
        world,
        reconcile,
        namespace=namespace,
        primary=fl.StatefulSet,
        watches={fl.Job: lambda job, ctx: [(job.namespace, job.labels.get("sei.io/node", ""))]},
        workers=1000,
    )


def _finished_status(job: fl.Object, now: str, has_failed: bool) -> dict[str, Any]:
    first, last = ("FailureTarget", "Failed") if has_failed else ("SuccessCriteriaMet", "Complete")
    condition = {"status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    if has_failed:
        condition |= {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    status: dict[str, Any] = {"startTime": job.status.get("startTime") or now, "uncountedTerminatedPods": {}}
    status["conditions"] = [{"type": first, **condition}, {"type": last, **condition}]
    return status | ({"failed": 4} if has_failed else {"succeeded": 1, "completionTime": now})


async def _report(obj: fl.Object, kind: fl.Kind, status: dict[str, Any], ctx: ClassicContext) -> None:
    """Read the object and PUT its status. A conflict is ignored, because the next watch event causes a retry."""
    try:
        newest = await ctx.client.get(kind, obj.name, obj.namespace)
        await ctx.client.replace(fl.Object({**newest, "status": status}), subresource="status")
    except (NotFound, Conflict):
        return  # deleted or changed in the meantime: there will be an event
