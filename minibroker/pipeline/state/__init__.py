"""State that a job keeps beside its results: identity, progress, settings of its checkpoint."""
