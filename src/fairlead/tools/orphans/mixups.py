"""Clusters that seem to be mixed up: a context that leads elsewhere than meant would make everything look gone."""

import asyncio

from fairlead.tools.orphans.clusters import AT_ONCE, Fleet, Unreachable
from fairlead.tools.orphans.evidence import Evidence


async def mixed_up(fleet: Fleet, evidence: Evidence) -> dict[str, str]:
    """The names of clusters about which nothing counts, and why: two that are one, one that is the downstream cluster
    or known by another name, one that was the same as another that cannot be asked now, a retired one that answers.

    Not noticed: a context that leads to a cluster which nobody has ever seen.
    """
    room = asyncio.Semaphore(AT_ONCE)

    async def uid(name: str) -> tuple[str, str]:
        async with room:
            try:
                return name, await fleet.upstreams[name].uid()
            except Unreachable:
                return name, ""  # the look will say so

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
            why[name] = f"it is the cluster that was known as {others[0]}: correct --upstream, or {_forget(others[0])}"
    for found, together in list(evidence.shared.items()):
        silent = [name for name in together if uids.get(name) == ""]
        if not silent:
            del evidence.shared[found]
        elif holder := next((name for name in together if uids.get(name) == found), ""):
            why[holder] = f"it was the same cluster as {silent[0]}, which cannot be asked now: correct --upstream"
    for found, alike in names.items():
        if len(alike) > 1:
            upstreams = [name for name in alike if name in uids]
            why |= dict.fromkeys(upstreams, f"{' and '.join(alike)} are one and the same cluster: correct --upstream")
            evidence.shared[found] = upstreams
    for name in fleet.retired:
        if alive := names.get(evidence.known_uid(name) or ""):
            why[name] = f"it is named as retired, and is alive as {alive[0]}: correct --retired, or {_forget(name)}"
    return why


def _forget(name: str) -> str:
    return f"remove clusters[{name!r}] from the evidence if it has a new name"
