"""`pipeline compare`: two topics, or a topic and its archive, record by record."""
