"""The evaluations are scripts: their folder is where they import from."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
