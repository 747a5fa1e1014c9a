"""Parts of the evaluation of requests."""
