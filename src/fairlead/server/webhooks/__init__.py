"""Calls of webhooks: a request that needs one is suspended, and runs again when the answer is known."""
