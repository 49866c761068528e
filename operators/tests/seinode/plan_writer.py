"""A process of its own that writes a plan in one way, from the copy that it is handed, and says what came of it."""

import asyncio
import json
import sys

import fairlead as fl
from fairlead import writes
from fairlead.api.errors import Conflict
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.credentials import Static
from fairlead.client.http import HttpTransport
from fairlead_operators.seinode import legacy


async def contend(url, token, ca, cached, way, plan):
    """The id of the plan that this process goes on with; None when it was refused."""
    transport = HttpTransport(Cluster(url, ca.encode()), Static.token(token))
    client, cached = Client(transport, World(), user_agent=plan["id"]), fl.Object(cached)
    kind = fl.kind(cached.api_version, cached.kind)

    def decide(draft):
        if not draft.status.get("plan"):
            draft.status["plan"] = plan
        return draft.status["plan"]["id"]

    try:
        if way == "decide":
            return (await writes.decide(writes.Writer(client, World(), "sei"), kind, cached, decide)).result
        if way == "merge from":
            await legacy.merge_from(client, cached, {**cached.status, "plan": plan})
        else:
            await client.replace(fl.Object({**cached, "status": {**cached.status, "plan": plan}}), subresource="status")
        return plan["id"]
    except Conflict:
        return None
    finally:
        await transport.close()


if __name__ == "__main__":
    print("ready", flush=True)
    print(json.dumps(asyncio.run(contend(**json.loads(sys.stdin.readline())))))
