# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Accuracy, on measurements used and on those that a calibration has not seen."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.calibration.estimator import Estimator
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem, State, labelled
from robotid_ros.calibration.solver import fit
from robotid_ros.model.transforms import nearest_rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Statistics of the distance between predicted and measured position.

    Attributes
    ----------
    count : int
        Number of measurements.
    mean, rms, percentile_95, max : float
        Of the distance [m].
    axis_rms : tuple of float
        Root mean square along x, y, z of the measurement frame [m].
    angle_rms, angle_max : float or None
        Of the angle between predicted and measured orientation [rad].
    """

    count: int
    mean: float
    rms: float
    percentile_95: float
    max: float
    axis_rms: tuple[float, float, float]
    angle_rms: float | None = None
    angle_max: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for a YAML file [m, rad]."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {'measurements': values.pop('count'), **values, 'axis_rms': list(self.axis_rms)}


def accuracy(residual: Array, oriented: BoolArray | None = None) -> Accuracy:
    """Return the statistics of residuals, measured minus predicted, shape (N, 3 or 6) with N > 0 [m, rad].

    ``oriented``, bool of shape (N,), tells which rows have an orientation.
    """
    distance = np.linalg.norm(residual[:, :3], axis=1)
    angles = np.zeros(0)
    if residual.shape[1] == 6:
        angles = np.linalg.norm(residual[:, 3:] if oriented is None else residual[oriented, 3:], axis=1)
    x, y, z = np.sqrt(np.mean(np.square(residual[:, :3]), axis=0))
    return Accuracy(
        count=len(residual),
        mean=float(distance.mean()),
        rms=float(np.sqrt(np.mean(np.square(distance)))),
        percentile_95=float(np.percentile(distance, 95.0)),
        max=float(distance.max()),
        axis_rms=(float(x), float(y), float(z)),
        angle_rms=float(np.sqrt(np.mean(np.square(angles)))) if len(angles) else None,
        angle_max=float(angles.max()) if len(angles) else None,
    )


_FEWEST = 4  # poses of a set in the other folds, without which its measurements are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Accuracy on measurements that the fit had not seen, over all folds.

    Attributes
    ----------
    folds : int
    before : Accuracy
        Nominal geometry with frames and targets fitted to the other folds.
    geometric : Accuracy
        Calibrated geometry without joint terms.
    after : Accuracy
        The model as delivered; joint terms, where there are any, chosen anew in every fold.
    after_inliers, geometric_inliers : Accuracy
        Without the outliers of the fit to all measurements.
    residual_before, residual_geometric, residual : ndarray, shape (N, 3 or 6)
        Measured minus predicted; NaN for measurements that no fold could predict.
    """

    folds: int
    before: Accuracy
    geometric: Accuracy
    after: Accuracy
    geometric_inliers: Accuracy
    after_inliers: Accuracy
    residual_before: Array = field(repr=False)
    residual_geometric: Array = field(repr=False)
    residual: Array = field(repr=False)

    def without_terms(self) -> 'CrossValidation':
        """Return the same for a model delivered without joint terms."""
        return replace(
            self, after=self.geometric, after_inliers=self.geometric_inliers, residual=self.residual_geometric
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Accuracy on measurements kept apart.

    Attributes
    ----------
    before, after : Accuracy
    residual_before, residual : ndarray, shape (N, 3 or 6)
    fitted : tuple of str
        Frames and targets that the calibration did not have, and that were therefore fitted to
        these measurements.
    """

    before: Accuracy
    after: Accuracy
    residual_before: Array = field(repr=False)
    residual: Array = field(repr=False)
    fitted: tuple[str, ...] = ()


def cross_validate(
    problem: Problem, estimator: Estimator, folds: IntArray, good: BoolArray, report: Callable[[float], None]
) -> CrossValidation | None:
    """Predict every fold from the others, joint terms chosen anew each time.

    None where a fold leaves too few measurements to estimate from.
    """
    count = int(folds.max()) + 1
    residuals = np.full((3, len(problem), problem.width), np.nan)
    for fold in range(count):
        train, test = folds != fold, _predictable(problem, folds, fold)
        if np.count_nonzero(problem.scale[train]) <= len(estimator.free) + 3 or count < 2:
            return None
        part, kept = problem.subset(train), problem.subset(test)
        nominal = estimator.nominal(part)
        geometric = estimator.geometric(part, nominal)
        extended, final = estimator.with_terms(part, geometric)
        residuals[0, test] = kept.residual(nominal.state)
        residuals[1, test] = kept.residual(geometric.state)
        residuals[2, test] = kept.with_terms(extended.terms).residual(final.state)
        report((fold + 1) / count)
    seen = np.isfinite(residuals[2, :, 0])
    sound = seen & good
    if not sound.any():
        return None
    before, geometry, after = (accuracy(each[seen], problem.oriented[seen]) for each in residuals)
    geometry_sound, after_sound = (accuracy(each[sound], problem.oriented[sound]) for each in residuals[1:])
    return CrossValidation(
        folds=count,
        before=before,
        geometric=geometry,
        after=after,
        geometric_inliers=geometry_sound,
        after_inliers=after_sound,
        residual_before=residuals[0],
        residual_geometric=residuals[1],
        residual=residuals[2],
    )


def _predictable(problem: Problem, folds: IntArray, fold: int) -> BoolArray:
    """Return the measurements of a fold whose set and target are among the other folds."""
    train = folds != fold
    sets = np.bincount(problem.set_index[train], minlength=len(problem.set_names))
    targets = np.bincount(problem.point_index[train], minlength=len(problem.point_names))
    result: BoolArray = ~train & (sets[problem.set_index] >= _FEWEST) & (targets[problem.point_index] >= 1)
    return result


def evaluate_held_out(
    points: MeasuredPoints, problem: Problem, state: State, nominal: State, unknown: IntArray
) -> HeldOut:
    """Evaluate measurements that were kept apart.

    ``problem`` and ``state`` are those of the calibration, with the joint terms in use; ``nominal`` is the nominal
    geometry with its own frames and targets. ``unknown`` are the axes, 0 to 5 for a frame and 6 to 11 for a target,
    that are fitted for sets and targets which the calibration did not have.
    """
    sets = tuple(dict.fromkeys([*problem.set_names, *points.sets]))
    targets = tuple(dict.fromkeys([*problem.point_names, *points.points]))
    without = problem.terms.selected([])
    residuals = []
    fitted: list[str] = []
    for known, terms in ((nominal, without), (state, problem.terms)):
        kept = Problem.of(points, problem.chain, terms, set_names=sets, point_names=targets)
        known = replace(known, coefficients=known.coefficients if terms is problem.terms else np.zeros(0))
        complete, fitted = _completed(kept, known, unknown)
        residuals.append(kept.residual(complete))
    oriented = points.has_orientation
    return HeldOut(
        before=accuracy(residuals[0], oriented),
        after=accuracy(residuals[1], oriented),
        residual_before=residuals[0],
        residual=residuals[1],
        fitted=tuple(fitted),
    )


def _completed(problem: Problem, known: State, unknown: IntArray) -> tuple[State, list[str]]:
    """Return a state with the frames and targets that it lacks fitted to the measurements, and their names."""
    new_sets = np.arange(len(known.frames), len(problem.set_names))
    new_targets = np.arange(len(known.tools), len(problem.point_names))
    if len(new_sets) + len(new_targets) == 0:
        return known, []
    frames = np.concatenate([known.frames, np.tile(np.eye(4), (len(new_sets), 1, 1))])
    tools = np.concatenate([known.tools, np.tile(np.eye(4), (len(new_targets), 1, 1))])
    pose = problem.chain.evaluate(known.geometry, problem.q)
    rows = np.isin(problem.set_index, new_sets)
    if rows.any() and (unknown < 6).any():
        placed = place(
            problem.position[rows],
            pose.rotation[rows],
            pose.position[rows],
            np.unique(problem.set_index[rows], return_inverse=True)[1].ravel(),
            problem.point_index[rows],
            targets=tools[:, :3, 3] if len(new_targets) == 0 else None,
        )
        frames[new_sets] = placed.frames
    state = State(frames=frames, tools=tools, geometry=known.geometry, coefficients=known.coefficients)
    if problem.rotation is not None:
        rotations = mean_tool_rotations(problem, frames, pose.rotation)
        tools[new_targets, :3, :3] = rotations[new_targets]
    columns = [6 * s + k for s in new_sets for k in unknown if k < 6]
    columns += [6 * len(frames) + 6 * t + k - 6 for t in new_targets for k in unknown if k >= 6]
    result = fit(problem, state, np.array(columns, dtype=np.int64))
    names = [labelled('frame', problem.set_names[s]) for s in new_sets if (unknown < 6).any()]
    names += [labelled('tool', problem.point_names[t]) for t in new_targets if (unknown >= 6).any()]
    return result.state, names


def mean_tool_rotations(problem: Problem, frames: Array, tip_rotation: Array) -> Array:
    """Return the mean orientation of every target in the tip frame, shape (K, 3, 3).

    ``frames`` have the shape (S, 4, 4), the tip's rotations in the base frame (N, 3, 3).
    """
    result = np.tile(np.eye(3), (len(problem.point_names), 1, 1))
    if problem.rotation is None:
        return result
    tips = frames[problem.set_index, :3, :3] @ tip_rotation
    relative = np.swapaxes(tips, 1, 2) @ problem.rotation
    for k in range(len(result)):
        rows = problem.oriented & (problem.point_index == k)
        if rows.any():
            result[k] = nearest_rotation(np.median(relative[rows], axis=0))
    return result
