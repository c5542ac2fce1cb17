"""free_floating."""
