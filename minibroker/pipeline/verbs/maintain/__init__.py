"""`pipeline maintain`: small files of an archive merged, old versions dropped."""
