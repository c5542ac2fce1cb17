"""ROS 2 nodes: they read parameters, convert messages, call the core and publish; nothing else."""
