"""Faults in real programs, with the ground truth of culprits and milliseconds."""
