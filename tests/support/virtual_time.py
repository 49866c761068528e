"""Run tests in virtual time: the one helper for all test folders."""

import functools
import inspect

from fairlead.testing import virtual


def run_in_virtual_time(test, environment=None):
    """Run an async function in virtual time and return its result.

    `environment` returns an async context manager. The test gets its value as the first argument.
    """

    async def main():
        if environment is None:
            return await test()
        async with environment() as value:
            return await test(value)

    return virtual.run(main())


def in_virtual_time(test=None, *, environment=None):
    """Decorate an async test so that pytest runs it in virtual time. Its arguments are fixtures.

    If there is an `environment`, its value is the first argument and the fixtures follow.
    """
    if test is None:
        return functools.partial(in_virtual_time, environment=environment)

    @functools.wraps(test)
    def run(**fixtures):
        return run_in_virtual_time(functools.partial(test, **fixtures), environment)

    parameters = list(inspect.signature(test).parameters.values())
    run.__signature__ = inspect.Signature(parameters if environment is None else parameters[1:])
    return run
