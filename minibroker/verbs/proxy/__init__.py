"""`minibroker proxy`: a proxy between clients and any Kafka."""
