"""Records and batches in a broker's files, read with no broker running: two data sources."""
