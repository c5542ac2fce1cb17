# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Accuracy on seen and unseen measurements, and common mistakes where the nominal geometry does not fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.calibration.chain import KinematicChain
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem, State, labelled, placed_columns
from robotid_ros.calibration.solver import Estimator, Fit, fit
from robotid_ros.errors import CalibrationError
from robotid_ros.model.transforms import nearest_rotation, quaternion_of_rotation, rotation_of_quaternion

_SUSPICIOUS = 0.04  # of the size of the measured volume: no arm's geometry is that wrong
_TURNED = 0.1  # [rad]: nor is it that wrong
_ENOUGH = 50  # measurements: enough to distinguish mistakes, few enough to try hundreds of them
_DOUBT = 'the joint zeros, signs or the table may not be those of this robot'
_ADVICE = (
    'check the order, signs, zeros and units of the joint positions, the units of the points, '
    'and whether the table is of this robot'
)
_CONVINCING = 0.3  # a mistake is named if less than this share of the error is left without it

_LENGTH_MISTAKES = (
    (1e-3, "the points look like millimetres given as metres; say so (length unit 'mm')"),
    (1e3, 'the points look like metres given as millimetres, or the robot has its lengths in millimetres'),
    (1e-2, 'the points look like centimetres given as metres; convert them'),
    (0.0254, 'the points look like inches given as metres; convert them'),
)

# For every mistake which of the measured numbers, counted from 1, and with which sign, are qw, qx, qy, qz.
_TURN_MISTAKES = (
    ((4, 1, 2, 3), 'the orientations look like quaternions in the order x, y, z, w; the columns are qw,qx,qy,qz'),
    ((1, -2, -3, -4), 'the orientations look like those of the measurement frame as the target sees it; invert them'),
    ((4, -1, -2, -3), 'the orientations look like quaternions in the order x, y, z, w, and inverted'),
)

_KNOWN = {
    'frame': 'the points are not in the robot base frame',
    'tool': 'the target is not where it is said to be on the tool',
}

_FEWEST = 4  # poses of a set in the other folds, without which its measurements are left out


def check_nominal_fit(problem: Problem, *, error: float, known: Sequence[str]) -> str | None:
    """Name the mistake where the best fit of the nominal geometry is far off, or warn where none explains it.

    ``error`` is the median distance of the best fit of frames and targets to the nominal geometry [m], and ``known``
    the options by which these are known. A CalibrationError tells a mistake that explains it: wrong units, a mirrored
    frame, a joint's sign, a zero position off by a quarter turn, a coupled joint.
    """
    measured = problem.subset(np.sort(np.random.default_rng(0).permutation(len(problem))[:_ENOUGH]))
    size = _spread(measured)
    if error <= _SUSPICIOUS * size:
        return None
    found = f'the nominal geometry fits the measurements no better than {1e3 * error:.4g} mm (median)'
    limit = min(_CONVINCING * error / size, 2.0 * _SUSPICIOUS)
    simple = [(*_misfit(mended), text) for mended, text in _simple_mistakes(measured, known)]
    misfit, left, text = min(simple)
    if misfit >= limit:
        misfit, left, text = _joint_mistakes(measured, limit)
    if misfit < limit:
        raise CalibrationError(f'{text}; {found}, but {1e3 * left:.4g} mm once that is corrected')
    return f'{found}; {_DOUBT}'


def check_nominal_turns(nominal: Fit) -> None:
    """Name the mistake, by a CalibrationError, that explains orientations far from where the nominal geometry has them.

    ``nominal`` has the nominal geometry, with frames and targets fitted to it.
    """
    error, problem, tools = _turned(nominal), nominal.problem, nominal.state.tools.copy()
    if error <= _TURNED or problem.rotation is None:
        return
    quaternion = quaternion_of_rotation(problem.rotation)
    for order, text in _TURN_MISTAKES:
        turns = rotation_of_quaternion(quaternion[:, np.abs(order) - 1] * np.sign(order))
        mended = replace(problem, rotation=np.where(problem.oriented[:, None, None], turns, np.eye(3)))
        tools[:, :3, :3] = mean_tool_rotations(mended, nominal.state.frames, nominal.state.geometry)
        left = _turned(fit(mended, replace(nominal.state, tools=tools), nominal.free))
        if left < min(_CONVINCING * error, _TURNED):
            raise CalibrationError(
                f'{text}; the nominal geometry fits them no better than {error:.3g} rad (median), but {left:.3g} rad '
                'once that is corrected'
            )


