"""Impersonate-* headers: a user sends a request on behalf of another user.

With the verb `impersonate` on the other user, all requests are allowed. Constrained impersonation allows only some
requests. It needs impersonate:user-info (or :serviceaccount, :arbitrary-node) on the other user, and for example
impersonate-on:user-info:list on the resource. The mode :associated-node of a real server is not implemented.
"""

from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from fairlead.api.gojson import quote_go
from fairlead.server.authentication.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    User,
    as_service_account,
    service_account_groups,
)
from fairlead.server.authorization.attributes import Attributes, request_attributes
from fairlead.server.authorization.authorizer import Authorizer, access_denied, require_access
from fairlead.server.errors.statuses import StatusError, bad_request
from fairlead.server.http.messages import Request

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_API_GROUP: Final = "authentication.k8s.io"
_NODE: Final = "system:node:"


def resolve_impersonation(request: Request, user: User, authorizer: Authorizer) -> User:
    """Return the user that the Impersonate-* headers name, or `user` without such headers.

    Raises 403 if not allowed.
    """
    target = _parse_headers(request)
    if target is None:
        return user
    denied: StatusError | None = None
    for mode in (_find_constrained_mode(target), ""):
        if mode is None:
            continue
        try:
            _check_access(authorizer, user, target, mode, request)
        except StatusError as error:
            denied = denied or error  # the error of the constrained mode says more
            continue
        request.constraint = f"impersonate:{mode}" if mode else ""
        return _add_groups(target, mode)
    assert denied is not None
    raise denied


def _parse_headers(request: Request) -> User | None:
    """Return the user that the Impersonate-* headers name, or None without such headers."""
    headers = request.headers
    if "impersonate-" not in "\n".join(headers):
        return None
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    groups = tuple(headers[_GROUP].split("\n")) if _GROUP in headers else ()
    extra = {
        unquote(header[len(_EXTRA) :]): tuple(value.split("\n"))
        for header, value in headers.items()
        if header.startswith(_EXTRA)
    }
    if name:
        return User(name, groups, uid, extra)
    if groups or uid or extra:
        raise bad_request(f"requested {_format_go_user(uid, groups, extra)} without impersonating a user name")
    return None


def _find_constrained_mode(target: User) -> str | None:
    """Return user-info, serviceaccount or arbitrary-node, or None if the target allows no constrained impersonation.

    A ServiceAccount or a node must be named without groups, uid and extra.
    """
    has_only_a_name = not (target.groups or target.uid or target.extra)
    if as_service_account(target.name):
        return "serviceaccount" if has_only_a_name else None
    if target.name.startswith(_NODE):
        return "arbitrary-node" if has_only_a_name else None
    return "user-info"


def _check_access(authorizer: Authorizer, user: User, target: User, mode: str, request: Request) -> None:
    """Raise 403 unless `user` may impersonate the name, uid, groups and extra of `target` for this request."""
    if mode:
        attributes = request_attributes(request)
        require_access(authorizer, replace(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}"))
    verb, group = (f"impersonate:{mode}", _API_GROUP) if mode else ("impersonate", "")
    account = as_service_account(target.name)
    identity = Attributes(user, verb, group, "v1", "users", name=target.name)
    if account:
        identity = replace(identity, resource="serviceaccounts", namespace=account[0], name=account[1])
    elif mode == "arbitrary-node":
        identity = replace(identity, resource="nodes", name=target.name.removeprefix(_NODE))
    require_access(authorizer, identity)
    if target.uid:
        require_access(authorizer, Attributes(user, verb, _API_GROUP, "v1", "uids", name=target.uid))
    for name in target.groups:
        membership = Attributes(user, verb, group, "v1", "groups", name=name)
        if mode and name == MASTERS:
            raise access_denied(membership, "impersonating the system:masters group is not allowed")
        require_access(authorizer, membership)
    for key, values in target.extra.items():
        for value in values:
            require_access(authorizer, Attributes(user, verb, _API_GROUP, "v1", "userextras", key, name=value))


def _add_groups(target: User, mode: str) -> User:
    """Return the user with the groups that the user name implies, such as system:serviceaccounts."""
    account = as_service_account(target.name)
    groups = target.groups
    if account and not groups:
        groups = service_account_groups(account[0])
    elif mode == "arbitrary-node":
        groups = ("system:nodes",)
    group = UNAUTHENTICATED if target.name == ANONYMOUS.name else AUTHENTICATED
    if not {group, UNAUTHENTICATED} & set(groups):
        groups = (*groups, group)
    return replace(target, groups=groups)


def _format_go_user(uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> str:
    """Format the requested user as Go's %#v prints its struct."""
    listed = ", ".join(quote_go(group) for group in groups)
    groups_text = "[]string{" + listed + "}" if groups else "[]string(nil)"
    keys = ", ".join(
        f"{quote_go(key)}:[]string{{{', '.join(quote_go(v) for v in values)}}}" for key, values in sorted(extra.items())
    )
    extra_text = "map[string][]string{" + keys + "}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote_go(uid)}, Groups:{groups_text}, Extra:{extra_text}}}'
