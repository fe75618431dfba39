"""Sends requests."""


class RESTClientObject:
    """A connection."""

    def request(self, method: str, url: str) -> None:
        """Send a request."""
