"""Find clusters whose kubeconfig context may be wrong. In a wrong cluster every parent would seem absent."""

import asyncio

from fairlead.tools.orphans.clusters import CONCURRENT_CLUSTERS, Fleet, Unreachable
from fairlead.tools.orphans.evidence import Evidence


async def find_ambiguous_clusters(fleet: Fleet, evidence: Evidence) -> dict[str, str]:
    """Return the clusters in which an absent parent proves nothing, with the reason, by name.

    These are: two names for one cluster, the downstream cluster, a cluster that was first seen under another name, a
    cluster that was the same as another one that cannot be reached now, and a retired cluster that still answers.

    Does not find: a context that leads to a cluster that was never seen before.
    """
    semaphore = asyncio.Semaphore(CONCURRENT_CLUSTERS)

    async def read_uid(name: str) -> tuple[str, str]:
        async with semaphore:
            try:
                return name, await fleet.upstreams[name].uid()
            except Unreachable:
                return name, ""  # The look reports it.

    upstream_names = [name for name in fleet.upstreams if name not in fleet.retired]
    uids = dict(await asyncio.gather(*(read_uid(name) for name in upstream_names)))
    names: dict[str, list[str]] = {evidence.downstream: ["the downstream cluster"]}
    for name, uid in uids.items():
        if uid:
            names.setdefault(uid, []).append(name)
    reasons: dict[str, str] = {}
    for name, uid in uids.items():
        former_names = [
            former_name
            for former_name, record in evidence.clusters.items()
            if record.uid == uid and former_name != name
        ]
        if uid and former_names:
            reasons[name] = (
                f"it is the cluster formerly known as {former_names[0]}: correct --upstream, or "
                f"{_forget_remedy(former_names[0])}"
            )
    for uid, shared_names in list(evidence.shared.items()):
        unreachable = [name for name in shared_names if uids.get(name) == ""]
        if not unreachable:
            del evidence.shared[uid]
        elif reachable := next((name for name in shared_names if uids.get(name) == uid), ""):
            reasons[reachable] = (
                f"it was the same cluster as {unreachable[0]}, which cannot be reached now: correct --upstream"
            )
    for uid, cluster_names in names.items():
        if len(cluster_names) > 1:
            upstreams = [name for name in cluster_names if name in uids]
            reasons |= dict.fromkeys(
                upstreams, f"{' and '.join(cluster_names)} are the same cluster: correct --upstream"
            )
            evidence.shared[uid] = upstreams
    for name in fleet.retired:
        if current_names := names.get(evidence.known_uid(name) or ""):
            reasons[name] = (
                f"it is retired, but answers as {current_names[0]}: correct --retired, or {_forget_remedy(name)}"
            )
    return reasons


def _forget_remedy(name: str) -> str:
    return f"remove clusters[{name!r}] from the evidence if it has a new name"
