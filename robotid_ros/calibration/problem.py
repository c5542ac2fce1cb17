# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Residuals and analytic Jacobian of measured points: frames, tool points, geometry, joint terms.

A target k on the tool, measured at q in set s, lies at

    p = X_s T(q; geometry, terms) t_k

with X_s the robot's base in the measurement frame of the set and t_k the target in the tip frame.

Which of them can be identified is decided by rank-revealing QR of the column-scaled Jacobian.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from robotid_ros.arrays import Array, BoolArray, IntArray, rows_of
from robotid_ros.calibration.chain import MOTIONS, JointTerms, KinematicChain
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.errors import CalibrationError
from robotid_ros.model.transforms import rotation_of_quaternion, rotation_of_vector, vector_of_rotation

_ROWS = ('q', 'basis', 'position', 'rotation', 'oriented', 'set_index', 'point_index', 'scale')


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Values of all parameters."""

    frames: Array  # shape (S, 4, 4): robot base in the measurement frame of each set
    tools: Array  # shape (K, 4, 4): frame of each target in the tip frame
    geometry: Array  # shape (P,): values of the chain's parameters
    coefficients: Array  # shape (T,): of the joint terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """N measurements and the model that predicts them.

    The parameter vector is, in this order: for each set x y z rx ry rz of its frame (a motion in
    the base frame), for each target the same of its frame (in the tip frame, the rotation in its
    own), the chain's parameters, the joint terms' coefficients.
    """

    chain: KinematicChain
    terms: JointTerms
    q: Array  # shape (N, n)
    basis: Array  # shape (N, T): the joint terms at q
    position: Array  # shape (N, 3)
    # shape (N, 3, 3): measured orientations; rows without one hold the identity and are not ``oriented``
    rotation: Array | None
    oriented: BoolArray  # shape (N,)
    set_index: IntArray  # shape (N,), as the next
    point_index: IntArray
    set_names: tuple[str, ...]
    point_names: tuple[str, ...]
    # shape (N, 3 or 6): factor of the residuals: 1/std where deviations were given, else 1; zero for an orientation
    # that was not measured
    scale: Array
    weighted: bool  # whether the scale comes from given deviations

    @classmethod
    def of(
        cls,
        points: MeasuredPoints,
        chain: KinematicChain,
        terms: JointTerms,
        *,
        set_names: Sequence[str] | None = None,
        point_names: Sequence[str] | None = None,
    ) -> 'Problem':
        """Return the problem of some measurements; all their labels, and others, may be given to fix their order."""
        sets = tuple(dict.fromkeys(points.sets)) if set_names is None else tuple(set_names)
        targets = tuple(dict.fromkeys(points.points)) if point_names is None else tuple(point_names)
        oriented = points.has_orientation
        rotation = None
        if points.orientation is not None and oriented.any():
            quaternion = np.where(oriented[:, None], points.orientation, np.array([1.0, 0.0, 0.0, 0.0]))
            rotation = rotation_of_quaternion(quaternion)
        scale = np.ones((len(points), 3 if rotation is None else 6))
        if points.std is not None:
            scale[:, :3] = 1.0 / points.std
        if rotation is not None:
            if points.angle_std is not None:
                scale[:, 3:] = 1.0 / points.angle_std[:, None]
            scale[~oriented, 3:] = 0.0
        return cls(
            chain=chain,
            terms=terms,
            q=points.q,
            basis=terms.basis(points.q),
            position=points.position,
            rotation=rotation,
            oriented=oriented,
            set_index=np.array([sets.index(label) for label in points.sets], dtype=np.int64),
            point_index=np.array([targets.index(label) for label in points.points], dtype=np.int64),
            set_names=sets,
            point_names=targets,
            scale=scale,
            weighted=points.std is not None,
        )

    def __len__(self) -> int:
        return len(self.q)

    @property
    def width(self) -> int:
        """Residuals per measurement: 3, or 6 with orientations."""
        return int(self.scale.shape[1])

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Number of frame, tool, geometry and term parameters."""
        return 6 * len(self.set_names), 6 * len(self.point_names), len(self.chain.names), len(self.terms.terms)

    @property
    def blocks(self) -> tuple[slice, slice, slice, slice]:
        """Slices of the frame, tool, geometry and term parameters in the parameter vector."""
        ends = np.cumsum(self.sizes)
        frame, tool, geometry, term = (slice(int(e - s), int(e)) for s, e in zip(self.sizes, ends, strict=True))
        return frame, tool, geometry, term

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, in the order of the parameter vector."""
        result = [f'{labelled("frame", name)}.{axis}' for name in self.set_names for axis in MOTIONS]
        result += [f'{labelled("tool", name)}.{axis}' for name in self.point_names for axis in MOTIONS]
        result += self.chain.names
        result += [name for name, *_ in self.terms.terms]
        return tuple(result)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of all parameters, in the order of the parameter vector."""
        pose = ('m',) * 3 + ('rad',) * 3
        result = pose * (len(self.set_names) + len(self.point_names))
        result += tuple('rad' if rotates else 'm' for rotates in self.chain.rotates)
        return result + tuple(unit for *_, unit in self.terms.terms)

    def subset(self, rows: BoolArray | IntArray) -> 'Problem':
        """Return the problem of some measurements, with the same parameters."""
        return replace(self, **rows_of(self, _ROWS, rows))

    def with_terms(self, terms: JointTerms) -> 'Problem':
        """Return the problem with other joint terms."""
        return replace(self, terms=terms, basis=terms.basis(self.q))

    def residual(self, state: State) -> Array:
        """Return measured minus predicted, unscaled [m, rad], shape (N, 3 or 6)."""
        return self.linearise(state)[0]

    def linearise(self, state: State) -> tuple[Array, Array]:
        """Return measured minus predicted, shape (N, 3 or 6), and the derivative of the predicted by all parameters.

        Residuals are unscaled [m, rad], and zero for orientations that were not measured. Orientation rows are rotation
        vectors in the measurement frame, log(R_measured R^T). The derivative has the shape (N, 3 or 6, number of
        parameters).
        """
        frames = state.frames[self.set_index]
        shift = self.terms.offsets(self.basis, state.coefficients)
        pose = self.chain.evaluate(state.geometry, self.q, base=frames, shift=shift)
        tools = state.tools[self.point_index]
        predicted = pose.position + np.einsum('nij,nj->ni', pose.rotation, tools[:, :3, 3])
        residual = np.zeros((len(self), self.width))
        residual[:, :3] = self.position - predicted
        jacobian = np.zeros((len(self), self.width, sum(self.sizes)))
        frame_block, tool_block, geometry_block, term_block = self.blocks
        rows = np.arange(len(self))

        arm = predicted - frames[:, :3, 3]
        for k in range(6):
            axis = frames[:, :3, k % 3]
            column = frame_block.start + 6 * self.set_index + k
            jacobian[rows, :3, column] = axis if k < 3 else np.cross(axis, arm)
            if k >= 3 and self.width == 6:
                jacobian[rows, 3:, column] = axis
        for k in range(3):
            jacobian[rows, :3, tool_block.start + 6 * self.point_index + k] = pose.rotation[:, :, k]

        columns, count = self.chain.jacobian(pose, predicted)[:, : self.width], len(self.chain.names)
        jacobian[:, :, geometry_block] = columns[:, :, :count]
        of_terms = columns[:, :, [count + joint for _, joint, _, _ in self.terms.terms]]
        jacobian[:, :, term_block] = self.basis[:, None, :] * of_terms
        if self.width == 6 and self.rotation is not None:
            rotation = pose.rotation @ tools[:, :3, :3]
            relative = self.rotation @ np.swapaxes(rotation, 1, 2)
            residual[:, 3:] = vector_of_rotation(relative) * self.oriented[:, None]
            for k in range(3):
                jacobian[rows, 3:, tool_block.start + 6 * self.point_index + 3 + k] = rotation[:, :, k]
        return residual, jacobian

    def moved(self, state: State, step: Array) -> State:
        """Return the state after a step of the parameter vector."""
        frame_block, tool_block, geometry_block, term_block = self.blocks
        frames, tools = state.frames.copy(), state.tools.copy()
        move = step[frame_block].reshape(-1, 6)
        frames[:, :3, 3] += np.einsum('sij,sj->si', frames[:, :3, :3], move[:, :3])
        frames[:, :3, :3] = frames[:, :3, :3] @ rotation_of_vector(move[:, 3:])
        move = step[tool_block].reshape(-1, 6)
        tools[:, :3, 3] += move[:, :3]
        tools[:, :3, :3] = tools[:, :3, :3] @ rotation_of_vector(move[:, 3:])
        return State(
            frames=frames,
            tools=tools,
            geometry=state.geometry + step[geometry_block],
            coefficients=state.coefficients + step[term_block],
        )


