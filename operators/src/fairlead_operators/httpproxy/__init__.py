"""HTTPProxy: one object that becomes a Gateway, an HTTPRoute and EndpointSlices, beside a second writer of them."""
