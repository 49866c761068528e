"""The request handlers: one module per verb or subresource. A handler takes a routed request and returns a response."""
