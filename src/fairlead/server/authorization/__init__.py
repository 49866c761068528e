"""Authorization: the attributes of a request, the authorizers, and RBAC."""
