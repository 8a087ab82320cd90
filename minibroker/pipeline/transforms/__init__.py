"""Functions from one DataFrame to another: no session, no I/O, so that tests need only rows."""
