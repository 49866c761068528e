"""The table of handlers, and the lookup of the handler for a route."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.server.http.messages import AnyResponse, Request
from fairlead.server.http.routing import Route
from fairlead.server.verbs import lists, watch
from fairlead.server.verbs.access_reviews import review_access, review_own_rules
from fairlead.server.verbs.authentication_reviews import request_token, review_self, review_token
from fairlead.server.verbs.create import create
from fairlead.server.verbs.delete import delete, delete_collection
from fairlead.server.verbs.get import get
from fairlead.server.verbs.patch import patch
from fairlead.server.verbs.pod_logs import read_log
from fairlead.server.verbs.pod_subresources import bind, evict
from fairlead.server.verbs.scale import get_scale, patch_scale, put_scale
from fairlead.server.verbs.update import update

if TYPE_CHECKING:
    from fairlead.server.app import Server

Handler = Callable[["Server", Request, Route], AnyResponse]

_VERBS: dict[str, Handler] = {
    "get": get,
    "list": lists.list_objects,
    "watch": watch.watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
_POD_VERBS: dict[str, Handler] = {"binding": bind, "eviction": evict, "log": read_log}
_SUBRESOURCE_VERBS: dict[str, dict[str, Handler]] = {
    "scale": {"get": get_scale, "update": put_scale, "patch": patch_scale},
    "binding": _POD_VERBS,
    "eviction": _POD_VERBS,
    "log": _POD_VERBS,
    "token": {"create": request_token},
}
_REVIEWS: dict[str, Handler] = {
    "tokenreviews": review_token,
    "selfsubjectreviews": review_self,
    "selfsubjectrulesreviews": review_own_rules,
    "selfsubjectaccessreviews": review_access,
    "subjectaccessreviews": review_access,
    "localsubjectaccessreviews": review_access,
}


def find_handler(route: Route) -> Handler:
    """Return the handler function for the kind, subresource and verb of a route."""
    review = _REVIEWS.get(route.resource.plural) if not route.resource.custom else None
    return review or _SUBRESOURCE_VERBS.get(route.subresource, _VERBS)[route.verb]
