"""The harness of `fairlead demo`, which plays a system on a server and records requests, conflicts and times."""
