"""Which server is meant when nobody says: the order that controller-runtime's users know."""

import os
from collections.abc import Mapping
from pathlib import Path

from fairlead.api.world import World
from fairlead.client import incluster, kubeconfig
from fairlead.client.access import Access


def locate(
    world: World,
    *,
    path: Path | None = None,
    context: str | None = None,
    env: Mapping[str, str] = os.environ,
) -> Access:
    """The named kubeconfig; else those of $KUBECONFIG; else the pod's service account; else ~/.kube/config.

    A named context is looked up in a kubeconfig always. Raises AccessError.
    """
    if path is None and context is None and not env.get("KUBECONFIG") and incluster.is_available(env):
        return incluster.load(world, env)
    return kubeconfig.load(world, path=path, context=context, env=env)
