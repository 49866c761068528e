"""Access to a server: its address, the credentials for it, and the default namespace."""

from dataclasses import dataclass, field

from fairlead.api.errors import UserError
from fairlead.client.credentials import Credentials


class AccessError(UserError):
    """The configuration does not say how to reach a server. The message is one line, with the fix."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of a server and how to verify it."""

    server: str
    ca_data: bytes | None = None  # PEM; None means the CAs of the system
    insecure: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = field(default=None, repr=False)  # may contain a password


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster, the credentials for it, the default namespace, and its name in messages."""

    name: str
    cluster: Cluster
    credentials: Credentials
    namespace: str = "default"
    in_cluster: bool = False  # the access of a pod: other replicas may run at the same time
