"""Parts of benches/eval/explain.py."""
