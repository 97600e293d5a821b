"""The one exception that a job can cause by breaking a rule of Headrace."""


class Refused(Exception):
    """The application does what would break a promise; the message says what, why, and the fix."""
