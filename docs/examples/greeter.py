"""The smallest operator: it creates a ConfigMap with a text for each Greeting.

fairlead run docs/examples/greeter.py --embedded --apply docs/examples/greeting.yaml
"""

import fairlead as fl

op = fl.Operator("greeter")
Greeting = fl.kind("example.com/v1", "Greeting")


@op.reconcile(Greeting, owns=[fl.ConfigMap])
async def greet(obj: fl.Object, ctx: fl.Context) -> None:
    await ctx.apply(fl.ConfigMap(obj.name, data={"text": f"Hello, {obj.spec['who']}"}))


if __name__ == "__main__":
    op.main()
