"""The handlers: one module per verb or subresource, each from a routed request to a response."""
