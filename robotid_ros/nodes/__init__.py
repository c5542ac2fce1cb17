"""ROS 2 nodes: they read parameters, convert messages, call the core and publish; nothing else."""

from robotid_ros.threads import use_one_thread

use_one_thread()
