"""The folders here are projects of their own, which run as their users run them."""

collect_ignore_glob = ["*/*"]
