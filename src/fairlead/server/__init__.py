"""The embedded API server: a Kubernetes API server in one process, exact enough to prove writes on.

It knows `fairlead.api` and nothing else of fairlead. Two doors lead in: `inprocess` (a Transport by shape) and `http`.
"""