def check_fit(fitted: Fit) -> None:
    """Raise a CalibrationError if a calibrated geometry misses by more than a few per cent of the measured volume.

    Or, where orientations were measured, by more than a tenth of a radian. Both misses are medians.
    """
    size, error = _spread(fitted.problem), float(np.median(np.linalg.norm(fitted.residual[:, :3], axis=1)))
    if error > 0.5 * _SUSPICIOUS * size:
        raise CalibrationError(
            f'even a calibrated geometry fits the measurements no better than {1e3 * error:.4g} mm (median), for '
            f'targets spread over {1e3 * size:.4g} mm; {_ADVICE}'
        )
    if (turned := _turned(fitted)) > _TURNED:
        raise CalibrationError(
            f'even a calibrated geometry fits the measured orientations no better than {turned:.3g} rad (median); '
            'check that qw, qx, qy, qz turn the axes of the target into those of the measurement frame, and, where it '
            "is known (--tool), the target's orientation in the tip frame"
        )


def check_held_out(nominal: Fit, residual: Array) -> None:
    """Refuse held-out measurements that do not belong to those calibrated from, by a CalibrationError.

    That is where their median distance is more than a few per cent of the measured volume and three times that of the
    measurements calibrated from, both with the nominal geometry; ``residual``, shape (M, 3 or 6), is that of the
    held-out ones.
    """
    usual, error = (float(np.median(np.linalg.norm(r[:, :3], axis=1))) for r in (nominal.residual, residual))
    if error > max(_SUSPICIOUS * _spread(nominal.problem), 3.0 * usual):
        raise CalibrationError(
            f'the held-out points lie {1e3 * error:.4g} mm (median) from where the nominal geometry has them; if the '
            "instrument or the target was moved, give them another label in the column 'set' or 'point'; "
            'else check their units'
        )


def _spread(problem: Problem) -> float:
    """Return how far targets and nominal tip are spread, whichever is more [m].

    That is the median distance of the measured positions from the middle of their set, or that of the tip from its
    middle: the tip of a wrist does not move, and a target may be where an arm hardly moves it.
    """
    tip = problem.chain.evaluate(problem.chain.nominal, problem.q).position
    sets = [problem.position[problem.set_index == s] for s in np.unique(problem.set_index)]
    away = [np.linalg.norm(points - np.median(points, axis=0), axis=1) for points in (*sets, tip)]
    return max(float(np.median(np.concatenate(away[:-1]))), float(np.median(away[-1])), 1e-9)


def _turned(at: Fit) -> float:
    """Return the median angle between measured and predicted orientations [rad]; zero where none were measured."""
    angles = np.linalg.norm(at.residual[at.problem.oriented, 3:], axis=1)
    return float(np.median(angles)) if len(angles) else 0.0


def _misfit(measured: Problem) -> tuple[float, float]:
    """Return the median distance of the best fit over the spread of the measured positions, and the distance [m]."""
    error, _, _ = place(measured, measured.chain.nominal, subsets=8)
    return error / _spread(measured), error


def _simple_mistakes(measured: Problem, known: Sequence[str]) -> Iterator[tuple[Problem, str]]:
    q, position = measured.q, measured.position
    for scale, message in _LENGTH_MISTAKES:
        yield replace(measured, position=position * scale), message
    mirror = np.array([1.0, 1.0, -1.0])
    yield replace(measured, position=position * mirror), 'the measurement frame is left-handed (mirrored)'
    turn = np.where(measured.chain.prismatic, 1.0, np.pi / 180.0)
    degrees = "the joint positions look like degrees given as radians; say so (angle unit 'deg')"
    yield replace(measured, q=q * turn), degrees
    scale, message = _LENGTH_MISTAKES[0]
    yield replace(measured, q=q * turn, position=position * scale), f'{degrees}, and {message}'
    yield replace(measured, q=q / turn), 'the joint positions look like radians given as degrees'
    if known:
        told = ' or '.join(_KNOWN[option] for option in known)
        yield measured, f'{told}; let {" and ".join(f"the {option}" for option in known)} be estimated'


