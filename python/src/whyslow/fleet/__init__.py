"""Fleets: queries over the recordings of many hosts.

    from whyslow import fleet

    web = fleet.open("s3://lake/prod", hosts="web-*")
    web.query("deviations", by="rack").table               # Arrow
    web.sql("SELECT host, SUM(count) AS n FROM operation WHERE dimension = 'all' GROUP BY host")

Queries are SQL files in `sql/fleet/`. They run on DuckDB within this process, or on Spark.
"""

from .answer import FleetAnswer
from .fleet import Fleet
from .fleet import open_fleet as open
from .queries import Query, queries

__all__ = ["Fleet", "FleetAnswer", "Query", "open", "queries"]
