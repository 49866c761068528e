"""Tables: the rows and columns of objects that `kubectl get` prints."""
