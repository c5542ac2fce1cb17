"""friction."""
