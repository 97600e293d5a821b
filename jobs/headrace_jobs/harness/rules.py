"""The exceptions that a job can cause by breaking a rule of Headrace."""


class Refused(Exception):
    """The application does what would break a promise; the message says what, why, and the fix."""

    error_class = "Refused"


class StartRefused(Refused):
    """What the job is to start from does not fit its queries: the manifest may be wrong, or the code."""

    error_class = "StartRefused"
