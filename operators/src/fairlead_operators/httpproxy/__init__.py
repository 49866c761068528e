"""HTTPProxy: an operator whose children (Gateway, HTTPRoute, EndpointSlices) a second controller writes too."""