def labelled(kind: str, label: str) -> str:
    """Return ``frame[A]``, or ``frame`` for the set without a label."""
    return f'{kind}[{label}]' if label else kind


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
    sine 1e-4 of the angle between a column and the span of the others. A column counts as zero below ``smallest``, its
    root mean square.

    Returns the chosen columns of the matrix, shape (m, k), in increasing order, and for each other one of the groups
    the chosen ones that it is a combination of, the largest share first; none where the column itself is zero.
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


def observability_index(rows: Array, poses: int) -> float:
    """Return O1, the geometric mean of the singular values of rows (M, m) over sqrt(poses); 0 where they lack rank."""
    singular = np.linalg.svd(rows, compute_uv=False)
    return float(np.exp(np.mean(np.log(singular))) / np.sqrt(poses)) if singular.all() else 0.0


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


def placed_columns(problem: Problem, unknown: IntArray, *, sets: int = 0, targets: int = 0) -> IntArray:
    """Return the columns of the unknown axes of all frames and targets but the first ``sets`` and ``targets``."""
    first_tool = problem.blocks[1].start
    columns = [6 * s + k for s in range(sets, len(problem.set_names)) for k in unknown if k < 6]
    columns += [first_tool + 6 * t + k - 6 for t in range(targets, len(problem.point_names)) for k in unknown if k >= 6]
    return np.array(columns, dtype=np.int64)


