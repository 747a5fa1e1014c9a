"""Parts of benches/eval/real.py."""
