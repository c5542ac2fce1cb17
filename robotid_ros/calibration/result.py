# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The result of a calibration, the corrected arm, their files, and joint coordinates that make up for the errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import robotid_ros
from robotid_ros.arrays import Array, BoolArray, frozen_array
from robotid_ros.calibration.chain import MOTIONS, JointTerms, KinematicChain
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Identifiable, Problem, observability_index
from robotid_ros.calibration.solver import Fit
from robotid_ros.calibration.validation import Accuracy, CrossValidation, Unseen, accuracy
from robotid_ros.errors import CalibrationError
from robotid_ros.files import file_hash, write_files
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import quaternion_of_rotation, vector_of_rotation
from robotid_ros.model.urdf_edit import edited_urdf
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.tables import write_table

_ESTIMATED = ('name', 'unit', 'nominal', 'value', 'correction', 'std')


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterEstimate:
    """One parameter of the geometry or of a joint term."""

    # '<joint>.theta' and so on for a table, '<joint>.x' ... '<joint>.rz' (a motion in the frame of the joint's origin)
    # for a URDF
    name: str
    unit: str
    nominal: float
    value: float
    std: float | None  # standard deviation; None where it was not estimated
    reason: str = ''  # why it was left at its nominal value; empty where it was estimated

    @property
    def correction(self) -> float:
        """Value minus nominal."""
        return self.value - self.nominal


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """A calibrated arm.

    Attributes
    ----------
    robot : RobotModel or DHTable
        The nominal arm, as given.
    points : MeasuredPoints
    problem : Problem
    fit, nominal : Fit
        Calibrated; and the nominal geometry with best-fit frames and targets.
    can : Identifiable
        Which parameters the measurements determine.
    cross_validation : CrossValidation or None
    held_out : Unseen or None
    averaged : mapping of str to Accuracy
        Of a least-norm answer: the accuracies, by name, of the average of the answers to single measurements instead.
    warnings : tuple of str
    """

    robot: RobotModel | DHTable
    points: MeasuredPoints = field(repr=False)
    problem: Problem = field(repr=False)
    fit: Fit = field(repr=False)
    nominal: Fit = field(repr=False)
    can: Identifiable = field(repr=False)
    cross_validation: CrossValidation | None
    held_out: Unseen | None
    averaged: Mapping[str, Accuracy]
    warnings: tuple[str, ...]

    @property
    def parameters(self) -> tuple[ParameterEstimate, ...]:
        """Geometry and joint terms."""
        problem, fit = self.problem, self.fit
        deviations = dict(zip(fit.free.tolist(), np.sqrt(np.diag(fit.covariance)).tolist(), strict=True))
        geometry, terms = problem.blocks[2:]
        nominal = np.concatenate([problem.chain.nominal, np.zeros(terms.stop - terms.start)])
        values = np.concatenate([fit.state.geometry, fit.state.coefficients])
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

    @property
    def frames(self) -> dict[str, Array]:
        """Robot base in the measurement frame, shape (4, 4), by set."""
        return dict(zip(self.problem.set_names, self.fit.state.frames, strict=True))

    @property
    def tools(self) -> dict[str, Array]:
        """Target in the tip frame, shape (4, 4), by target."""
        return dict(zip(self.problem.point_names, self.fit.state.tools, strict=True))

    @property
    def before(self) -> Accuracy:
        """On the measurements used: the nominal geometry in its best-fit frame."""
        return accuracy(self.nominal.residual, self.problem.oriented)

    @property
    def after(self) -> Accuracy:
        """On the measurements used: calibrated."""
        return accuracy(self.fit.residual, self.problem.oriented)

    @property
    def before_inliers(self) -> Accuracy | None:
        """The accuracy before, without outliers, where there are any."""
        return self._inliers(self.nominal.residual)

    @property
    def after_inliers(self) -> Accuracy | None:
        """The accuracy after, without outliers, where there are any."""
        return self._inliers(self.fit.residual)

    def _inliers(self, residual: Array) -> Accuracy | None:
        good = self.fit.inlying
        return None if good.all() else accuracy(residual[good], self.problem.oriented[good])

    @property
    def outliers(self) -> tuple[tuple[int, float, float], ...]:
        """Of each measurement that got less than half its weight: row from 0, distance from the prediction [m], weight.

        The prediction is that of the calibrated arm.
        """
        rows, distance = np.flatnonzero(~self.fit.inlying), np.linalg.norm(self.fit.residual[:, :3], axis=1)
        return tuple(zip(rows.tolist(), distance[rows].tolist(), self.fit.weights[rows].tolist(), strict=True))

    @property
    def identifiable(self) -> int:
        """Number of independent parameters, frames and targets included."""
        return len(self.can.free)

    @property
    def structural(self) -> int:
        """That number with unlimited poses."""
        return self.can.structural

    @property
    def determined(self) -> bool:
        """Whether the poses give more numbers than there are parameters; where not, this is a least-norm answer."""
        return self.can.determined

    @property
    def condition_number(self) -> float:
        """Of the column-scaled Jacobian."""
        _, flat = self.fit.linear()
        return float(np.linalg.cond(flat / np.linalg.norm(flat, axis=0))) if self.determined else np.inf

    @property
    def observability_index(self) -> float:
        """O1, the geometric mean of the Jacobian's singular values over sqrt(N)."""
        return observability_index(self.fit.linear()[1], len(self.problem)) if self.determined else 0.0

    @property
    def usable(self) -> bool:
        """Whether the fit came to an end that the measurements determine."""
        return self.fit.converged and self.determined

    @property
    def chain(self) -> KinematicChain:
        """The arm's elementary motions, with nominal values."""
        return self.problem.chain

    @property
    def terms(self) -> JointTerms:
        """Joint terms in use."""
        return self.problem.terms

    def joint_offsets(self, q: Array) -> Array:
        """Return the joint terms' offsets of the chain coordinates, shape (N, n) [rad]."""
        return self.terms.offsets(self.terms.basis(q), self.fit.state.coefficients)

    def tip_transforms(self, q: Array) -> Array:
        """Return the calibrated pose of the tip in the base frame, shape (N, 4, 4), for q of shape (N, n)."""
        return self.chain.evaluate(self.fit.state.geometry, q, shift=self.joint_offsets(q)).transforms

    def nominal_tip_transforms(self, q: Array) -> Array:
        """Return the nominal pose of the tip in the base frame, shape (N, 4, 4), for q of shape (N, n)."""
        return self.chain.evaluate(self.chain.nominal, q).transforms

    def calibrated_table(self) -> DHTable:
        """Return the corrected DH table.

        Raises
        ------
        CalibrationError
            If the arm did not come as a table.
        """
        if not isinstance(self.robot, DHTable):
            raise CalibrationError('the arm did not come as a DH table; use calibrated_model')
        columns: dict[str, Any] = {
            key: np.array(getattr(self.robot, key)) for key in ('theta', 'd', 'a', 'alpha', 'beta')
        }
        rows = {name: i for i, name in enumerate(self.robot.joint_names)}
        for name, value in zip(self.chain.names, self.fit.state.geometry, strict=True):
            joint, _, symbol = name.rpartition('.')
            columns[symbol][rows[joint]] = value
        return replace(self.robot, **columns)

    def calibrated_model(self) -> RobotModel:
        """Return the corrected arm; joint terms are not part of it."""
        if isinstance(self.robot, DHTable):
            return self.calibrated_table().robot_model()
        segments = [transform for transform, _, _ in self.chain.placed(self.fit.state.geometry)]
        return replace(self.robot, placements=np.stack(segments[:-1]))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers, strings and lists [m, rad]."""
        estimated = [p for p in self.parameters if not p.reason]
        errors: dict[str, dict[str, Any]] = {'training': {'before': self.before, 'after': self.after}}
        if self.before_inliers is not None:
            errors['training_without_outliers'] = {'before': self.before_inliers, 'after': self.after_inliers}
        if self.cross_validation is not None:
            cross = self.cross_validation
            errors['cross_validation'] = {
                'folds': cross.folds,
                'before': cross.before,
                'geometry_only': cross.geometric,
                'after': cross.after,
                'after_without_outliers': cross.after_inliers,
            }
        if self.held_out is not None:
            apart = self.held_out
            errors['held_out'] = {'before': apart.before, 'after': apart.after, 'fitted_to_it': list(apart.fitted)}
        if self.averaged:
            errors['average_of_single_measurements'] = dict(self.averaged)
        return {
            'robot': self.robot.name,
            'joints': list(self.chain.joint_names),
            'usable': self.usable,
            'reason': self.fit.reason if self.determined else self.warnings[-1],
            'warnings': list(self.warnings),
            'accuracy': {
                name: {key: each.to_dict() if isinstance(each, Accuracy) else each for key, each in entries.items()}
                for name, entries in errors.items()
            },
            'identifiable_parameters': self.identifiable,
            'identifiable_with_unlimited_poses': self.structural,
            'condition_number': self.condition_number,
            'observability_index': self.observability_index,
            'noise': self.fit.noise,
            'iterations': self.fit.iterations,
            'parameters': [{key: getattr(p, key) for key in _ESTIMATED} for p in estimated],
            'fixed': [{'name': p.name, 'value': p.value, 'reason': p.reason} for p in self.parameters if p.reason],
            'frames': {name or 'default': _pose_dict(frame) for name, frame in self.frames.items()},
            'tools': {name or 'default': _pose_dict(tool) for name, tool in self.tools.items()},
            'outliers': [{'measurement': k + 1, 'distance': far, 'weight': left} for k, far, left in self.outliers],
        }

    def to_yaml(self, files: Sequence[Path], settings: Mapping[str, Any]) -> str:
        """Return the text of ``result.yaml``, with the version, the files and the settings that it was made with."""
        hashes = {str(path): file_hash(path.expanduser()) for path in files}
        provenance = {'version': robotid_ros.__version__, 'files': hashes, 'settings': dict(settings)}
        return str(yaml.safe_dump({**self.to_dict(), 'provenance': provenance}, sort_keys=False, width=120))


def _pose_dict(transform: Array) -> dict[str, list[float]]:
    return {
        'translation': transform[:3, 3].tolist(),
        'quaternion_wxyz': quaternion_of_rotation(transform[:3, :3]).tolist(),
    }


def write_result(
    result: CalibrationResult, folder: Path, files: Sequence[Path], settings: Mapping[str, Any]
) -> list[Path]:
    """Write result.yaml, residuals.csv and calibrated.yaml or calibrated.urdf into a folder; return their names.

    Residuals are measured minus predicted of every measurement [m, rad], before and after.
    """
    texts = {'result.yaml': result.to_yaml(files, settings)}
    if isinstance(result.robot, DHTable):
        texts['calibrated.yaml'] = result.calibrated_table().to_yaml()
    elif result.robot.source is not None:
        texts['calibrated.urdf'] = calibrated_urdf(result)
    written = write_files(folder, texts)
    parts = {'before': result.nominal.residual, 'after': result.fit.residual}
    if result.cross_validation is not None:
        parts['cross_validated'] = result.cross_validation.residual
    columns: dict[str, Array | Sequence[str]] = {
        'measurement': [str(k + 1) for k in range(len(result.points))],
        'set': result.points.sets,
        'point': result.points.points,
        'weight': result.fit.weights,
    }
    for part, residual in parts.items():
        columns |= {f'{part}/{axis}': values for axis, values in zip(MOTIONS, residual.T, strict=False)}
    write_table(folder / 'residuals.csv', columns)
    return [*written, folder / 'residuals.csv']


def calibrated_urdf(result: CalibrationResult) -> str:
    """Return the input URDF with the origins of the calibrated joints changed, and nothing else.

    Raises a CalibrationError if the arm did not come from a URDF.
    """
    robot = result.robot
    if not isinstance(robot, RobotModel) or robot.source is None:
        raise CalibrationError('the arm did not come from a URDF')
    joints = parse_urdf(robot.source).joints
    calibrated = result.calibrated_model().placements
    changed: dict[str, Array] = {}
    for i, name in enumerate(robot.joint_names):
        if not np.array_equal(calibrated[i], robot.placements[i]):
            motion = np.linalg.solve(robot.placements[i], calibrated[i])
            changed[name] = joints[name].origin @ motion
    return edited_urdf(robot.source, origins=changed)


_STEPS = 60
_CLOSE = 1e-10  # [m, rad]
_LONGEST_STEP = 0.2  # [rad, m]
_LARGEST_CHANGE = 0.2  # [rad, m]; corrections are a few milliradians, except near singular poses


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensatedJoints:
    """Joint coordinates for given poses."""

    q: Array  # shape (N, n): [rad or m]
    position_error: Array  # shape (N,): remaining error at the tool [m]
    angle_error: Array  # shape (N,): [rad]
    converged: BoolArray  # shape (N,): whether both are below a tenth of a micrometre and a tenth of a microradian


def compensated_joints(result: CalibrationResult, q: Array, *, tool: Array | None = None) -> CompensatedJoints:
    """Return the joint coordinates at which the real tool has the pose of the nominal arm at ``q``.

    Parameters
    ----------
    result : CalibrationResult
    q : ndarray, shape (N, n)
        Nominal joint coordinates [rad or m].
    tool : ndarray, shape (4, 4), optional
        Tool in the tip frame; the tip itself by default.
    """
    q = frozen_array(q, 'q', (None, result.chain.n), CalibrationError)
    hand = _tool(tool)
    return compensated_inverse_kinematics(result, result.nominal_tip_transforms(q) @ hand, q, tool=hand)


def compensated_inverse_kinematics(
    result: CalibrationResult, poses: Array, start: Array, *, tool: Array | None = None
) -> CompensatedJoints:
    """Solve T(q) tool = pose for the calibrated arm, joint terms included.

    Newton's iteration with the calibrated Jacobian, damped near singular poses
    (Levenberg-Marquardt, each pose with its own damping), from the nominal solution, which is a
    few milliradians away. Where a nominal pose lies at the edge of the workspace, as with a
    stretched elbow, the real arm may not reach it; at a singular wrist it may need another turn of
    the wrist. There the closest joint coordinates nearby are returned, not converged.

    Parameters
    ----------
    result : CalibrationResult
    poses : ndarray, shape (N, 4, 4)
        Wanted tool poses in the robot's base frame.
    start : ndarray, shape (N, n)
        Joint coordinates to start from [rad or m].
    tool : ndarray, shape (4, 4), optional
        Tool in the tip frame; the tip itself by default.

    Raises
    ------
    CalibrationError
        If shapes do not match.
    """
    poses = frozen_array(poses, 'poses', (None, 4, 4), CalibrationError)
    start = frozen_array(start, 'start', (len(poses), result.chain.n), CalibrationError)
    q = np.array(start)
    hand = _tool(tool)
    error, jacobian = _error(result, q, poses, hand)
    damping = np.full(len(q), 1e-10)
    for _ in range(_STEPS):
        if np.abs(error).max(initial=0.0) < 0.01 * _CLOSE:
            break
        transposed = np.swapaxes(jacobian, 1, 2)
        normal = transposed @ jacobian + damping[:, None, None] * np.eye(q.shape[1])
        step = np.linalg.solve(normal, transposed @ error[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, _LONGEST_STEP / np.maximum(np.abs(step).max(axis=1), 1e-12))[:, None]
        trial_q = np.clip(q + step, start - _LARGEST_CHANGE, start + _LARGEST_CHANGE)
        trial, trial_jacobian = _error(result, trial_q, poses, hand)
        better = np.square(trial).sum(axis=1) < np.square(error).sum(axis=1)
        q[better] = trial_q[better]
        error[better], jacobian[better] = trial[better], trial_jacobian[better]
        damping = np.clip(np.where(better, 0.1 * damping, 10.0 * damping), 1e-14, 1e4)
    position, angle = np.linalg.norm(error[:, :3], axis=1), np.linalg.norm(error[:, 3:], axis=1)
    return CompensatedJoints(
        q=q, position_error=position, angle_error=angle, converged=(position < 1e3 * _CLOSE) & (angle < 1e3 * _CLOSE)
    )


def _tool(tool: Array | None) -> Array:
    return np.eye(4) if tool is None else frozen_array(tool, 'tool', (4, 4), CalibrationError)


def _error(result: CalibrationResult, q: Array, poses: Array, tool: Array) -> tuple[Array, Array]:
    """Return the pose error [m, rad], (N, 6), and the Jacobian by joint coordinates, (N, 6, n).

    The joint terms change with q a thousand times less than q itself, so their slope is left out.
    """
    chain = result.chain
    pose = chain.evaluate(result.fit.state.geometry, q, shift=result.joint_offsets(q))
    position = pose.position + pose.rotation @ tool[:3, 3]
    error = np.empty((len(q), 6))
    error[:, :3] = poses[:, :3, 3] - position
    error[:, 3:] = vector_of_rotation(poses[:, :3, :3] @ np.swapaxes(pose.rotation @ tool[:3, :3], 1, 2))
    return error, chain.jacobian(pose, position)[:, :, -chain.n :] @ chain.coupling
