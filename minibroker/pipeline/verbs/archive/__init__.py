"""`pipeline archive`: topics into files and tables, each record exactly once."""
