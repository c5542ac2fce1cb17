"""excitation."""
