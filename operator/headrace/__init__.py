"""Headrace: Spark Structured Streaming as a managed service on any Kubernetes."""

__version__ = "0.1.0"
