"""Calling user code: `async def` on the loop, plain `def` in a thread, each with a time limit."""

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from fairlead.api.errors import UserError

log = logging.getLogger("fairlead.calls")


class ThreadPerCall(Executor):
    """A thread for each call, so that none waits for another; whoever calls bounds how many there are.

    A process that ends does not wait for them: a function that never returns must not keep it alive.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(function(*args, **named))
            except BaseException as error:  # whatever it is, it is for whoever waits
                future.set_exception(error)

        threading.Thread(target=work, name=self._name, daemon=True).start()
        return future


class HookFailed(UserError):
    """A start-up or shutdown hook raised, which is its cause. The log has the stack."""


class HandlerCancelled(Exception):
    """User code let a cancellation through that was not meant for it: a failure like any other."""


class HandlerTimeout(Exception):
    """User code did not end within its time limit."""


class BlockingContext:
    """A context as a function in a thread sees it: what is awaited elsewhere is waited for here.

    One class for every context, so that there is no second copy of their methods. After the time limit each call
    raises TimeoutError: a thread cannot be stopped, but it can be told.
    """

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop, expired: threading.Event) -> None:
        self._inner = inner
        self._loop = loop
        self._expired = expired

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if inspect.iscoroutinefunction(value):
            return lambda *args, **named: self._wait(value(*args, **named))
        if callable(value):
            return lambda *args, **named: self._handed(self._wait(_called(value, args, named)))
        return self._handed(value)

    def _handed(self, value: Any) -> Any:
        """What has verbs of its own (ctx.live, ctx.cluster("edge")) wrapped in turn; plain data as it is."""
        has_verbs = type(value).__module__.startswith(("fairlead.client", "fairlead.runtime"))
        return BlockingContext(value, self._loop, self._expired) if has_verbs else value

    def _wait(self, coroutine: Any) -> Any:
        if self._expired.is_set():
            coroutine.close()
            raise TimeoutError("this call came after the function's time limit")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _called(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(*args, **named)  # on the loop: caches and buffers are not for threads


async def call_handler(function: Callable[..., Any], *args: Any, timeout: float | None, threads: Executor) -> Any:
    """Call it and answer its result. The last argument is the context, if the function takes one.

    An `async def` is cancelled at the time limit. A plain `def` cannot be: TimedOut is raised when it has ended,
    so that whoever holds a key for it holds it until then, also when this call is cancelled.
    """
    if is_async(function):
        try:
            async with asyncio.timeout(timeout) as limit:
                return await function(*args)
        except TimeoutError as error:
            raise _timed_out(function, timeout) if limit.expired() else error from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise HandlerCancelled(
                f"{_name(function)} awaited something that was cancelled: catch CancelledError there"
            ) from error
    loop = asyncio.get_running_loop()
    *others, context = args
    expired = threading.Event()
    blocking = BlockingContext(context, loop, expired)
    work = loop.run_in_executor(threads, partial(contextvars.copy_context().run, function, *others, blocking))
    try:
        async with asyncio.timeout(timeout) as limit:
            return await asyncio.shield(work)
    except (TimeoutError, asyncio.CancelledError) as error:
        if not work.done():
            expired.set()
            await asyncio.wait([work])
            work.exception()  # it was told; what it said then is not news
        raise _timed_out(function, timeout) if limit.expired() else error from error


async def call_hook(hook: Callable[..., Any], resources: dict[str, Any], threads: Executor) -> None:
    """Call a start-up or shutdown hook. Raises HookFailed, or the UserError that it raised: that says what to do."""
    try:
        if is_async(hook):
            await hook(resources)
        else:
            await asyncio.get_running_loop().run_in_executor(threads, hook, resources)
    except UserError:
        raise
    except Exception as error:
        log.exception("hook %s failed", _name(hook))
        raise HookFailed(f"hook {_name(hook)} failed: {type(error).__name__}: {error}") from error


def _timed_out(function: Callable[..., Any], timeout: float | None) -> HandlerTimeout:
    return HandlerTimeout(
        f"{_name(function)} took longer than {timeout:g} s: make it faster, or give it more with timeout=…"
    )


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "the function"))


def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object with an async __call__