def _joint_mistakes(measured: Problem, limit: float) -> tuple[float, float, str]:
    """Search signs, quarter-turn zeros and couplings of the joints by coordinate descent until one fits."""
    chain = measured.chain
    changes = _changes(chain)
    signs = np.array(list(product(*([(1.0, -1.0)] * min(chain.n, 7)))))
    signs = np.hstack([signs, np.ones((len(signs), chain.n - signs.shape[1]))])
    misfits: list[tuple[float, float]] = []
    for sign in signs:
        misfits.append(_misfit(replace(measured, q=measured.q * sign)))
        if misfits[-1][0] < limit:
            break
    likely = sorted(range(1, len(misfits)), key=lambda k: misfits[k])
    found: list[tuple[float, float, str]] = []
    for k in (*likely[:1], 0, *likely[1:2]):
        told = [f"the sign of '{chain.joint_names[i]}' is reversed" for i in np.flatnonzero(signs[k] < 0.0)]
        q, misfit = measured.q * signs[k], misfits[k]
        for _ in range(chain.n):
            if misfit[0] < limit:
                break
            trials = [_misfit(replace(measured, q=q @ matrix + shift)) for matrix, shift, _ in changes]
            best = min(range(len(trials)), key=lambda j: trials[j])
            if trials[best][0] > 0.9 * misfit[0]:
                break
            matrix, shift, text = changes[best]
            q, misfit = q @ matrix + shift, trials[best]
            told.append(text)
        found.append((*misfit, ' and '.join(told)))
        if misfit[0] < limit:
            break
    return min(found)


