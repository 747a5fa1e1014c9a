"""Injected faults, with the ground truth of culprits and milliseconds."""
