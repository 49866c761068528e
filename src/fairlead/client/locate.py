"""Find the cluster that a program talks to, in the same order as controller-runtime."""

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
    """Return the access to the cluster from the first source that exists.

    The sources are `path`, $KUBECONFIG, the pod's service account and ~/.kube/config, in this order. A `context` is
    always looked up in a kubeconfig. Raises AccessError.
    """
    if path is None and context is None and not env.get("KUBECONFIG") and incluster.is_available(env):
        return incluster.load(world, env)
    return kubeconfig.load(world, path=path, context=context, env=env)
