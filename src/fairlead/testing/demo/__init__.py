"""The harness of `fairlead demo`: it plays a system on a server and records the requests, conflicts and times."""
