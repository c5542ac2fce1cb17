# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Checks of the measurements, and the first estimate of frames and targets."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.calibration.config import CalibrationConfig
from robotid_ros.calibration.diagnosis import check_nominal_fit
from robotid_ros.calibration.identifiability import different_poses
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem, State
from robotid_ros.calibration.validation import mean_tool_rotations
from robotid_ros.errors import CalibrationError


def check_measurements(points: MeasuredPoints) -> None:
    """Refuse measurements that hold no information.

    Raises
    ------
    CalibrationError
        If poses or measured positions all coincide.
    """
    if len(points) == 0:
        raise CalibrationError('expected measurements at many different poses, got none')
    if different_poses(points.q) == 1:
        raise CalibrationError(
            f'all {len(points)} measurements were taken at one pose; a calibration needs many different poses'
        )
    if np.ptp(points.position, axis=0).max() < 1e-6:
        raise CalibrationError(
            f'all {len(points)} measured positions coincide while the joints move; the columns x, y, z are wrong'
        )


def placed_start(
    problem: Problem, config: CalibrationConfig, targets: Mapping[str, ArrayLike] | None, rng: np.random.Generator
) -> tuple[State, IntArray, str | None]:
    """Place frames and targets by the nominal geometry.

    Returns the state, the axes that are estimated (0 to 5 of every frame, 6 to 11 of every target), and a warning.

    Raises
    ------
    CalibrationError
        If an option or target is wrong, or the nominal geometry does not fit at all.
    """
    if config.tool == 'pose' and problem.rotation is None:
        raise CalibrationError("tool 'pose' needs measured orientations (qw,qx,qy,qz); there are positions only")
    tools = _known_tools(problem, targets)
    frames = np.tile(np.eye(4), (len(problem.set_names), 1, 1))
    pose = problem.chain.evaluate(problem.chain.nominal, problem.q)
    placement = place(
        problem.position,
        pose.rotation,
        pose.position,
        problem.set_index,
        problem.point_index,
        frames=frames if config.frame == 'known' else None,
        targets=tools[:, :3, 3] if config.tool == 'known' else None,
        rng=rng,
    )
    warning = check_nominal_fit(problem, error=placement.error, known_frame=config.frame == 'known')
    tools[:, :3, 3] = placement.targets
    turned = problem.rotation is not None and config.tool in ('auto', 'pose')
    if turned:
        tools[:, :3, :3] = mean_tool_rotations(problem, placement.frames, pose.rotation)
    unknown = [] if config.frame == 'known' else list(range(6))
    unknown += [] if config.tool == 'known' else [6, 7, 8]
    unknown += [9, 10, 11] if turned else []
    state = State(
        frames=placement.frames, tools=tools, geometry=np.array(problem.chain.nominal), coefficients=np.zeros(0)
    )
    return state, np.array(unknown, dtype=np.int64), warning


def _known_tools(problem: Problem, targets: Mapping[str, ArrayLike] | None) -> Array:
    tools = np.tile(np.eye(4), (len(problem.point_names), 1, 1))
    for name, value in (targets or {}).items():
        if name not in problem.point_names:
            known = ', '.join(repr(known) for known in problem.point_names)
            raise CalibrationError(f"target '{name}' is not among the measured ones: {known}")
        k = problem.point_names.index(name)
        if np.ndim(value) == 2:
            tools[k] = frozen_array(value, f"target '{name}'", (4, 4), CalibrationError)
        else:
            tools[k, :3, 3] = frozen_array(value, f"target '{name}'", (3,), CalibrationError)
    return tools
