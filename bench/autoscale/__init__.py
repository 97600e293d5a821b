"""The autoscaler against its peers, on traces of real load: see __main__."""
