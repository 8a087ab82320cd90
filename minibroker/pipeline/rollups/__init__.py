"""Rollups: files beside those of the windows, for open windows and for bad records."""
