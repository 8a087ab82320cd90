"""Commands that read a data directory: `dump-log` and `check-log`. They change nothing."""
