"""Commands that look into a data directory: `dump-log` and `check-log`. They change nothing."""
