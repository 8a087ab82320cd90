"""Generated: records of internal topics, control batches and small files of the log."""
