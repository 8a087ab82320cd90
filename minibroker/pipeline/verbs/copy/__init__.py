"""`pipeline copy`: topics into topics, with their groups."""
