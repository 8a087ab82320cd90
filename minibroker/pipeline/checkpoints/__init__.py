"""The files of a job beside its results: whose they are, and how far it came."""
