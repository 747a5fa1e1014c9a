"""Queries on simulated fleets. Their lakes are made with helpers of the package's tests."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python" / "src"), str(ROOT / "python" / "tests")]
