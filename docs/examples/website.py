"""A Website is served by a Deployment, and its name is registered with somebody outside of the cluster.

fairlead run docs/examples/website.py --embedded --apply docs/examples/website.yaml
"""

from typing import Any

import fairlead as fl

op = fl.Operator("websites")
Website = fl.kind("example.com/v1", "Website")


class Registrar:
    """Stands for a name service that is reached over the network."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    async def register(self, name: str, owner: str) -> bool:
        return self.names.setdefault(name, owner) == owner

    async def release(self, name: str, owner: str) -> None:
        if self.names.get(name) == owner:  # already released is fine: clean-up may run twice
            del self.names[name]


@op.startup
def connect(resources: dict[str, Any]) -> None:
    resources.setdefault("registrar", Registrar())  # a test puts its own there


@op.reconcile(Website, owns=[fl.ConfigMap, fl.Deployment])
async def serve(site: fl.Object, ctx: fl.Context) -> None:
    # A decision that must be made once: whoever comes second keeps it.
    port = await ctx.decide(lambda draft: draft.status.setdefault("port", 8080))
    if not await ctx.resources["registrar"].register(site.spec["host"], site.uid):
        raise fl.Terminal("HostTaken", f"{site.spec['host']} belongs to somebody else")

    await ctx.apply(fl.ConfigMap(site.name, data={"index.html": site.spec["html"]}))
    deployment = await ctx.apply(fl.Deployment(site.name, spec=deployment_spec(site, port)))

    ctx.status(url=f"http://{site.spec['host']}:{port}")
    if not deployment.is_true("Available"):
        raise fl.Wait("Starting", "the deployment is not available yet")  # its next event wakes us
    ctx.event("Serving", f"{site.spec['host']} is up")


@op.cleanup(Website)
async def leave(site: fl.Object, ctx: fl.Context) -> None:
    await ctx.resources["registrar"].release(site.spec["host"], site.uid)


def deployment_spec(site: fl.Object, port: int) -> dict[str, Any]:
    labels = {"website": site.name}
    server = {
        "name": "server",
        "image": "busybox:1.37",
        "command": ["httpd", "-f", "-p", str(port), "-h", "/www"],
        "ports": [{"containerPort": port}],
        "volumeMounts": [{"name": "www", "mountPath": "/www"}],
    }
    pod = {"containers": [server], "volumes": [{"name": "www", "configMap": {"name": site.name}}]}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}


if __name__ == "__main__":
    op.main()
