"""Topics as Spark reads and writes them: source, sink, raw segments, groups and settings."""
