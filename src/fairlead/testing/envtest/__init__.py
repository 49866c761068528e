"""Executables `etcd` and `kube-apiserver` for envtest and similar test tools, which run the embedded server.

- `folder` writes the folder that KUBEBUILDER_ASSETS names.
- `etcd` is the program that holds the state, and serves the API while a `kube-apiserver` is connected to it.
- `apiserver` is the program that sends its flags to `etcd` and waits. State therefore survives its restart.
- `flags` reads the flags of kube-apiserver.
"""
