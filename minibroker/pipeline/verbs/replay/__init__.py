"""`pipeline replay`: archived records into a topic, in their order and at their pace."""
