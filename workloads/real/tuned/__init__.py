"""Scenarios that rules of `explain` are developed with."""
