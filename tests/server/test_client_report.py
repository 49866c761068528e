"""The report of what each client did."""

import json

from fairlead.api.requests import HttpRequest
from fairlead.server.app import Server
from fairlead.server.client_report import ClientReport

DRY_RUN = {"dryRun": "All"}
MAPS = "/api/v1/namespaces/default/configmaps"


async def send(server, agent, method, path, body=None, query=None, **headers):
    content = None if body is None else json.dumps(body).encode()
    request = HttpRequest(method, path, query, body=content, headers={"user-agent": agent, **headers})
    return (await server.transport().request(request)).status


async def test_requests_conflicts_and_no_op_writes_are_counted_by_client():
    server = Server()
    server.clients = ClientReport()
    old = {"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"k": "new"}}
    assert (
        await send(server, "manager/v1 (linux)", "POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}}) == 201
    )
    assert await send(server, "manager/v1 (linux)", "PUT", f"{MAPS}/a", old) == 409
    merge = {"content-type": "application/merge-patch+json"}
    assert await send(server, "kubectl/v1", "PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, **merge) == 200
    assert await send(server, "kubectl/v1", "PATCH", f"{MAPS}/a", {"data": {"k": "w"}}, **merge) == 200
    assert await send(server, "kubectl/v1", "PATCH", f"{MAPS}/a", {"data": {"k": "x"}}, DRY_RUN, **merge) == 200
    assert await send(server, "kubectl/v1", "GET", f"{MAPS}/missing") == 404
    assert await send(server, "kubectl/v1", "GET", "/version") == 200
    rows = [line.split("  ") for line in server.clients.lines()]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["client", "requests", "writes", "conflicts", "other errors", "no-op writes"],
        ["kubectl/v1", "4", "3", "0", "1", "1"],
        ["manager/v1", "2", "2", "1", "0", "0"],
    ]
