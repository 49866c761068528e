"""Run tests in virtual time."""

import functools
import inspect

from fairlead.testing import virtual


def run_in_virtual_time(test, environment=None):
    """Run an async function in virtual time and return its result.

    `environment` returns an async context manager. Its value is the first argument of the test.
    """

    async def main():
        if environment is None:
            return await test()
        async with environment() as value:
            return await test(value)

    return virtual.run(main())


def in_virtual_time(test=None, *, environment=None):
    """Decorate an async test so that pytest runs it in virtual time. The test may use fixtures.

    If `environment` is set, its value is the first argument of the test, before the fixtures.
    """
    if test is None:
        return functools.partial(in_virtual_time, environment=environment)

    @functools.wraps(test)
    def run(**fixtures):
        return run_in_virtual_time(functools.partial(test, **fixtures), environment)

    parameters = list(inspect.signature(test).parameters.values())
    run.__signature__ = inspect.Signature(parameters if environment is None else parameters[1:])
    return run
