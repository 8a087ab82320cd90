"""Reports of an inspection: its facts, in words, as text and as a page with plots."""
