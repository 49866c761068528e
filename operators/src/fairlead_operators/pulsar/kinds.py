"""The kinds and names that the Pulsar operator uses."""

import fairlead as fl

GROUP = "resource.streamnative.io/v1alpha1"
FINALIZER = "cloud.streamnative.io/finalizer"

Connection = fl.kind(GROUP, "PulsarConnection")
Tenant = fl.kind(GROUP, "PulsarTenant")
Namespace = fl.kind(GROUP, "PulsarNamespace")
Topic = fl.kind(GROUP, "PulsarTopic")
Permission = fl.kind(GROUP, "PulsarPermission")
GeoReplication = fl.kind(GROUP, "PulsarGeoReplication")
Package = fl.kind(GROUP, "PulsarPackage")
Function = fl.kind(GROUP, "PulsarFunction")
Sink = fl.kind(GROUP, "PulsarSink")
Source = fl.kind(GROUP, "PulsarSource")
NSIsolationPolicy = fl.kind(GROUP, "PulsarNSIsolationPolicy")
