"""The requests that the server knows, by their subject."""
