"""Faults made on purpose, with the truth of who is guilty of which millisecond."""
