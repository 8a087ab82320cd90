"""`minibroker record`: topics of any Kafka become a seed."""
