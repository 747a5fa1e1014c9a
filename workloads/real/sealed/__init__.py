"""Scenarios that only measure: neither they nor their recordings are looked at to change a rule."""
