# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Kinematic calibration of a serial arm from measured points or poses."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import IntArray, frozen_array
from robotid_ros.calibration.chain import chain_of, joint_terms
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import (
    Identifiable,
    Problem,
    State,
    different_poses,
    identifiable,
    placed_columns,
    seen_at,
)
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.calibration.solver import CalibrationConfig, Estimator, Fit, folds_of
from robotid_ros.calibration.validation import (
    Accuracy,
    CrossValidation,
    accuracy,
    check_fit,
    check_held_out,
    check_nominal_fit,
    check_nominal_turns,
    cross_validate,
    evaluate_held_out,
    mean_tool_rotations,
)
from robotid_ros.errors import CalibrationError
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_PLENTY = 2.5  # numbers per parameter; with fewer, a warning


def placed_start(
    problem: Problem, config: CalibrationConfig, targets: Mapping[str, ArrayLike] | None, rng: np.random.Generator
) -> tuple[State, IntArray, str | None]:
    """Place frames and targets by the nominal geometry.

    Returns the state, the axes that are estimated (0 to 5 of every frame, 6 to 11 of every target), and a warning.
    Raises a CalibrationError if an option or target is wrong, or the nominal geometry does not fit at all.
    """
    if config.tool == 'pose' and problem.rotation is None:
        raise CalibrationError("tool 'pose' needs measured orientations (qw,qx,qy,qz); there are positions only")
    tools = np.tile(np.eye(4), (len(problem.point_names), 1, 1))
    for name, value in (targets or {}).items():
        if name not in problem.point_names:
            measured = ', '.join(map(repr, problem.point_names))
            message = f"target '{name}' is not among the measured ones: {measured}"
            raise CalibrationError(message, name=name, expected=problem.point_names)
        k = problem.point_names.index(name)
        if np.ndim(value) == 2:
            tools[k] = frozen_array(value, f"target '{name}'", (4, 4), CalibrationError)
        else:
            tools[k, :3, 3] = frozen_array(value, f"target '{name}'", (3,), CalibrationError)
    frames = np.tile(np.eye(4), (len(problem.set_names), 1, 1))
    nominal = problem.chain.nominal
    error, frames, points = place(
        problem,
        nominal,
        frames=frames if config.frame == 'known' else None,
        targets=tools[:, :3, 3] if config.tool == 'known' else None,
        rng=rng,
    )
    known = [option for option in ('frame', 'tool') if getattr(config, option) == 'known']
    warning = check_nominal_fit(problem, error=error, known=known)
    tools[:, :3, 3] = points
    turned = problem.rotation is not None and config.tool in ('auto', 'pose')
    if turned:
        tools[:, :3, :3] = mean_tool_rotations(problem, frames, nominal)
    unknown = [] if config.frame == 'known' else list(range(6))
    unknown += [] if config.tool == 'known' else [6, 7, 8]
    unknown += [9, 10, 11] if turned else []
    state = State(frames=frames, tools=tools, geometry=np.array(nominal), coefficients=np.zeros(0))
    return state, np.array(unknown, dtype=np.int64), warning


