# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identifiable parameters, by rank-revealing QR of the column-scaled Jacobian."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from robotid_ros.arrays import Array, IntArray
from robotid_ros.calibration.problem import Problem, State
from robotid_ros.errors import CalibrationError

_POSES_PER_LABEL = 20
_SAME_POSE = 4  # decimals [rad, m]
# Sine of the angle between a column and the span of the others: the standard deviation grows with its inverse.
SMALLEST_SINE = 1e-4


def independent_columns(
    matrix: Array, groups: Sequence[IntArray], *, smallest: float = 1e-9
) -> tuple[IntArray, dict[int, tuple[int, ...]]]:
    """Choose independent columns by pivoted QR of the columns scaled to unit length.

    Groups are exhausted one after the other, so that columns of an earlier group are never given
    up for those of a later one; inside a group the pivot is the column farthest from the span of
    those chosen so far (ties: the last), and the rest is dropped once none is farther than the
    sine 1e-4 of the angle between a column and the span of the others.

    Parameters
    ----------
    matrix : ndarray, shape (m, k)
    groups : sequence of ndarray of int
        Columns to choose from; others are ignored.
    smallest : float
        Root mean square below which a column counts as zero.

    Returns
    -------
    chosen : ndarray of int
        In increasing order.
    redundant : dict of int to tuple of int
        For each other column the independent ones that it is a combination of, the largest share first; none
        where the column itself is zero.
    """
    wanted = np.concatenate(groups)
    norms = np.linalg.norm(matrix[:, wanted], axis=0)
    zero = norms <= smallest * np.sqrt(len(matrix))
    redundant: dict[int, tuple[int, ...]] = {int(k): () for k in wanted[zero]}
    unit = matrix / np.where(np.linalg.norm(matrix, axis=0) > 0.0, np.linalg.norm(matrix, axis=0), 1.0)
    if len(matrix) > len(wanted):  # the triangle holds all angles between columns
        unit = np.asarray(np.linalg.qr(unit, mode='r'))
    chosen: list[int] = []
    dropped: list[int] = []
    span = np.zeros((len(unit), 0))  # orthonormal, of the chosen ones
    for group in groups:
        left = np.array([k for k in group if int(k) not in redundant], dtype=np.int64)
        if not len(left):
            continue
        rest = unit[:, left] * (1.0 + 1e-6 * np.arange(len(left)))  # of columns that are equally far the last is taken
        rest -= span @ (span.T @ rest)
        directions, triangle, order = scipy.linalg.qr(rest, mode='economic', pivoting=True)
        rank = int((np.abs(np.diag(triangle)) >= SMALLEST_SINE).sum())
        span = np.hstack([span, directions[:, :rank]])
        chosen += left[order[:rank]].tolist()
        dropped += left[order[rank:]].tolist()
    basis = unit[:, chosen]
    for k in dropped:
        shares = np.abs(np.linalg.lstsq(basis, unit[:, k], rcond=None)[0])
        order = np.argsort(-shares)
        redundant[k] = tuple(chosen[j] for j in order if shares[j] > 0.05 * shares.max())
    return np.array(sorted(chosen), dtype=np.int64), redundant


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiable:
    """The parameters that the measurements determine."""

    free: IntArray
    structural: int  # their number with unlimited poses
    poses: int  # different poses, and independent numbers measured there
    numbers: int
    reasons: Mapping[int, str]  # why a parameter that was asked for is not free

    @property
    def determined(self) -> bool:
        """Whether there are more numbers than parameters."""
        return self.numbers > self.structural


def placed_columns(problem: Problem, unknown: IntArray) -> IntArray:
    """Return the columns of all frames' and targets' unknown axes."""
    first_tool = problem.blocks[1].start
    columns = [6 * s + k for s in range(len(problem.set_names)) for k in unknown if k < 6]
    columns += [first_tool + 6 * t + k - 6 for t in range(len(problem.point_names)) for k in unknown if k >= 6]
    return np.array(columns, dtype=np.int64)


