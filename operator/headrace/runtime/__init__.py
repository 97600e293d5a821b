"""The operator as a process: watches, a work queue, one reconcile, a lease, probes and metrics."""
