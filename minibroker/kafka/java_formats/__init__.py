"""Formats of files and texts that Java programs keep: properties, JAAS lines, key stores."""
