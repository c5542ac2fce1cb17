# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Common mistakes, searched for where the nominal geometry does not fit the measurements."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.chain import KinematicChain
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.problem import Problem
from robotid_ros.errors import CalibrationError

_SUSPICIOUS = 0.04  # of the size of the measured volume: no arm's geometry is that wrong
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


def check_nominal_fit(problem: Problem, *, error: float, known_frame: bool) -> str | None:
    """Name the mistake where the best fit of the nominal geometry is far off, or warn where none explains it.

    ``error`` is the median distance of the best fit of frames and targets to the nominal geometry [m].

    Raises
    ------
    CalibrationError
        If a simple mistake explains the misfit: wrong units, a mirrored frame, a joint's sign, a
        zero position off by a quarter turn, a coupled joint.
    """
    chain, measured = problem.chain, _some_of(problem)
    size = _spread(chain, measured.q)
    if error <= _SUSPICIOUS * size:
        return None
    found = f'the nominal geometry fits the measurements no better than {1e3 * error:.4g} mm (median)'
    limit = min(_CONVINCING * error / size, 2.0 * _SUSPICIOUS)
    simple = [(*_misfit(mended), text) for mended, text in _simple_mistakes(measured, known_frame)]
    misfit, left, text = min(simple)
    if misfit >= limit:
        misfit, left, text = _joint_mistakes(measured, limit)
    if misfit < limit:
        raise CalibrationError(f'{text}; {found}, but {1e3 * left:.4g} mm once that is corrected')
    return f'{found}; {_DOUBT}'


def check_fit(chain: KinematicChain, q: Array, error: float) -> None:
    """Refuse a calibrated geometry that does not fit.

    Raises
    ------
    CalibrationError
        If the median distance ``error`` [m] is more than a few per cent of the measured volume.
    """
    size = _spread(chain, q)
    if error > 0.5 * _SUSPICIOUS * size:
        raise CalibrationError(
            f'even a calibrated geometry fits the measurements no better than {1e3 * error:.4g} mm (median), for poses '
            f'spread over {1e3 * size:.4g} mm; {_ADVICE}'
        )


def check_held_out(chain: KinematicChain, q: Array, fitted: Array, residual: Array) -> None:
    """Refuse held-out measurements that do not belong to those calibrated from.

    ``q``, shape (N, n), and ``fitted``, shape (N, 3 or 6), are of the measurements calibrated from: joint coordinates
    and residuals with the nominal geometry. ``residual``, shape (M, 3 or 6), are those of the held-out measurements.

    Raises
    ------
    CalibrationError
        If the median distance is more than a few per cent of the measured volume and three times
        that of the measurements calibrated from.
    """
    usual, error = (float(np.median(np.linalg.norm(r[:, :3], axis=1))) for r in (fitted, residual))
    if error > max(_SUSPICIOUS * _spread(chain, q), 3.0 * usual):
        raise CalibrationError(
            f'the held-out points lie {1e3 * error:.4g} mm (median) from where the nominal geometry has them; if the '
            "instrument or the target was moved, give them another label in the column 'set' or 'point'; "
            'else check their units'
        )


def _some_of(problem: Problem) -> Problem:
    """Return a random part of the measurements, with the sets and targets that are left numbered anew."""
    part = problem.subset(np.sort(np.random.default_rng(0).permutation(len(problem))[:_ENOUGH]))
    sets, points = (np.unique(x, return_inverse=True)[1].ravel() for x in (part.set_index, part.point_index))
    return replace(part, set_index=sets, point_index=points)


def _spread(chain: KinematicChain, q: Array) -> float:
    """Return the root mean square distance of the tip from its mean [m]."""
    tip = chain.evaluate(chain.nominal, q).position
    return float(np.sqrt(np.mean(np.square(tip - tip.mean(axis=0)).sum(axis=1))))


def _misfit(measured: Problem) -> tuple[float, float]:
    """Return the median distance of the best fit over the spread of the poses, and the distance [m]."""
    chain = measured.chain
    pose = chain.evaluate(chain.nominal, measured.q)
    placement = place(
        measured.position, pose.rotation, pose.position, measured.set_index, measured.point_index, subsets=8
    )
    return placement.error / max(_spread(chain, measured.q), 1e-9), placement.error


def _simple_mistakes(measured: Problem, known_frame: bool) -> Iterator[tuple[Problem, str]]:
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
    if known_frame:
        yield measured, 'the points are not in the robot base frame; let the frame be estimated'


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
