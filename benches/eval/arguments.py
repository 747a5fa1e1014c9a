"""What evaluations that keep their recordings are asked with."""

import argparse
import os
import pathlib


def parser(about, name, seconds):
    """For runs of so many seconds, whose recordings are kept in a folder of this name."""
    made = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("whyslow", type=pathlib.Path)
    made.add_argument("--seconds", type=float, default=seconds)
    made.add_argument("--seeds", type=int, default=2)
    made.add_argument("--again", action="store_true", help="ask what was recorded anew")
    home = str(pathlib.Path.home() / ".cache/whyslow-dev")
    cache = pathlib.Path(os.environ.get("WHYSLOW_CACHE", home))
    made.add_argument("--folder", type=pathlib.Path, default=cache / name)
    return made
