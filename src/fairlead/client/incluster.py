"""Access to the API server from inside a pod, with the pod's service account."""

from collections.abc import Mapping
from pathlib import Path

from fairlead.api.world import World
from fairlead.client.access import Access, AccessError, Cluster
from fairlead.client.credentials import TokenFileCredentials

MOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_available(env: Mapping[str, str]) -> bool:
    """Return whether this process runs in a pod with a service account."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and (MOUNT / "token").exists()


def load(world: World, env: Mapping[str, str]) -> Access:
    """Return the access of a pod to its API server: address, CA and service account token.

    The token file is read again when it rotates, the CA file only once. Raises AccessError outside of a pod.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise AccessError("not inside a cluster: KUBERNETES_SERVICE_HOST is not set; name a kubeconfig instead")
    try:
        ca = (MOUNT / "ca.crt").read_bytes()
    except OSError as error:
        raise AccessError(
            f"cannot read {MOUNT / 'ca.crt'} ({error.strerror}): mount the service account "
            "(automountServiceAccountToken: true)"
        ) from error
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(
        "in-cluster",
        Cluster(server, ca),
        TokenFileCredentials(MOUNT / "token", world),
        _read_namespace(env),
        in_cluster=True,
    )


def _read_namespace(env: Mapping[str, str]) -> str:
    if namespace := env.get("POD_NAMESPACE"):
        return namespace
    try:
        return (MOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
