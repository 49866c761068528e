"""The kinds, labels and names that the Sei operator uses."""

import fairlead as fl

SeiNode = fl.kind("sei.io/v1alpha1", "SeiNode")
SeiNodeDeployment = fl.kind("sei.io/v1alpha1", "SeiNodeDeployment")

NODE_FINALIZER = "sei.io/seinode-finalizer"
DEPLOYMENT_FINALIZER = "sei.io/seinodedeployment-finalizer"

NODE = "sei.io/node"
PLAN = "sei.io/plan"
DEPLOYMENT = "sei.io/nodedeployment"
DEPLOYMENT_UID = "sei.io/nodedeployment-uid"
ORDINAL = "sei.io/nodedeployment-ordinal"
REVISION = "sei.io/revision"
