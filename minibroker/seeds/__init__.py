"""Seeds: topics and records in files, to begin a broker with, and to keep what a topic had.

.jsonl, .yaml ─► items ─┐
TOPIC-N/*.log ──────────┴─► staging ─► load ─► the brokers of this process
a topic of any Kafka ─► record ─► .jsonl, or a directory of segment files
"""
