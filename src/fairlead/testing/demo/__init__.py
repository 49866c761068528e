"""The harness of `fairlead demo`: plays a system on a server, and records what it cost."""
