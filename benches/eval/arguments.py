"""Command line arguments of evaluations that keep their recordings."""

import argparse
import os
import pathlib


def parser(about, name, seconds):
    """A parser whose runs last `seconds` by default and keep their recordings in the cache folder `name`."""
    made = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("whyslow", type=pathlib.Path)
    made.add_argument("--seconds", type=float, default=seconds)
    made.add_argument("--seeds", type=int, default=2)
    made.add_argument("--again", action="store_true", help="evaluate existing recordings again")
    home = str(pathlib.Path.home() / ".cache/whyslow-dev")
    cache = pathlib.Path(os.environ.get("WHYSLOW_CACHE", home))
    made.add_argument("--folder", type=pathlib.Path, default=cache / name)
    return made
