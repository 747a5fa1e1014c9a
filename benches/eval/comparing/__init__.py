"""Parts of the evaluation of `load diff`."""
