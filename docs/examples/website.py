"""An operator that serves each Website with a Deployment and registers its host name with an external service.

fairlead run docs/examples/website.py --embedded --apply docs/examples/website.yaml
"""

from typing import Any

import fairlead as fl

op = fl.Operator("websites")
Website = fl.kind("example.com/v1", "Website")


class Registrar:
    """A stand-in for a name service on the network."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    async def register(self, name: str, owner: str) -> bool:
        return self.names.setdefault(name, owner) == owner

    async def release(self, name: str, owner: str) -> None:
        if self.names.get(name) == owner:  # Cleanup may run twice, so the name may be released already.
            del self.names[name]


@op.startup
def connect(resources: dict[str, Any]) -> None:
    resources.setdefault("registrar", Registrar())  # A test passes its own.


@op.reconcile(Website, owns=[fl.ConfigMap, fl.Deployment])
async def serve(site: fl.Object, ctx: fl.Context) -> None:
    # The port is chosen once. Later passes keep it.
    port = await ctx.decide(lambda draft: draft.status.setdefault("port", 8080))
    if not await ctx.resources["registrar"].register(site.spec["host"], site.uid):
        raise fl.Terminal("HostTaken", f"{site.spec['host']} belongs to another Website")

    await ctx.apply(fl.ConfigMap(site.name, data={"index.html": site.spec["html"]}))
    deployment = await ctx.apply(fl.Deployment(site.name, spec=deployment_spec(site, port)))

    ctx.status(url=f"http://{site.spec['host']}:{port}")
    if not deployment.is_true("Available"):  # The next change of the Deployment starts a pass.
        raise fl.Wait("Starting", "the deployment is not available yet")
    ctx.event("Serving", f"{site.spec['host']} is up")


@op.cleanup(Website)
async def unregister(site: fl.Object, ctx: fl.Context) -> None:
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
