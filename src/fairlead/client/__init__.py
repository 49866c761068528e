"""Talk to a server: the Transport protocol, HTTP, credentials, verbs on plain dicts, watch frames."""
