"""Comparisons of two sides, topics or archives: digests in the tasks, then a text and a page."""
