"""Tests of the settings of controllers: which value wins, which are rejected, and what each does."""

import asyncio
import math

import pytest

import fairlead as fl
from fairlead.runtime.tuning import RUN_SETTINGS, SETTINGS

Thing = fl.kind("test.example.com/v1", "Thing")
Other = fl.kind("test.example.com/v1", "Other")


def operator(handler=lambda obj, ctx: None, **settings):
    op = fl.Operator("tester")
    op.reconcile(Thing, **settings)(handler)
    return op


def test_the_most_specific_setting_decides_and_then_the_command_line():
    op = fl.Operator("tester", concurrency=2, resync=10, timeout=20)
    op.reconcile(Thing, concurrency=4, resync=11)(lambda obj, ctx: None)
    op.reconcile(Other)(lambda obj, ctx: None)
    overrides = {"": {"concurrency": 16, "timeout": 21}, "thing": {"concurrency": 8}}
    tunings = op.resolve_settings(overrides)
    assert (tunings["thing"].concurrency, tunings["other"].concurrency) == (8, 16)
    assert (tunings["thing"].resync, tunings["other"].resync) == (11, 10)
    assert (tunings["thing"].timeout, tunings["other"].timeout) == (21, 21)
    assert tunings["thing"].rate_limit == math.inf


WRONG = [
    ("concurrency", 0, "a whole number of at least 1; got 0"),
    ("concurrency", 1.5, "a whole number of at least 1; got 1.5"),
    ("concurrency", True, "a whole number of at least 1; got True"),
    ("rate_limit", 0, "a number greater than 0, or inf for no limit; got 0"),
    ("rate_limit", math.nan, "a number greater than 0, or inf for no limit; got nan"),
    ("resync", -1, "a number of seconds greater than 0; got -1"),
    ("resync", math.inf, "a number of seconds greater than 0; got inf"),
    ("timeout", "5", "a number of seconds greater than 0; got '5'"),
    ("backoff_base", 0, "a number of seconds greater than 0; got 0"),
    ("backoff_max", 0, "a number of seconds greater than 0; got 0"),
    ("brake_after", 1, "a whole number of at least 2, or inf for no brake; got 1"),
    ("brake_after", 2.5, "a whole number of at least 2, or inf for no brake; got 2.5"),
    ("brake_base", 0, "a number of seconds greater than 0; got 0"),
    ("brake_max", math.inf, "a number of seconds greater than 0; got inf"),
    ("request_timeout", 0, "a number of seconds greater than 0; got 0"),
    ("shutdown_timeout", 0, "a number of seconds greater than 0; got 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_wrong_value_is_rejected_with_the_rule(name, value, message):
    with pytest.raises(ValueError, match=f"^{name} is ") as rejected:
        fl.Operator("tester", **{name: value})
    assert message in str(rejected.value)
    if name in SETTINGS:
        with pytest.raises(ValueError, match=r"test_tuning.py:\d+: .* got ") as rejected:
            operator(**{name: value})
        assert message in str(rejected.value)


def test_every_setting_has_a_wrong_value_in_these_tests():
    assert {name for name, _, _ in WRONG} == SETTINGS.keys() | RUN_SETTINGS.keys()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nobody": {"concurrency": 1}}, "there is no controller 'nobody'; the controllers are thing"),
        ({"thing": {"workers": 1}}, "there is no setting 'workers': use one of concurrency, "),
        ({"": {"backoff_base": 60}}, r"controller thing: backoff_base \(60\) is greater than backoff_max \(30\)"),
    ],
)
def test_settings_that_cannot_work_are_rejected_before_the_run(overrides, message):
    with pytest.raises(fl.errors.DeclarationError, match=message):
        operator().resolve_settings(overrides)


def test_a_rate_limit_delays_one_controller_and_not_the_other(run_in_virtual_time):
    async def test(cluster):
        op, started = fl.Operator("tester"), {"Thing": [], "Other": []}
        loop = asyncio.get_running_loop()
        for kind, settings in ((Thing, {"rate_limit": 2}), (Other, {})):

            @op.reconcile(kind, **settings)
            async def reconcile(obj, ctx):
                started[obj.kind].append(loop.time())

        for number in range(6):
            await cluster.create(f"t{number}")
            await cluster.create(f"o{number}", kind=Other)
        async with cluster.running(op) as running:
            await running.wait_until_idle()
        assert started["Other"][-1] - started["Other"][0] < 0.1
        waits = [round(later - started["Thing"][0], 1) for later in started["Thing"]]
        assert waits[:6] == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0]

    run_in_virtual_time(test)


def test_back_off_and_concurrency_are_those_of_the_run(run_in_virtual_time):
    async def test(cluster):
        loop, started, at_once, most = asyncio.get_running_loop(), [], 0, 0

        async def reconcile(obj, ctx):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            started.append(loop.time())
            await asyncio.sleep(0.01)
            at_once -= 1
            raise ValueError("no such colour")

        for number in range(4):
            await cluster.create(f"t{number}")
        async with cluster.running(operator(reconcile), settings={"thing": {"concurrency": 2, "backoff_base": 20}}):
            await asyncio.sleep(19)
            assert len(started) == 4
            assert most == 2
            await asyncio.sleep(40)
            assert len(started) > 4

    run_in_virtual_time(test)


class NoAnswer:
    """A transport that never answers a read of one object."""

    def __init__(self, inner):
        self._inner = inner

    async def request(self, request):
        if request.path.endswith("/things/t"):
            async with asyncio.timeout(request.timeout):
                await asyncio.sleep(1e6)
        return await self._inner.request(request)

    async def stream(self, request):
        return await self._inner.stream(request)


def test_request_timeout_bounds_each_request(run_in_virtual_time):
    async def test(cluster):
        loop, took = asyncio.get_running_loop(), []

        async def reconcile(obj, ctx):
            started = loop.time()
            try:
                await ctx.live.get(Thing, obj.name)
            finally:
                took.append(loop.time() - started)

        await cluster.create("t")
        op = operator(reconcile, timeout=1000)
        async with op.running(NoAnswer(cluster.transport), cluster.world, request_timeout=70):
            await asyncio.sleep(400)
        assert took[0] == pytest.approx(70)

    run_in_virtual_time(test)
