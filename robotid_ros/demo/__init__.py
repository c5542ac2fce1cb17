"""The whole loop with a simulated arm: real nodes, real DDS, called as a user would."""