def identifiable(problem: Problem, state: State, unknown: IntArray, *, few: bool = False) -> Identifiable:
    """Decide by rank which parameters can be identified, first by any measurements of this kind, then by these.

    Frames come before targets and targets before the geometry, so that what is fixed is a parameter of the arm with a
    nominal value; in the geometry the joints' zeros come first. Where ``few`` poses are allowed and there are too few,
    all that any measurements determine are free. Raises a CalibrationError if there are too few different poses, and
    they are not allowed.
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


def seen_at(problem: Problem, can: Identifiable, state: State, unknown: IntArray) -> Identifiable:
    """Return what can be identified with the frames and targets that only the estimated geometry shows.

    Where the axes of the nominal geometry are parallel, as a SCARA's, or meet, a target's place along them acts as that
    of the frame; where those of the real arm are not quite, it decides what their tilt does. A parameter of the arm
    that is left out has a nominal value, which is nearly right; that of a frame or a target has none.
    """
    placed = placed_columns(problem, unknown)
    arm = np.setdiff1d(can.free, placed)
    of_frames = placed[placed < problem.blocks[0].stop]
    free, _ = _independent(problem, state, [of_frames, placed[len(of_frames) :], arm])
    added = np.setdiff1d(free, can.free)
    if not len(added) or can.numbers <= can.structural + len(added) or len(free) < len(can.free) + len(added):
        return can
    reasons = {k: text for k, text in can.reasons.items() if k not in added}
    return replace(can, free=free, structural=can.structural + len(added), reasons=reasons)


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
