"""Simulated fleets, asked. What makes their lakes is that of the package's tests."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python" / "src"), str(ROOT / "python" / "tests")]
