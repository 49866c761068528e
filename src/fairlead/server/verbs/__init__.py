"""One module a verb: from a routed request to an answer."""
