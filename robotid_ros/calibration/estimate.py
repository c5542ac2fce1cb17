# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Kinematic calibration of a serial arm from measured points or poses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.calibration.accuracy import accuracy
from robotid_ros.calibration.chain import KinematicChain, chain_of_dh, chain_of_model
from robotid_ros.calibration.diagnosis import check_fit, check_held_out
from robotid_ros.calibration.estimator import Estimator
from robotid_ros.calibration.joint_terms import TERM_KINDS, TermKind, joint_terms
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem
from robotid_ros.calibration.result import CalibrationResult, Outlier, ParameterEstimate
from robotid_ros.calibration.solver import Fit, Loss, Options
from robotid_ros.calibration.start import (
    FrameOption,
    Identifiable,
    ToolOption,
    check_measurements,
    identifiable,
    placed_columns,
    placed_start,
)
from robotid_ros.calibration.term_selection import folds_of
from robotid_ros.calibration.validation import CrossValidation, HeldOut, cross_validate, evaluate_held_out
from robotid_ros.errors import CalibrationError
from robotid_ros.model.dh_file import DHTable
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

__all__ = ['calibrate', 'chain_of']

_OUTLIER_WEIGHT = 0.5
_PLENTY = 2.5  # numbers per parameter


def calibrate(
    robot: RobotModel | DHTable,
    points: MeasuredPoints,
    *,
    held_out: MeasuredPoints | None = None,
    frame: FrameOption = 'unknown',
    tool: ToolOption = 'auto',
    targets: Mapping[str, ArrayLike] | None = None,
    terms: Sequence[TermKind] = TERM_KINDS,
    loss: Loss = 'hampel',
    prior: float | None = 0.01,
    folds: int = 5,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> CalibrationResult:
    """Estimate the geometry of an arm from measurements of targets on its tool.

    Minimises the weighted distances between measured and predicted targets,

        p = X_s T(q; geometry) t_k,

    over the frames X_s, the targets t_k and every parameter of the geometry that the measurements
    can tell apart, starting from a closed-form placement of frames and targets.

    Parameters
    ----------
    robot : RobotModel or DHTable
        Nominal arm. A table is calibrated in theta, d, a, alpha and, between parallel axes,
        Hayati's beta; a model in the origins of its joints.
    points : MeasuredPoints
    held_out : MeasuredPoints, optional
        Measurements for the accuracy alone.
    frame : {'unknown', 'known'}
        Known: the measurement frame is the robot's base frame, for every set.
    tool : {'auto', 'known', 'position', 'pose'}
        What is unknown of the targets in the tip frame; auto: the position, and where
        orientations were measured the whole pose.
    targets : mapping of str to array_like, shape (3,) or (4, 4), optional
        Known targets by name [m], for ``tool='known'`` (the tip's origin by default), or the known
        orientation for ``tool='position'``.
    terms : sequence of {'eccentricity', 'second_harmonic', 'compliance'}
        Joint terms that may be added where the cross-validated error falls with them.
    loss : {'hampel', 'huber', 'linear'}
        See :class:`robotid_ros.calibration.solver.Options`.
    prior : float or None
        First guess of how far parameters are from nominal [m, rad]; None for none.
    folds : int
        Of the cross-validation; 0 for none (and then no joint terms either).
    rng : numpy.random.Generator, optional
        Deals the folds; seeded with 0 by default.
    progress : callable, optional
        Called with a fraction and what is being done.

    Returns
    -------
    CalibrationResult

    Raises
    ------
    CalibrationError
        If joints do not match, there are too few different poses, or the nominal geometry does
        not fit at all (wrong units, a mirrored frame, wrong signs: the message says which).
    """
    rng = np.random.default_rng(0) if rng is None else rng
    tell = progress or _silent
    options = _checked_options(loss, prior, folds)
    chain = chain_of(robot)
    points = points.for_joints(chain.joint_names)
    check_measurements(points)
    candidates, groups = joint_terms(
        chain, tuple(terms) if folds else (), robot.gravity, robot if isinstance(robot, RobotModel) else None
    )
    problem = Problem.of(points, chain, candidates.selected([]))

    tell(0.0, 'placing frames and targets')
    start, unknown, warning = placed_start(problem, frame, tool, targets, rng)
    can = identifiable(problem, start, unknown)
    estimator = Estimator(
        start=start,
        placed=np.intersect1d(can.free, placed_columns(problem, unknown)),
        free=can.free,
        candidates=candidates,
        groups=groups,
        options=options,
    )
    outcome = _outcome(robot, points, problem, estimator, can, folds, rng, tell)
    tell(0.95, 'evaluating')
    apart = None
    if held_out is not None:
        held_out = held_out.for_joints(chain.joint_names)
        apart = evaluate_held_out(held_out, outcome.problem, outcome.final.state, outcome.nominal.state, unknown)
        check_held_out(chain, problem.q, outcome.nominal.residual, apart.residual_before)
    notes = (warning, _few(can), _no_validation(folds, outcome.cross), _not_converged(outcome.final))
    return outcome.result(apart, [text for text in notes if text])


def chain_of(robot: RobotModel | DHTable) -> KinematicChain:
    """Return the chain of elementary motions that an arm is calibrated in."""
    return chain_of_dh(robot) if isinstance(robot, DHTable) else chain_of_model(robot)


def _silent(fraction: float, message: str) -> None:
    """Report nothing."""


def _checked_options(loss: Loss, prior: float | None, folds: int) -> Options:
    if loss not in ('hampel', 'huber', 'linear'):
        raise CalibrationError(f"loss: expected one of hampel, huber, linear, got '{loss}'")
    if prior is not None and not prior > 0.0:
        raise CalibrationError(f'prior: expected a positive deviation, or none, got {prior}')
    if folds < 0 or folds == 1:
        raise CalibrationError(f'folds: expected 0 (no cross-validation) or at least 2, got {folds}')
    return Options(loss=loss, prior=prior)


def _fold_count(problem: Problem, can: Identifiable, wanted: int) -> int:
    """Return the number of folds: more than wanted where few measurements could not spare so large a part."""
    numbers = np.count_nonzero(problem.scale)
    enough = numbers * (1.0 - 1.0 / wanted) > 1.3 * len(can.free)
    return min(wanted, len(problem)) if enough else len(problem)


def _few(can: Identifiable) -> str | None:
    if can.numbers >= _PLENTY * len(can.free):
        return None
    return (
        f'{can.poses} different poses are few for {len(can.free)} parameters: at other poses the error is clearly '
        'larger than at these; measure more'
    )


def _no_validation(folds: int, cross: CrossValidation | None) -> str | None:
    if folds and cross is None:
        return 'too few measurements to cross-validate: the accuracy is that on the measurements fitted to'
    return None


def _not_converged(final: Fit) -> str | None:
    return None if final.converged else f'the iteration did not converge: {final.reason}'


def _outcome(
    robot: RobotModel | DHTable,
    points: MeasuredPoints,
    problem: Problem,
    estimator: Estimator,
    can: Identifiable,
    folds: int,
    rng: np.random.Generator,
    tell: Progress,
) -> '_Outcome':
    """Fit frames and targets, then the geometry, then joint terms where cross-validation wants them."""
    nominal = estimator.nominal(problem)
    tell(0.1, 'estimating the geometry')
    geometric = estimator.geometric(problem, nominal)
    distance = np.sqrt(np.square(geometric.residual[:, :3]).sum(axis=1))
    check_fit(problem.chain, problem.q, float(np.median(distance)))
    final, extended, cross = geometric, problem, None
    if folds:
        tell(0.2, 'choosing joint terms')
        extended, final = estimator.with_terms(problem, geometric)
        parts = folds_of(problem.q, problem.set_index, _fold_count(problem, can, folds), rng)
        good = final.weights >= _OUTLIER_WEIGHT
        cross = cross_validate(problem, estimator, parts, good, lambda done: tell(0.3 + 0.6 * done, 'cross-validating'))
        if cross is None or cross.after_inliers.rms >= cross.geometric_inliers.rms or not extended.terms.terms:
            extended, final = problem, geometric
            cross = cross and cross.without_terms()
    return _Outcome(robot=robot, points=points, problem=extended, nominal=nominal, final=final, can=can, cross=cross)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What the fits left, to be put in order."""

    robot: RobotModel | DHTable
    points: MeasuredPoints
    problem: Problem
    nominal: Fit
    final: Fit
    can: Identifiable
    cross: CrossValidation | None

    def result(self, held_out: HeldOut | None, notes: list[str]) -> CalibrationResult:
        problem, final, nominal = self.problem, self.final, self.nominal
        oriented = problem.oriented
        bad = final.weights < _OUTLIER_WEIGHT
        distance = np.sqrt(np.square(final.residual[:, :3]).sum(axis=1))
        flat = final.jacobian.reshape(-1, len(final.free))
        singular = np.linalg.svd(flat, compute_uv=False)
        scaled = np.linalg.svd(flat / np.linalg.norm(flat, axis=0), compute_uv=False)
        return CalibrationResult(
            robot=self.robot,
            points=self.points,
            problem=problem,
            state=final.state,
            nominal_state=nominal.state,
            parameters=self._parameters(),
            frames=dict(zip(problem.set_names, final.state.frames, strict=True)),
            tools=dict(zip(problem.point_names, final.state.tools, strict=True)),
            before=accuracy(nominal.residual, oriented),
            after=accuracy(final.residual, oriented),
            before_inliers=accuracy(nominal.residual[~bad], oriented[~bad]) if bad.any() else None,
            after_inliers=accuracy(final.residual[~bad], oriented[~bad]) if bad.any() else None,
            cross_validation=self.cross,
            held_out=held_out,
            outliers=tuple(
                Outlier(index=int(k), distance=float(distance[k]), weight=float(final.weights[k]))
                for k in np.flatnonzero(bad)
            ),
            identifiable=len(self.can.free),
            structural=self.can.structural,
            condition_number=float(scaled[0] / scaled[-1]),
            observability_index=float(np.exp(np.mean(np.log(singular))) / np.sqrt(len(problem))),
            noise=final.noise,
            covariance=final.covariance,
            covariance_names=tuple(problem.names[k] for k in final.free),
            residual_before=nominal.residual,
            residual=final.residual,
            weights=final.weights,
            converged=final.converged,
            iterations=final.iterations,
            reason=final.reason,
            warnings=tuple(notes),
        )

    def _parameters(self) -> tuple[ParameterEstimate, ...]:
        problem, final = self.problem, self.final
        deviations = dict(zip(final.free.tolist(), np.sqrt(np.diag(final.covariance)).tolist(), strict=True))
        geometry, terms = problem.blocks[2:]
        nominal = np.concatenate([problem.chain.nominal, np.zeros(terms.stop - terms.start)])
        values = np.concatenate([final.state.geometry, final.state.coefficients])
        names, units = problem.names, problem.units
        return tuple(
            ParameterEstimate(
                name=names[column],
                unit=units[column],
                nominal=float(nominal[k]),
                value=float(values[k]),
                std=deviations.get(column),
                reason='' if column in deviations else self.can.reasons.get(column, 'redundant'),
            )
            for k, column in enumerate(range(geometry.start, terms.stop))
        )