def identifiable(problem: Problem, state: State, unknown: IntArray, *, few: bool = False) -> Identifiable:
    """Decide by rank which parameters can be identified, first by any measurements of this kind, then by these.

    Frames come before targets and targets before the geometry, so that what is fixed is a
    parameter of the arm with a nominal value; in the geometry the joints' zeros come first. Where ``few`` poses are
    allowed and there are too few, all that any measurements determine are free.

    Raises
    ------
    CalibrationError
        If there are too few different poses, and they are not allowed.
    """
    geometry = problem.blocks[2]
    placed = placed_columns(problem, unknown)
    of_frames = placed[placed < problem.blocks[0].stop]
    of_tools = placed[placed >= problem.blocks[0].stop]
    zeros = problem.chain.zeros
    arm = np.arange(geometry.start, geometry.stop)
    groups = [of_frames, of_tools, arm[zeros], arm[~zeros]]
    structural, alike = _independent(_unlimited(problem), state, groups)
    names = problem.names
    reasons = {k: _reason(like, names, 'no measurement of this kind {} it') for k, like in alike.items()}
    different = different_poses(np.column_stack([problem.q, problem.set_index, problem.point_index]))
    per_pose = int(np.count_nonzero(problem.scale)) // len(problem)
    numbers = different * per_pose
    if numbers <= len(structural) and few:
        return Identifiable(
            free=structural, structural=len(structural), poses=different, numbers=numbers, reasons=reasons
        )
    if numbers <= len(structural):
        raise CalibrationError(
            f'{len(problem)} measurements at {different} different poses give {numbers} numbers for {len(structural)} '
            f'parameters; measure at least {len(structural) // per_pose + 1} different poses, better several times '
            'that (few_poses: least_norm shows what so few would give)'
        )
    kept = set(structural.tolist())
    free, lacking = _independent(
        problem, state, [np.array([c for c in g if c in kept], dtype=np.int64) for g in groups]
    )
    reasons |= {k: _reason(like, names, 'these poses do not {} it') for k, like in lacking.items()}
    return Identifiable(free=free, structural=len(structural), poses=different, numbers=numbers, reasons=reasons)


def _independent(problem: Problem, state: State, groups: list[IntArray]) -> tuple[IntArray, dict[int, tuple[int, ...]]]:
    jacobian = problem.linearise(state)[1] * (problem.scale / problem.scale[:, :3].max())[:, :, None]
    return independent_columns(jacobian.reshape(-1, jacobian.shape[2]), groups)


def _reason(like: tuple[int, ...], names: tuple[str, ...], pattern: str) -> str:
    """Return why a parameter was left out; the pattern names what cannot "show" it, or "tell" it apart."""
    structural = pattern.startswith('no ')
    if not like:
        return pattern.format('shows' if structural else 'show') + ': it does not move the target'
    others = ', '.join(names[k] for k in like[:6]) + (f' and {len(like) - 6} more' if len(like) > 6 else '')
    return pattern.format('tells' if structural else 'tell') + f' apart from {others}'


def _unlimited(problem: Problem) -> Problem:
    """Return the same problem at many random poses over full turns."""
    rng = np.random.default_rng(0)
    sets, targets = len(problem.set_names), len(problem.point_names)
    count = min(max(_POSES_PER_LABEL * sets * targets, 60), 600)
    q = rng.uniform(-np.pi, np.pi, (count, problem.chain.n))
    slides = problem.chain.prismatic
    low, high = problem.q.min(axis=0), problem.q.max(axis=0)
    q[:, slides] = rng.uniform(low[slides] - 0.2, high[slides] + 0.2, (count, int(slides.sum())))
    used = sorted(set(zip(problem.set_index.tolist(), problem.point_index.tolist(), strict=True)))
    pairs = np.array(used, dtype=np.int64)[np.arange(count) % len(used)]
    typical = np.median(problem.scale[problem.oriented] if problem.oriented.any() else problem.scale, axis=0)
    return replace(
        problem,
        q=q,
        basis=problem.terms.basis(q),
        position=np.zeros((count, 3)),
        rotation=None if problem.rotation is None else np.tile(np.eye(3), (count, 1, 1)),
        oriented=np.full(count, problem.rotation is not None),
        set_index=pairs[:, 0],
        point_index=pairs[:, 1],
        scale=np.tile(typical, (count, 1)),
    )


def different_poses(q: Array) -> int:
    """Return how many rows differ by more than rounding."""
    return len(np.unique(np.round(q, _SAME_POSE), axis=0))
