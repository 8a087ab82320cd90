"""From one DataFrame to another: no session, no I/O, so that tests need rows and nothing else."""
