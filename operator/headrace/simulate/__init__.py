"""A job in simulated time, to try the autoscaler on: any trace, many seeds, faults, in seconds.

The policy is the one that scales real jobs (`headrace.core.autoscale`). What a batch costs here is not
what the policy believes, on purpose: see `parameters`.
"""
