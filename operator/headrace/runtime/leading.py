"""Only the operator that holds the Lease may act."""


class NoLongerLeader(Exception):
    """Another operator acts now. Nothing more may be done here."""


def make_sure(leads: bool) -> None:
    if not leads:
        raise NoLongerLeader
