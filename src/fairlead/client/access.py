"""Access to a server: where it is, who we are to it, which namespace is meant when none is named."""

from dataclasses import dataclass, field

from fairlead.api.errors import UserError
from fairlead.client.credentials import Credentials


class AccessError(UserError):
    """What should say how to reach a server does not. One line, with the remedy."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a server is and how it proves who it is."""

    server: str
    ca_data: bytes | None = None  # PEM; without it, what the system trusts
    insecure: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = field(default=None, repr=False)  # may hold a password


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster, credentials for it, the default namespace, and what to call it in messages."""

    name: str
    cluster: Cluster
    credentials: Credentials
    namespace: str = "default"
    in_cluster: bool = False  # a pod's own access: others like it may run beside this process
