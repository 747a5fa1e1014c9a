"""Incidents of web servers: real programs under concurrent load.

Each has servers that start before the recording, requests from a load generator, and the
application's own log of each request: the ground truth for requests found in sockets.
"""
