"""The lag of readers behind the ends of topics: as values, as text and for Prometheus."""
