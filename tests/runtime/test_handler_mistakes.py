"""Tests that mistakes in user code are reported with the user's file and line, at declaration or at the first pass."""

import asyncio
import inspect
import re

import pytest

import fairlead as fl

Thing = fl.kind("test.example.com/v1", "Thing")
THIS_FILE = r"test_handler_mistakes\.py:"


def line_of(function, text):
    """Return the number of the first line in the function's source that contains the text."""
    lines, first_line = inspect.getsourcelines(function)
    return next(first_line + number for number, line in enumerate(lines) if text in line)


def operator(reconcile, **options):
    op = fl.Operator("tester")
    op.reconcile(Thing, **options)(reconcile)
    return op


def run_and_get_ready_message(run_in_virtual_time, caplog, reconcile):
    """Reconcile one object with the handler and return the message of its Ready condition."""

    async def test(cluster):
        await cluster.create("thing")
        async with cluster.running(operator(reconcile, owns=[fl.ConfigMap])):
            await asyncio.sleep(1)
        return (await cluster.get_thing("thing")).condition("Ready")["message"]

    message = run_in_virtual_time(test)
    assert "Traceback" not in caplog.text
    return message


# At declaration


def test_reconcile_handler_without_context_is_rejected():
    def greet(obj): ...

    with pytest.raises(
        fl.errors.DeclarationError, match=rf"{THIS_FILE}\d+: greet\(obj\) .* called as greet\(obj, ctx\)"
    ):
        operator(greet)


def test_cleanup_handler_without_context_is_rejected():
    with pytest.raises(fl.errors.DeclarationError, match=THIS_FILE):
        fl.Operator("tester").cleanup(Thing)(lambda obj: None)


def test_hook_without_resources_is_rejected():
    async def connect(): ...

    op = fl.Operator("tester")
    for decorator in (op.startup, op.shutdown):
        with pytest.raises(fl.errors.DeclarationError, match=r"called as connect\(resources\)"):
            decorator(connect)


def test_timer_without_argument_is_rejected():
    with pytest.raises(fl.errors.DeclarationError, match=THIS_FILE):
        fl.Operator("tester").timer(5)(lambda: None)


@pytest.mark.parametrize("name", ["when", "watches", "index"])
def test_async_function_that_nothing_awaits_is_rejected(name):
    async def choose(obj): ...

    declarations = {
        "when": lambda: operator(lambda obj, ctx: None, when=choose),
        "watches": lambda: operator(lambda obj, ctx: None, watches={fl.Secret: choose}),
        "index": lambda: fl.Operator("tester").index(Thing, "name")(choose),
    }
    with pytest.raises(
        fl.errors.DeclarationError, match=rf"{THIS_FILE}\d+: choose is not awaited: make it a plain `def`"
    ):
        declarations[name]()


@pytest.mark.parametrize("decorator", ["reconcile", "cleanup"])
def test_decorator_without_a_kind_is_rejected(decorator):
    def handler(obj, ctx): ...

    with pytest.raises(fl.errors.DeclarationError, match=rf"{THIS_FILE}\d+: @op.{decorator} needs a kind first"):
        getattr(fl.Operator("tester"), decorator)(handler)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [({"owns": fl.ConfigMap}, r"owns=\[fl.ConfigMap\]"), ({"watches": [fl.Secret]}, r"watches=\{fl.Secret: None\}")],
)
def test_wrong_type_of_owns_or_watches_is_rejected(options, remedy):
    with pytest.raises(fl.errors.DeclarationError, match=rf"{THIS_FILE}\d+: .*{remedy}"):
        operator(lambda obj, ctx: None, **options)


def test_unknown_keyword_of_the_decorator_fails_at_the_callers_line():
    with pytest.raises(TypeError, match="unexpected keyword argument 'own'") as failure:
        operator(lambda obj, ctx: None, own=[fl.ConfigMap])
    assert failure.traceback[-1].path.name == "test_handler_mistakes.py"


def test_unknown_field_of_a_payload_names_the_line_and_the_similar_field():
    with pytest.raises(fl.errors.PayloadError, match=r"ConfigMap has no field dta: did you mean data\?") as failure:
        fl.ConfigMap("name", dta={})
    line = line_of(test_unknown_field_of_a_payload_names_the_line_and_the_similar_field, "fl.ConfigMap(")
    assert f"test_handler_mistakes.py:{line}: " in str(failure.value)


# At the first pass


def test_returned_value_is_reported_with_the_remedy(run_in_virtual_time, caplog):
    async def reconcile(obj, ctx):
        return {"phase": "Done"}

    message = run_and_get_ready_message(run_in_virtual_time, caplog, reconcile)
    line = reconcile.__code__.co_firstlineno
    assert f"test_handler_mistakes.py:{line}: reconcile returned a value of type dict" in message
    assert "raise fl.RequeueAfter(seconds)" in message


