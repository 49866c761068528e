"""The Kubernetes API client: transports, credentials, discovery, requests and watches."""
