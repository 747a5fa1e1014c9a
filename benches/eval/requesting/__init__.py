"""Parts of benches/eval/requests.py."""
