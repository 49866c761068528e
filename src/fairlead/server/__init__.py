"""The embedded API server: a Kubernetes API server in one process, exact enough to test writes against.

It imports `fairlead.api` and nothing else of fairlead. Clients reach it in two ways: through `http.inprocess`, a
client's Transport without sockets, and through `http.listener`, over HTTP.
"""
