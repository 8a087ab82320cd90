"""Replays of an archive into topics: ranges in order, then records, one transaction a task."""
