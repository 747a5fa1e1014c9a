"""Incidents of web servers: real programs, asked for pages by many at once.

Each has servers that are there before the recording begins, requests from a load generator, and
what the application itself logged of each request: the truth for who finds requests in sockets.
"""
