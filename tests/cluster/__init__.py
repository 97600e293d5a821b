"""A real Kubernetes on any Debian machine, without Docker: see README.md beside this file."""
