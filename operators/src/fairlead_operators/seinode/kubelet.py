"""What a cluster does around the operator: Jobs end and StatefulSets roll out, some time after they were asked for."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import fairlead as fl
from fairlead.api.errors import Conflict, NotFound
from fairlead.api.times import rfc3339
from fairlead.client.client import Client
from fairlead_operators import old_way
from fairlead_operators.old_way import Key, View

WORK = 2.0
"""Seconds that a Job or a rollout takes."""


def running(
    client: Client, world: fl.World, *, namespace: str | None = None, work: float = WORK, failing: bool = False
) -> AbstractAsyncContextManager[View]:
    """The cluster at work; `failing`: its Jobs fail."""

    async def reconcile(key: Key, view: View) -> None:
        stateful_set = view.get(fl.StatefulSet, key)
        if stateful_set is not None and stateful_set.status.get("observedGeneration") != stateful_set.generation:
            await asyncio.sleep(work)
            revision = {"observedGeneration": stateful_set.generation, "currentRevision": "1", "updateRevision": "1"}
            pods = dict.fromkeys(("replicas", "readyReplicas", "currentReplicas", "updatedReplicas"), 1)
            await _report(stateful_set, fl.StatefulSet, {**revision, **pods}, view)
        for job in view.list(fl.Job, key[0]):
            if job.labels.get("sei.io/node") == key[1] and not job.status.get("conditions"):
                await asyncio.sleep(work)
                await _report(job, fl.Job, _ended(job, rfc3339(view.world.clock.now()), failing), view)

    return old_way.running(
        client,
        world,
        reconcile,
        namespace=namespace,
        primary=fl.StatefulSet,
        watches={fl.Job: lambda job, view: [(job.namespace, job.labels.get("sei.io/node", ""))]},
        workers=1000,
    )


def _ended(job: fl.Object, now: str, failing: bool) -> dict[str, Any]:
    first, last = ("FailureTarget", "Failed") if failing else ("SuccessCriteriaMet", "Complete")
    said = {"status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    if failing:
        said |= {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    status: dict[str, Any] = {"startTime": job.status.get("startTime") or now, "uncountedTerminatedPods": {}}
    status["conditions"] = [{"type": first, **said}, {"type": last, **said}]
    return status | ({"failed": 4} if failing else {"succeeded": 1, "completionTime": now})


async def _report(obj: fl.Object, kind: fl.Kind, status: dict[str, Any], view: View) -> None:
    """On the newest copy: what happened in the cluster happened."""
    try:
        newest = await view.client.get(kind, obj.name, obj.namespace)
        await view.client.replace(fl.Object({**newest, "status": status}), subresource="status")
    except (NotFound, Conflict):
        return  # gone, or changed meanwhile: its event is on the way
