"""What a client needs to reach an API server: address, credentials and default namespace."""

from dataclasses import dataclass, field

from fairlead.api.errors import UserError
from fairlead.client.credentials import Credentials


class AccessError(UserError):
    """The kubeconfig or the pod does not say how to reach an API server. The message is one line that names the fix."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of an API server and the settings that verify its TLS certificate."""

    server: str
    ca_data: bytes | None = None  # PEM; None means the CAs of the system
    insecure: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = field(default=None, repr=False)  # may contain a password


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster, the credentials for it, the default namespace, and the name of the cluster in messages."""

    name: str
    cluster: Cluster
    credentials: Credentials
    namespace: str = "default"
    in_cluster: bool = False  # the access of a pod: other replicas may run at the same time
