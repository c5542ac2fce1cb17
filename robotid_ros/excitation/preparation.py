"""What a run is made from: a trajectory or a sweep, and the limits it is checked against."""

from dataclasses import replace

from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import JointRanges
from robotid_ros.excitation.optimizer import design_limits, design_observation, other_constraints
from robotid_ros.excitation.windows import ReferenceCheck
from robotid_ros.model.robot_model import RobotModel

__all__ = ['reference_check', 'validation_config']

_OTHER_SEED = 7919


def reference_check(model: RobotModel, config: ExcitationConfig) -> ReferenceCheck:
    """Return the limits that everything sent to an arm has to keep under the given settings."""
    limits = design_limits(model, config)
    observation = design_observation(model, config).exact
    constraints = (JointRanges(model, limits), *other_constraints(model, config, limits, observation))
    return ReferenceCheck(model=model, limits=limits, constraints=constraints, observation=observation)


def validation_config(config: ExcitationConfig) -> ExcitationConfig:
    """Return the settings of another trajectory for the same arm, to validate with."""
    return replace(config, seed=(config.seed + _OTHER_SEED) % 2**31)
