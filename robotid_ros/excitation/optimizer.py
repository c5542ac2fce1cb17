# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Optimal excitation: one function from an arm and settings to a checked trajectory."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import check_reachable
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.observation import observation_of
from robotid_ros.excitation.preparation import design_limits, other_constraints
from robotid_ros.excitation.problem import ExcitationProblem
from robotid_ros.excitation.search import finish, minimise
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress


def _with_margins(limits: JointLimits, config: ExcitationConfig, start: Array) -> JointLimits:
    """Return the limits of a design: inside those of the run, but for a start that is given, shape (n,) or (0,)."""
    reach = limits.upper - limits.lower
    room = np.where(np.isfinite(reach), 0.5 * config.position_margin * reach, 0.0)
    lower, upper = limits.lower + room, limits.upper - room
    if len(start):
        lower, upper = np.minimum(lower, start), np.maximum(upper, start)
    return replace(limits, lower=lower, upper=upper, velocity=limits.velocity * (1.0 - config.velocity_margin))


def optimize_excitation(
    model: RobotModel,
    config: ExcitationConfig | None = None,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> ExcitationDesign:
    """Return the trajectory that makes the base parameters of an arm best identifiable.

    The criterion of the observation matrix is minimised over the coefficients of a Fourier
    series, under the joint limits of the model and all other limits of the settings. Zero
    velocity and acceleration at the start, and a given start position, are linear conditions and
    eliminated. Equal seeds give equal results.

    Parameters
    ----------
    model : RobotModel
        Its inertial parameters are used for the torque limits only.
    config : ExcitationConfig, optional
    progress : callable, optional
        Called with the part done, 0 to 1, and what is being done.
    cancelled : callable, optional
        Asked after every start of every round; True ends the optimisation with the best trajectory until then. So
        does a KeyboardInterrupt.

    Returns
    -------
    ExcitationDesign

    Raises
    ------
    ExcitationError
        If the limits cannot be kept, naming the one in the way, or do not bound the motion.

    Notes
    -----
    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997; the criteria are those
    of Gautier and Khalil, Int. J. Robotics Research 11(4), 1992.
    """
    config = ExcitationConfig() if config is None else config
    limits = design_limits(model, config)
    start = np.array(config.start_position)
    if len(start):
        frozen_array(start, 'start_position', (model.n,), ExcitationError)
    check_reachable(model, limits, config.start_position)
    limits = _with_margins(limits, config, start)
    observation = observation_of(model, config)
    constraints = other_constraints(model, config, limits, observation)
    problem = ExcitationProblem(model, limits, constraints, observation, config)
    starts, interrupted, evaluations = minimise(problem, config, progress, cancelled)
    trajectory, peaks, excitation = finish(problem, starts)
    if progress is not None:
        progress(1.0, f'condition number {excitation.condition:.4g} ({excitation.condition_scaled:.4g} scaled)')
    return ExcitationDesign(
        trajectory=trajectory,
        joint_names=model.joint_names,
        excitation=excitation,
        config=config,
        limits=limits,
        base_parameters=len(observation.base.independent),
        peaks=tuple(peaks),
        interrupted=interrupted,
        evaluations=evaluations,
    )
