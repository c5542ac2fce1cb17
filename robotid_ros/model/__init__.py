"""What a robot is: joints, links, inertias, limits, and where they are read from."""

from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.model.robot_model import STANDARD_GRAVITY, RobotModel

__all__ = ['STANDARD_GRAVITY', 'JointLimits', 'RobotConfig', 'RobotModel']
