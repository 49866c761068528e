"""HTTPProxy: turns one object into a Gateway, an HTTPRoute and EndpointSlices that a second controller writes too."""
