"""Has no function that the guard of names could replace."""


class Resource:
    """A kind."""
