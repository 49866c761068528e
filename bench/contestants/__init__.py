"""The clients that bench/cache.py measures, one a module, each written as its own documentation would have it.

A module has a class `Contestant`: `await start(url, on_event)` returns when the first list is in and from then on calls
`on_event(obj)` for each event; `sent(obj)` reads the time of sending; `held()` counts the objects kept, `KEEPS` says as
what. Importing the module imports the client, and nothing else does: that is timed too.
"""
