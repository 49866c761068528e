"""Impersonate-* headers: a request in another's name, by someone who may.

The verb `impersonate` lets one act as another in everything. The finer ones let one act as another only in some things:
impersonate:user-info (or :serviceaccount, :arbitrary-node) on whom, and impersonate-on:user-info:list on what. A real
server knows one more, :associated-node, for agents of a node's own; it is not here.
"""

from dataclasses import replace
from typing import Final
from urllib.parse import unquote

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
from fairlead.server.errors.field_errors import quote_go
from fairlead.server.errors.statuses import StatusError, bad_request
from fairlead.server.http.messages import Request

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_API_GROUP: Final = "authentication.k8s.io"
_NODE: Final = "system:node:"


def resolve_impersonation(request: Request, user: User, authorizer: Authorizer) -> User:
    """The user that a request acts as: its own, or the one its headers name. Refuses with 403 who may not."""
    wanted = _wanted(request)
    if wanted is None:
        return user
    refused: StatusError | None = None
    for mode in (_finer(wanted), ""):
        if mode is None:
            continue
        try:
            _check(authorizer, user, wanted, mode, request)
        except StatusError as failure:
            refused = refused or failure  # the finer mode's tells more
            continue
        request.constraint = f"impersonate:{mode}" if mode else ""
        return _completed(wanted, mode)
    assert refused is not None
    raise refused


def _wanted(request: Request) -> User | None:
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
        raise bad_request(f"requested {_go(uid, groups, extra)} without impersonating a user name")
    return None


def _finer(wanted: User) -> str | None:
    """The constrained mode that a user falls under; accounts and nodes only by their bare names."""
    bare = not (wanted.groups or wanted.uid or wanted.extra)
    if as_service_account(wanted.name):
        return "serviceaccount" if bare else None
    if wanted.name.startswith(_NODE):
        return "arbitrary-node" if bare else None
    return "user-info"


def _check(authorizer: Authorizer, user: User, wanted: User, mode: str, request: Request) -> None:
    """Raise unless every part of the wanted user may be impersonated, and in this very request."""
    if mode:
        asked = request_attributes(request)
        require_access(authorizer, replace(asked, verb=f"impersonate-on:{mode}:{asked.verb}"))
    verb, group = (f"impersonate:{mode}", _API_GROUP) if mode else ("impersonate", "")
    account = as_service_account(wanted.name)
    named = Attributes(user, verb, group, "v1", "users", name=wanted.name)
    if account:
        named = replace(named, resource="serviceaccounts", namespace=account[0], name=account[1])
    elif mode == "arbitrary-node":
        named = replace(named, resource="nodes", name=wanted.name.removeprefix(_NODE))
    require_access(authorizer, named)
    if wanted.uid:
        require_access(authorizer, Attributes(user, verb, _API_GROUP, "v1", "uids", name=wanted.uid))
    for one in wanted.groups:
        grouped = Attributes(user, verb, group, "v1", "groups", name=one)
        if mode and one == MASTERS:
            raise access_denied(grouped, "impersonating the system:masters group is not allowed")
        require_access(authorizer, grouped)
    for key, values in wanted.extra.items():
        for value in values:
            require_access(authorizer, Attributes(user, verb, _API_GROUP, "v1", "userextras", key, name=value))


def _completed(wanted: User, mode: str) -> User:
    """The user with the groups that come with the name."""
    account = as_service_account(wanted.name)
    groups = wanted.groups
    if account and not groups:
        groups = service_account_groups(account[0])
    elif mode == "arbitrary-node":
        groups = ("system:nodes",)
    joined = UNAUTHENTICATED if wanted.name == ANONYMOUS.name else AUTHENTICATED
    if not {joined, UNAUTHENTICATED} & set(groups):
        groups = (*groups, joined)
    return replace(wanted, groups=groups)


def _go(uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> str:
    """The user asked for, as Go prints it."""
    listed = ", ".join(quote_go(group) for group in groups)
    shown = "[]string{" + listed + "}" if groups else "[]string(nil)"
    keys = ", ".join(
        f"{quote_go(key)}:[]string{{{', '.join(quote_go(v) for v in values)}}}" for key, values in sorted(extra.items())
    )
    more = "map[string][]string{" + keys + "}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote_go(uid)}, Groups:{shown}, Extra:{more}}}'
