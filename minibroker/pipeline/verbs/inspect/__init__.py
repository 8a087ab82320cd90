"""`pipeline inspect`: how much, how large, how spread and in what order topics are."""
