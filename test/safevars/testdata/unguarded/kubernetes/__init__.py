"""A client of Kubernetes in a version that makes its paths elsewhere."""
