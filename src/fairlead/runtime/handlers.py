"""Call user code: `async def` handlers on the event loop, plain `def` handlers in a thread, with a time limit.

Mistakes in user code that a traceback of fairlead's frames would hide (a wrong signature, a wrong return value, a
forgotten `await`) are reported with the file and line of the user's code.
"""

import asyncio
import contextvars
import functools
import inspect
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from fairlead.api.errors import UserError
from fairlead.api.source_locations import function_location, with_location
from fairlead.runtime.outcomes import Outcome
from fairlead.runtime.sources import DeclarationError

log = logging.getLogger("fairlead.handlers")


class HandlerError(UserError):
    """A handler has a programming error: it returns a value, or forgets an `await`.

    The message starts with the file and line of the user's code and names the fix.
    """


class HookFailed(UserError):
    """A startup or shutdown hook raised an exception, so the operator does not run.

    The exception is the `__cause__`, and the log has its traceback. Fix the hook, or what it needs, and start again.
    """


class HandlerCancelled(Exception):
    """A handler awaited a task or future that was cancelled elsewhere. The pass fails and is retried.

    Catch `asyncio.CancelledError` around that `await`.
    """


class HandlerTimeout(Exception):
    """A handler did not end within its time limit. The pass fails and is retried.

    Make the handler faster, or raise the limit with `@op.reconcile(…, timeout=seconds)`.
    """


class ThreadPerCall(Executor):
    """An executor that starts a daemon thread for each call, so that no call waits for another.

    The caller limits the number of concurrent calls. A process that exits does not wait for daemon threads, so a
    function that never returns does not keep the process alive.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:  # Any exception belongs to the caller that waits for the future.
                future.set_exception(error)

        threading.Thread(target=work, name=self._name, daemon=True).start()
        return future


class BlockingContext:
    """A context for a handler that runs in a thread. Its methods block until the async method has ended.

    One class wraps every kind of context. After the handler's time limit each call raises TimeoutError, because a
    thread cannot be stopped from outside.
    """

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop, expired: threading.Event) -> None:
        self._inner = inner
        self._loop = loop
        self._expired = expired

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return self._wrap(value)

        def call(*args: Any, **kwargs: Any) -> Any:
            result, was_awaited = self._wait(_call_on_loop(value, args, kwargs))
            return result if was_awaited else self._wrap(result)

        return call

    def _wrap(self, value: Any) -> Any:
        """Wrap a value with async methods (`ctx.live`, `ctx.cluster("edge")`). Return any other value unchanged."""
        has_methods = type(value).__module__.startswith(("fairlead.client", "fairlead.runtime"))
        return BlockingContext(value, self._loop, self._expired) if has_methods else value

    def _wait(self, coroutine: Any) -> Any:
        if self._expired.is_set():
            coroutine.close()
            raise TimeoutError("this call came after the function's time limit")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _call_on_loop(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, bool]:
    """Call a function on the event loop, because caches are not thread-safe. Return (result, whether awaited)."""
    value = function(*args, **kwargs)
    return (await value, True) if inspect.iscoroutine(value) else (value, False)


async def call_handler(function: Callable[..., Any], *args: Any, timeout: float | None, threads: Executor) -> Any:
    """Call a handler with `args` and return its result. The last of `args` is the context.

    At the time limit, an `async def` handler is cancelled. A plain `def` handler cannot be stopped: HandlerTimeout is
    raised only after the handler has ended, also if this call is cancelled, so that no second pass runs meanwhile.
    """
    if is_async(function):
        try:
            async with asyncio.timeout(timeout) as limit:
                return await function(*args)
        except TimeoutError as error:
            if limit.expired():
                raise _timeout_error(function, timeout) from error
            raise  # The handler's own timeout, such as that of a request.
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise HandlerCancelled(
                f"{name_of(function)} awaited something that was cancelled: catch CancelledError there"
            ) from error
    loop = asyncio.get_running_loop()
    *leading, context = args
    expired = threading.Event()
    blocking = BlockingContext(context, loop, expired)
    work = loop.run_in_executor(
        threads, functools.partial(contextvars.copy_context().run, function, *leading, blocking)
    )
    try:
        async with asyncio.timeout(timeout) as limit:
            return await asyncio.shield(work)
    except (TimeoutError, asyncio.CancelledError) as error:
        if not work.done():
            expired.set()
            await asyncio.wait([work])
            work.exception()  # Mark it as retrieved: the timeout or the cancellation is what is raised.
        if limit.expired():
            raise _timeout_error(function, timeout) from error
        raise


async def call_hook(hook: Callable[..., Any], resources: dict[str, Any], threads: Executor) -> None:
    """Call a startup or shutdown hook. Raises HookFailed, or the UserError that the hook raised."""
    try:
        if is_async(hook):
            returned = await hook(resources)
        else:
            returned = await asyncio.get_running_loop().run_in_executor(threads, hook, resources)
        reject_coroutine(hook, returned)
    except UserError:
        raise
    except Exception as error:
        log.exception("hook %s failed", name_of(hook))
        raise HookFailed(f"hook {name_of(hook)} failed: {type(error).__name__}: {error}") from error


# Mistakes in user code


def check_arguments(function: Callable[..., Any], *forms: tuple[str, ...], is_sync: bool = False) -> None:
    """Raise DeclarationError unless the function accepts the positional arguments of one of the forms.

    A form is a tuple of argument names, such as ("obj", "ctx"). `is_sync` also rejects an `async def` function.
    """
    where, name = function_location(function) if callable(function) else "", name_of(function)
    expected = " or ".join(f"{name}({', '.join(form)})" for form in forms)
    if not callable(function):
        raise DeclarationError(f"{function!r} is not a function: give one that can be called as {expected}")
    if is_sync and is_async(function):
        raise DeclarationError(with_location(where, f"{name} is not awaited: make it a plain `def`"))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Some builtins have no signature that Python knows.
    for form in forms:
        try:
            signature.bind(*form)
            return
        except TypeError:
            continue
    raise DeclarationError(
        with_location(where, f"{name}{signature} takes the wrong arguments: it is called as {expected}")
    )


def reject_return_value(function: Callable[..., Any], returned: Any) -> None:
    """Raise HandlerError if a handler returned anything but None."""
    if returned is None:
        return
    reject_coroutine(function, returned)
    if isinstance(returned, Outcome):
        problem = f"returned fl.{type(returned).__name__}, which has no effect: write `raise` instead of `return`"
    else:
        problem = (
            f"returned a value of type {type(returned).__name__}: a handler returns None; "
            f"to ask for another pass, `raise fl.RequeueAfter(seconds)`"
        )
    raise HandlerError(with_location(function_location(function), f"{name_of(function)} {problem}"))


def reject_coroutine(function: Callable[..., Any], returned: Any) -> None:
    """Raise HandlerError if a function returned a coroutine that nothing awaits."""
    if inspect.iscoroutine(returned):
        returned.close()  # Otherwise Python warns about it a second time.
    elif not inspect.isawaitable(returned):
        return
    raise HandlerError(
        with_location(
            function_location(function),
            f"{name_of(function)} returned a coroutine that nothing awaits: make it `async def` and `await` the call",
        )
    )


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function for messages."""
    return str(getattr(function, "__name__", "the function"))


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a call of the function returns a coroutine. An object with `async def __call__` counts too."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _timeout_error(function: Callable[..., Any], timeout: float | None) -> HandlerTimeout:
    return HandlerTimeout(
        f"{name_of(function)} took longer than {timeout:g} s: make it faster, or raise the limit with timeout=…"
    )