def _changes(chain: KinematicChain) -> list[tuple[Array, Array, str]]:
    """Return a matrix A and a vector c for each mistake, so that q A + c corrects it, and its description."""
    unit = np.eye(chain.n)
    result: list[tuple[Array, Array, str]] = []
    for i, name in enumerate(chain.joint_names):
        if chain.prismatic[i]:
            continue
        for quarter in (1, 2, 3):
            result.append((unit, 0.5 * np.pi * quarter * unit[i], f"the zero of '{name}' is off by {90 * quarter} deg"))
        if i > 0 and not chain.prismatic[i - 1]:
            before = chain.joint_names[i - 1]
            for sign in (1.0, -1.0):
                text = f"'{name}' is coupled: its angle is {name} {'+' if sign > 0.0 else '-'} {before}"
                result.append((unit + sign * np.outer(unit[i - 1], unit[i]), np.zeros(chain.n), text))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Statistics of the distance between predicted and measured position."""

    count: int  # number of measurements
    mean: float  # of the distance, as the next three [m]
    rms: float
    percentile_95: float
    max: float
    axis_rms: tuple[float, float, float]  # root mean square along x, y, z of the measurement frame [m]
    angle_rms: float | None = None  # of the angle between predicted and measured orientation [rad]
    angle_max: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for a YAML file [m, rad]."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {'measurements': values.pop('count'), **values, 'axis_rms': list(self.axis_rms)}


def accuracy(residual: Array, oriented: BoolArray) -> Accuracy:
    """Return the statistics of residuals, measured minus predicted, shape (N, 3 or 6) with N > 0 [m, rad].

    ``oriented``, bool of shape (N,), tells which rows have an orientation.
    """
    distance = np.linalg.norm(residual[:, :3], axis=1)
    angles = np.linalg.norm(residual[oriented, 3:], axis=1) if residual.shape[1] == 6 else np.zeros(0)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Measured minus predicted of measurements that the prediction was not made from."""

    oriented: BoolArray = field(repr=False)  # shape (N,): measurements with an orientation
    # shape (N, 3 or 6): of the nominal geometry with best-fit frames and targets, and of the calibrated arm [m, rad].
    # NaN for measurements that could not be predicted.
    residual_before: Array = field(repr=False)
    residual: Array = field(repr=False)
    # frames and targets that the calibration did not have, and that were therefore fitted to these measurements
    fitted: tuple[str, ...] = ()

    @property
    def before(self) -> Accuracy:
        """That of the nominal geometry."""
        return self.accuracy(self.residual_before)

    @property
    def after(self) -> Accuracy:
        """That of the calibrated arm, with the joint terms that there are."""
        return self.accuracy(self.residual)

    def accuracy(self, residual: Array, good: BoolArray | None = None) -> Accuracy:
        """Return the accuracy of some residuals, (N, 3 or 6), of all measurements or of the good ones, bool (N,)."""
        rows = np.isfinite(self.residual[:, 0])
        rows = rows if good is None else rows & good
        return accuracy(residual[rows], self.oriented[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation(Unseen):
    """Of every measurement, by a fit to the other folds, joint terms, where there are any, chosen anew in each."""

    folds: int
    good: BoolArray = field(repr=False)  # shape (N,): measurements that are no outliers of the fit to all
    # shape (N, 3 or 6): of the calibrated geometry without joint terms [m, rad]
    residual_geometric: Array = field(repr=False)

    @property
    def geometric(self) -> Accuracy:
        """That of the calibrated geometry without joint terms."""
        return self.accuracy(self.residual_geometric)

    @property
    def after_inliers(self) -> Accuracy:
        """That of the calibrated arm without outliers."""
        return self.accuracy(self.residual, self.good)

    @property
    def terms_help(self) -> bool:
        """Whether joint terms lower the error of measurements that are no outliers."""
        return self.after_inliers.rms < self.accuracy(self.residual_geometric, self.good).rms


def cross_validate(
    problem: Problem, estimator: Estimator, folds: IntArray, good: BoolArray, report: Callable[[float], None]
) -> CrossValidation | None:
    """Predict every fold from the others, joint terms chosen anew each time.

    None where a fold leaves too few measurements to estimate from.
    """
    count = int(folds.max()) + 1
    residuals = np.full((3, len(problem), problem.width), np.nan)
    for fold in range(count):
        train = folds != fold
        sets = np.bincount(problem.set_index[train], minlength=len(problem.set_names))
        targets = np.bincount(problem.point_index[train], minlength=len(problem.point_names))
        # those whose set and target are among the other folds
        test = ~train & (sets[problem.set_index] >= _FEWEST) & (targets[problem.point_index] >= 1)
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
    if not (np.isfinite(residuals[2, :, 0]) & good).any():
        return None
    return CrossValidation(
        folds=count,
        oriented=problem.oriented,
        good=good,
        residual_before=residuals[0],
        residual_geometric=residuals[1],
        residual=residuals[2],
    )


def evaluate_held_out(
    points: MeasuredPoints, problem: Problem, state: State, nominal: State, unknown: IntArray
) -> Unseen:
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
    return Unseen(
        oriented=points.has_orientation, residual_before=residuals[0], residual=residuals[1], fitted=tuple(fitted)
    )


def _completed(problem: Problem, known: State, unknown: IntArray) -> tuple[State, list[str]]:
    """Return a state with the frames and targets that it lacks fitted to the measurements, and their names."""
    new_sets = np.arange(len(known.frames), len(problem.set_names))
    new_targets = np.arange(len(known.tools), len(problem.point_names))
    if len(new_sets) + len(new_targets) == 0:
        return known, []
    frames = np.concatenate([known.frames, np.tile(np.eye(4), (len(new_sets), 1, 1))])
    tools = np.concatenate([known.tools, np.tile(np.eye(4), (len(new_targets), 1, 1))])
    rows = np.isin(problem.set_index, new_sets)
    if rows.any() and (unknown < 6).any():
        targets = tools[:, :3, 3] if len(new_targets) == 0 else None
        _, found, _ = place(problem.subset(rows), known.geometry, targets=targets)
        frames[new_sets] = found[new_sets]
    state = State(frames=frames, tools=tools, geometry=known.geometry, coefficients=known.coefficients)
    if problem.rotation is not None:
        tools[new_targets, :3, :3] = mean_tool_rotations(problem, frames, known.geometry)[new_targets]
    columns = placed_columns(problem, unknown, sets=len(known.frames), targets=len(known.tools))
    result = fit(problem, state, columns)
    names = [labelled('frame', problem.set_names[s]) for s in new_sets if (unknown < 6).any()]
    names += [labelled('tool', problem.point_names[t]) for t in new_targets if (unknown >= 6).any()]
    return result.state, names


def mean_tool_rotations(problem: Problem, frames: Array, geometry: Array) -> Array:
    """Return the mean orientation of every target in the tip frame, shape (K, 3, 3); ``frames`` is (S, 4, 4)."""
    result = np.tile(np.eye(3), (len(problem.point_names), 1, 1))
    if problem.rotation is None:
        return result
    tips = frames[problem.set_index, :3, :3] @ problem.chain.evaluate(geometry, problem.q).rotation
    relative = np.swapaxes(tips, 1, 2) @ problem.rotation
    for k in range(len(result)):
        rows = problem.oriented & (problem.point_index == k)
        if rows.any():
            result[k] = nearest_rotation(np.median(relative[rows], axis=0))
    return result
