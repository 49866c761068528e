"""Impersonate-* headers: a request in another's name, by someone who may.

A real server of this version also knows finer verbs (impersonate:user-info, impersonate-on:…); here only `impersonate`
lets one act as another.
"""

from typing import Final
from urllib.parse import unquote

from fairlead.server.authorization.attributes import Attributes
from fairlead.server.authorization.deciding import Authorizer, require
from fairlead.server.causes import quoted
from fairlead.server.exchange import Request
from fairlead.server.failures import bad_request
from fairlead.server.identity.users import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    as_service_account,
    service_account_groups,
)

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_GROUP_OF_EXTRAS: Final = "authentication.k8s.io"


def impersonated(request: Request, user: User, authorizer: Authorizer) -> User:
    """The user that a request acts as: its own, or the one its headers name. Refuses with 403 who may not."""
    headers = request.headers
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    groups = tuple(headers[_GROUP].splitlines()) if _GROUP in headers else ()
    extra = {
        unquote(header[len(_EXTRA) :]): tuple(value.splitlines())
        for header, value in headers.items()
        if header.startswith(_EXTRA)
    }
    if not name:
        if groups or uid or extra:
            raise bad_request(f"requested {_go(uid, groups, extra)} without impersonating a user name")
        return user
    for wanted in _asked(user, name, uid, groups, extra):
        require(authorizer, wanted)
    account = as_service_account(name)
    if account and not groups:
        groups = service_account_groups(account[0])
    joined = UNAUTHENTICATED if name == ANONYMOUS.name else AUTHENTICATED
    if not {joined, UNAUTHENTICATED} & set(groups):
        groups = (*groups, joined)
    return User(name, groups, uid, extra)


def _asked(
    user: User, name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]
) -> list[Attributes]:
    account = as_service_account(name)
    if account:
        asked = [Attributes(user, "impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])]
    else:
        asked = [Attributes(user, "impersonate", resource="users", name=name)]
    asked += [Attributes(user, "impersonate", resource="groups", name=group) for group in groups]
    asked += [
        Attributes(user, "impersonate", _GROUP_OF_EXTRAS, "v1", "userextras", key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        asked.append(Attributes(user, "impersonate", _GROUP_OF_EXTRAS, "v1", "uids", name=uid))
    return asked


def _go(uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> str:
    """The user asked for, as Go prints it."""
    listed = ", ".join(quoted(group) for group in groups)
    shown = "[]string{" + listed + "}" if groups else "[]string(nil)"
    keys = ", ".join(
        f"{quoted(key)}:[]string{{{', '.join(quoted(v) for v in values)}}}" for key, values in sorted(extra.items())
    )
    more = "map[string][]string{" + keys + "}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{shown}, Extra:{more}}}'
