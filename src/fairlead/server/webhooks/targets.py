"""The clientConfig of a webhook: where a call goes."""

import base64
import posixpath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fairlead.server.registry.resource import Object
from fairlead.server.webhooks.calls import ServiceTarget, WebhookCall

if TYPE_CHECKING:
    from fairlead.server.storage.store import Store

_DEFAULT_TIMEOUT = 10  # seconds, of an admission webhook


def build_call(store: "Store", client: Object, body: bytes, timeout: int | None, user_agent: str) -> WebhookCall:
    """Return the call for the clientConfig of a webhook."""
    service = client.get("service")
    ca_bundle = base64.b64decode(client.get("caBundle") or "")
    seconds = timeout or _DEFAULT_TIMEOUT
    if service is None:
        parts = urlsplit(client["url"])
        url = f"https://{parts.netloc}{_clean_path(parts.path)}"
        return WebhookCall(url, None, ca_bundle, body, seconds, user_agent)
    namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
    stored = store.table("", "services").get(namespace, name)
    cluster_ip = (stored.object["spec"].get("clusterIP") or "None") if stored else ""
    url = f"https://{name}.{namespace}.svc:{port}{_clean_path(service.get('path') or '')}"
    return WebhookCall(url, ServiceTarget(namespace, name, port, cluster_ip), ca_bundle, body, seconds, user_agent)


def _clean_path(path: str) -> str:
    """Return a path without empty, `.` and `..` segments. envtest configures paths that start with two slashes."""
    return "/" + posixpath.normpath("/" + path).lstrip("/")