def test_returned_outcome_is_reported(run_in_virtual_time, caplog):
    async def reconcile(obj, ctx):
        return fl.RequeueAfter(5)

    assert "returned fl.RequeueAfter, which has no effect" in run_and_get_ready_message(
        run_in_virtual_time, caplog, reconcile
    )


def test_coroutine_returned_by_a_plain_function_is_reported(run_in_virtual_time, caplog):
    async def work(obj, ctx): ...

    def reconcile(obj, ctx):
        return work(obj, ctx)

    assert "reconcile returned a coroutine that nothing awaits" in run_and_get_ready_message(
        run_in_virtual_time, caplog, reconcile
    )


def test_forgotten_await_is_reported_at_the_line_of_the_call(run_in_virtual_time, caplog):
    async def reconcile(obj, ctx):
        ctx.apply(fl.ConfigMap("child", data={}))

    message = run_and_get_ready_message(run_in_virtual_time, caplog, reconcile)
    line = line_of(reconcile, "ctx.apply")
    assert f"test_handler_mistakes.py:{line}: the result of apply(…) was never awaited" in message


def test_forgotten_await_is_reported_when_its_result_is_used(run_in_virtual_time, caplog):
    async def reconcile(obj, ctx):
        child = ctx.apply(fl.ConfigMap("child", data={}))
        ctx.status(child=child.name)

    assert "apply(…) was never awaited" in run_and_get_ready_message(run_in_virtual_time, caplog, reconcile)


def test_error_before_an_await_is_not_mistaken_for_a_forgotten_await(run_in_virtual_time, caplog):
    async def reconcile(obj, ctx):
        await asyncio.gather(ctx.apply(fl.ConfigMap("child", data={})), raise_error())

    def raise_error():
        raise fl.errors.UserError("no such colour")

    assert run_and_get_ready_message(run_in_virtual_time, caplog, reconcile) == "no such colour"


def test_gathered_and_scheduled_writes_count_as_awaited(run_in_virtual_time, caplog):
    async def test(cluster):
        async def reconcile(obj, ctx):
            await asyncio.gather(*(ctx.apply(fl.ConfigMap(name, data={})) for name in "ab"))
            task = asyncio.create_task(ctx.apply(fl.ConfigMap("c", data={})))
            await task

        await cluster.create("thing")
        async with cluster.running(operator(reconcile, owns=[fl.ConfigMap])) as running:
            await running.wait_until_idle()
        assert (await cluster.get_thing("thing")).is_true("Ready")

    run_in_virtual_time(test)


@pytest.mark.parametrize("hook", ["startup", "shutdown"])
def test_coroutine_returned_by_a_hook_is_reported(run_in_virtual_time, hook):
    async def connect(resources): ...

    async def test(cluster):
        op = fl.Operator("tester")
        getattr(op, hook)(lambda resources: connect(resources))
        with pytest.raises(fl.errors.HandlerError, match=rf"{THIS_FILE}\d+: <lambda> returned a coroutine"):
            async with cluster.running(op):
                pass

    run_in_virtual_time(test)


def test_coroutine_returned_by_a_timer_is_reported(run_in_virtual_time, caplog):
    async def work(view): ...

    async def test(cluster):
        op = fl.Operator("tester")
        op.timer(1)(lambda view: work(view))
        async with cluster.running(op):
            await asyncio.sleep(1.5)

    run_in_virtual_time(test)
    assert re.search(rf"{THIS_FILE}\d+: <lambda> returned a coroutine", caplog.text)
    assert "Traceback" not in caplog.text


# Raised outcomes


def test_outcome_raised_by_a_helper_ends_the_pass_and_keeps_the_status(run_in_virtual_time):
    async def test(cluster):
        calls = []

        def stop_here():
            raise fl.RequeueAfter(100)

        async def reconcile(obj, ctx):
            calls.append(obj.name)
            ctx.status(phase="Polling")
            stop_here()

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)) as running:
            await running.wait_until_idle()
            calls.clear()
            await asyncio.sleep(1001)
        thing = await cluster.get_thing("thing")
        assert (thing.status["phase"], thing.is_true("Ready"), len(calls)) == ("Polling", True, 10)

    run_in_virtual_time(test)


def test_negative_requeue_after_is_rejected():
    with pytest.raises(ValueError, match="not negative"):
        fl.RequeueAfter(-1)


# Tracebacks


def test_traceback_is_logged_once_while_retries_fail_in_the_same_way(run_in_virtual_time, caplog):
    async def test(cluster):
        async def reconcile(obj, ctx):
            raise KeyError("colour")

        await cluster.create("thing")
        async with cluster.running(operator(reconcile)):
            await asyncio.sleep(90)

    run_in_virtual_time(test)
    assert caplog.text.count("KeyError: 'colour'") == 3  # the first line, its traceback, and one after a minute
    assert re.search(r"KeyError: 'colour': the same error, 1\d times in \d\d s", caplog.text)
    assert caplog.text.count("Traceback") == 1
    assert "handlers.py" not in caplog.text, "the traceback starts in the handler"
