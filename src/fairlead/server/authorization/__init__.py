"""Who may do what: the attributes of a request, RBAC, and the reviews that tell a client beforehand."""
