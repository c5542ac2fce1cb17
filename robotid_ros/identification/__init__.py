"""identification."""
