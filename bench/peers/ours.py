"""The controller of bench/work.py, written with fairlead."""

import fairlead as fl

op = fl.Operator("pages")
Page = fl.kind("bench.fairlead.dev/v1", "Page")


@op.reconcile(Page, owns=[fl.ConfigMap, fl.Service, fl.Deployment])
async def publish(page: fl.Object, ctx: fl.Context) -> None:
    message, labels = page.spec["message"], {"page": page.name}
    container = {"name": "web", "image": "nginx:1.29", "ports": [{"containerPort": 80}]}
    pod = {
        "metadata": {"labels": labels, "annotations": {"message": message}},
        "spec": {"containers": [container]},
    }
    await ctx.apply(fl.ConfigMap(page.name, data={"message": message}))
    await ctx.apply(fl.Service(page.name, spec={"selector": labels, "ports": [{"port": 80}]}))
    await ctx.apply(
        fl.Deployment(page.name, spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": pod})
    )
    ctx.status(message=message)


@op.cleanup(Page)
async def cleanup_page(page: fl.Object, ctx: fl.Context) -> None:
    """Do nothing: there is no external resource to clean up, but the benchmark measures the finalizer."""


if __name__ == "__main__":
    op.main()
