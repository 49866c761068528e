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
    room = asyncio.Semaphore(CONCURRENT_CLUSTERS)

    async def uid(name: str) -> tuple[str, str]:
        async with room:
            try:
                return name, await fleet.upstreams[name].uid()
            except Unreachable:
                return name, ""  # The look reports it.

    asked = [name for name in fleet.upstreams if name not in fleet.retired]
    uids = dict(await asyncio.gather(*(uid(name) for name in asked)))
    names: dict[str, list[str]] = {evidence.downstream: ["the downstream cluster"]}
    for name, found in uids.items():
        if found:
            names.setdefault(found, []).append(name)
    why: dict[str, str] = {}
    for name, found in uids.items():
        others = [other for other, record in evidence.clusters.items() if record.uid == found and other != name]
        if found and others:
            why[name] = (
                f"it is the cluster formerly known as {others[0]}: correct --upstream, or {_forget_remedy(others[0])}"
            )
    for found, combine_parents in list(evidence.shared.items()):
        unreachable = [name for name in combine_parents if uids.get(name) == ""]
        if not unreachable:
            del evidence.shared[found]
        elif holder := next((name for name in combine_parents if uids.get(name) == found), ""):
            why[holder] = (
                f"it was the same cluster as {unreachable[0]}, which cannot be reached now: correct --upstream"
            )
    for found, alike in names.items():
        if len(alike) > 1:
            upstreams = [name for name in alike if name in uids]
            why |= dict.fromkeys(upstreams, f"{' and '.join(alike)} are the same cluster: correct --upstream")
            evidence.shared[found] = upstreams
    for name in fleet.retired:
        if alive := names.get(evidence.known_uid(name) or ""):
            why[name] = f"it is retired, but answers as {alive[0]}: correct --retired, or {_forget_remedy(name)}"
    return why


def _forget_remedy(name: str) -> str:
    return f"remove clusters[{name!r}] from the evidence if it has a new name"
