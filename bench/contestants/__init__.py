"""The clients that bench/cache.py measures. Each module uses its client as the client's documentation shows.

A module has a class `Contestant`. `await start(url, on_event)` returns when the first list is complete, and then calls
`on_event(obj)` for each event. `sent(obj)` returns the time when the event was sent. `cached_count()` returns the
number of cached objects, and `KEEPS` names their type. Only the module imports the client, so that it can be timed.
"""