def calibrate(
    robot: RobotModel | DHTable,
    points: MeasuredPoints,
    config: CalibrationConfig | None = None,
    *,
    held_out: MeasuredPoints | None = None,
    targets: Mapping[str, ArrayLike] | None = None,
    progress: Progress | None = None,
) -> CalibrationResult:
    """Estimate the geometry of an arm from measurements of targets on its tool.

    Minimises the weighted distances between measured and predicted targets,

        p = X_s T(q; geometry) t_k,

    over the frames X_s, the targets t_k and every parameter of the geometry that the measurements
    determine, starting from a closed-form placement of frames and targets.

    Parameters
    ----------
    robot : RobotModel or DHTable
        Nominal arm. A table is calibrated in theta, d, a, alpha and, between parallel axes,
        Hayati's beta; a model in the origins of its joints.
    points : MeasuredPoints
    config : CalibrationConfig, optional
    held_out : MeasuredPoints, optional
        Measurements for the accuracy alone.
    targets : mapping of str to array_like, shape (3,) or (4, 4), optional
        Known targets by name [m], for ``tool='known'`` (the tip's origin by default), or the known
        orientation for ``tool='position'``.
    progress : callable, optional

    Raises
    ------
    CalibrationError
        If joints do not match, there are too few different poses, or the nominal geometry does
        not fit at all (wrong units, a mirrored frame, wrong signs: the message says which).
    """
    config = config or CalibrationConfig()
    tell = progress or silent
    rng = np.random.default_rng(config.seed)
    chain = chain_of(robot)
    points = points.for_joints(chain.joint_names)
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
    candidates, groups = joint_terms(
        chain, config.terms if config.folds else (), robot.gravity, robot if isinstance(robot, RobotModel) else None
    )
    problem = extended = Problem.of(points, chain, candidates.selected([]))

    tell(0.0, 'placing frames and targets')
    start, unknown, warning = placed_start(problem, config, targets, rng)
    can = identifiable(problem, start, unknown, few=config.few_poses == 'least_norm')
    placed = np.intersect1d(can.free, placed_columns(problem, unknown))
    estimator = Estimator(
        start=start, placed=placed, free=can.free, candidates=candidates, groups=groups, config=config
    )
    nominal = estimator.nominal(problem)
    check_nominal_turns(nominal)
    tell(0.1, 'estimating the geometry')
    solve = estimator.geometric if can.determined else estimator.least_norm
    geometric = final = solve(problem, nominal)
    also = seen_at(problem, can, geometric.state, unknown) if can.determined else can
    if also is not can:
        can, estimator = also, replace(estimator, free=also.free)
        geometric = final = estimator.geometric(problem, nominal)
    averages: dict[str, Accuracy] = {}
    check_fit(geometric)
    cross = None
    if config.folds and can.determined:
        tell(0.2, 'choosing joint terms')
        extended, final = estimator.with_terms(problem, geometric)
        # More folds than wanted where the rest of so few measurements would not suffice.
        enough = np.count_nonzero(problem.scale) * (1.0 - 1.0 / config.folds) > 1.3 * len(can.free)
        count = min(config.folds, len(problem)) if enough else len(problem)
        parts = folds_of(problem.q, problem.set_index, count, rng)
        cross = cross_validate(
            problem, estimator, parts, final.inlying, lambda done: tell(0.3 + 0.6 * done, 'cross-validating')
        )
        if cross is None or not cross.terms_help or not extended.terms.terms:
            extended, final = problem, geometric
            cross = cross and replace(cross, residual=cross.residual_geometric)

    tell(0.95, 'evaluating')
    averaged = None if can.determined else estimator.averaged(problem, nominal)
    if averaged is not None:
        averages['training'] = accuracy(averaged.residual, problem.oriented)
    apart = None
    if held_out is not None:
        held_out = held_out.for_joints(chain.joint_names)
        if averaged is not None:
            averages['held_out'] = evaluate_held_out(held_out, problem, averaged.state, nominal.state, unknown).after
        apart = evaluate_held_out(held_out, extended, final.state, nominal.state, unknown)
        check_held_out(nominal, apart.residual_before)
    return CalibrationResult(
        robot=robot,
        points=points,
        problem=extended,
        fit=final,
        nominal=nominal,
        can=can,
        cross_validation=cross,
        held_out=apart,
        averaged=averages,
        warnings=tuple(text for text in (warning, *_warnings(can, config.folds, cross, final)) if text),
    )


def _warnings(can: Identifiable, folds: int, cross: CrossValidation | None, final: Fit) -> list[str]:
    if not can.determined:
        text = (
            f'least norm: {can.numbers} numbers do not determine {can.structural} parameters; many geometries explain '
            'these measurements, and this is the one nearest to the nominal: not to be used'
        )
        return [text]
    warnings = []
    if can.numbers < _PLENTY * len(can.free):
        warnings.append(
            f'{can.poses} different poses are few for {len(can.free)} parameters: at other poses the error is clearly '
            'larger than at these; measure more'
        )
    if folds and cross is None:
        warnings.append('too few measurements to cross-validate: the accuracy is that on the measurements fitted to')
    if not final.converged:
        warnings.append(f'the iteration did not converge: {final.reason}')
    return warnings
