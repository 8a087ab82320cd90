"""`protocol_specs/` to Python; not shipped in the wheel, imports nothing of the broker."""
