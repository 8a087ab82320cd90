"""The console in a real browser, with real clients behind it."""
