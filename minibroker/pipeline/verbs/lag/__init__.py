"""`pipeline lag`: how far groups and jobs are behind, and since when."""
