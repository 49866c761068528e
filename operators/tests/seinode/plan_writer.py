"""The subprocess of test_processes.py: it writes a plan, based on the copy in its input, and prints the plan id."""

import asyncio
import json
import sys

import fairlead as fl
from fairlead import writes
from fairlead.api.errors import Conflict
from fairlead.api.world import World
from fairlead.client.access import Cluster
from fairlead.client.client import Client
from fairlead.client.credentials import StaticCredentials
from fairlead.client.http import HttpTransport
from fairlead_operators.seinode import legacy


async def write_plan(url, token, ca, cached, method, plan):
    """Write the plan. Return the id of the plan that this process would execute, or None after a conflict."""
    transport = HttpTransport(Cluster(url, ca.encode()), StaticCredentials.token(token))
    client, cached = Client(transport, World(), user_agent=plan["id"]), fl.Object(cached)
    kind = fl.kind(cached.api_version, cached.kind)

    def decide(draft):
        if not draft.status.get("plan"):
            draft.status["plan"] = plan
        return draft.status["plan"]["id"]

    try:
        if method == "decide":
            return (await writes.decide(writes.Writer(client, World(), "sei"), kind, cached, decide)).result
        if method == "merge from":
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
    print(json.dumps(asyncio.run(write_plan(**json.loads(sys.stdin.readline())))))
