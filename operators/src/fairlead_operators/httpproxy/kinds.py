"""The kinds, labels and names that the HTTPProxy operator uses."""

import fairlead as fl

HTTPProxy = fl.kind("networking.datumapis.com/v1alpha", "HTTPProxy")
Connector = fl.kind("networking.datumapis.com/v1alpha1", "Connector")
Gateway = fl.kind("gateway.networking.k8s.io/v1", "Gateway")
HTTPRoute = fl.kind("gateway.networking.k8s.io/v1", "HTTPRoute")
HTTPRouteFilter = fl.kind("gateway.envoyproxy.io/v1alpha1", "HTTPRouteFilter")
EnvoyPatchPolicy = fl.kind("gateway.envoyproxy.io/v1alpha1", "EnvoyPatchPolicy")
EndpointSlice = fl.kind("discovery.k8s.io/v1", "EndpointSlice")

FINALIZER = "networking.datumapis.com/httpproxy-cleanup"
CERT_HOSTNAME = "networking.datumapis.com/backend-cert-hostname"
GATEWAY_CLASS = "datum-external-global-proxy"
GATEWAY_DOMAIN = "gateways.example.net"
"""Each Gateway gets a hostname of its own under this domain."""
