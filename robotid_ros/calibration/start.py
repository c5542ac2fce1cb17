# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Before the first step: are the measurements usable, where are the frames, what can be told apart."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.calibration.diagnosis import check_nominal_fit
from robotid_ros.calibration.identifiability import Redundancy, independent_columns
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem, State
from robotid_ros.calibration.validation import mean_tool_rotations
from robotid_ros.errors import CalibrationError

__all__ = ['FrameOption', 'Identifiable', 'ToolOption', 'check_measurements', 'identifiable', 'placed_start']

FrameOption: TypeAlias = Literal['unknown', 'known']
ToolOption: TypeAlias = Literal['auto', 'known', 'position', 'pose']

_POSES_PER_LABEL = 20
_SAME_POSE = 4  # decimals [rad, m]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifiable:
    """Which parameters the measurements determine.

    Attributes
    ----------
    free : ndarray of int
    structural : int
        How many there would be with unlimited poses.
    poses, numbers : int
        Different poses, and independent numbers measured there.
    reasons : mapping of int to str
        Why a parameter that was asked for is not free.
    """

    free: IntArray
    structural: int
    poses: int
    numbers: int
    reasons: Mapping[int, str]


def check_measurements(points: MeasuredPoints) -> None:
    """Refuse measurements that cannot tell anything.

    Raises
    ------
    CalibrationError
        If poses or measured positions all coincide.
    """
    if len(points) == 0:
        raise CalibrationError('expected measurements at many different poses, got none')
    if _different_poses(points.q) == 1:
        raise CalibrationError(
            f'all {len(points)} measurements were taken at one pose; a calibration needs many different poses'
        )
    if np.ptp(points.position, axis=0).max() < 1e-6:
        raise CalibrationError(
            f'all {len(points)} measured positions coincide while the joints move; the columns x, y, z are wrong'
        )


def placed_start(
    problem: Problem,
    frame: FrameOption,
    tool: ToolOption,
    targets: Mapping[str, ArrayLike] | None,
    rng: np.random.Generator,
) -> tuple[State, IntArray, str | None]:
    """Place frames and targets by the nominal geometry.

    Returns
    -------
    state : State
    unknown : ndarray of int
        Axes that are estimated: 0 to 5 of every frame, 6 to 11 of every target.
    warning : str or None

    Raises
    ------
    CalibrationError
        If an option or target is wrong, or the nominal geometry does not fit at all.
    """
    _check_options(problem, frame, tool)
    tools = _known_tools(problem, targets)
    frames = np.tile(np.eye(4), (len(problem.set_names), 1, 1))
    pose = problem.chain.evaluate(problem.chain.nominal, problem.q)
    placement = place(
        problem.position,
        pose.rotation,
        pose.position,
        problem.set_index,
        problem.point_index,
        frames=frames if frame == 'known' else None,
        targets=tools[:, :3, 3] if tool == 'known' else None,
        rng=rng,
    )
    warning = check_nominal_fit(
        problem.chain,
        problem.q,
        problem.position,
        problem.set_index,
        problem.point_index,
        error=placement.error,
        known_frame=frame == 'known',
    )
    tools[:, :3, 3] = placement.targets
    turned = problem.rotation is not None and tool in ('auto', 'pose')
    if turned:
        tools[:, :3, :3] = mean_tool_rotations(problem, placement.frames, pose.rotation)
    unknown = [] if frame == 'known' else list(range(6))
    unknown += [] if tool == 'known' else [6, 7, 8]
    unknown += [9, 10, 11] if turned else []
    state = State(
        frames=placement.frames, tools=tools, geometry=np.array(problem.chain.nominal), coefficients=np.zeros(0)
    )
    return state, np.array(unknown, dtype=np.int64), warning


def _check_options(problem: Problem, frame: FrameOption, tool: ToolOption) -> None:
    for value, known, what in (
        (frame, ('unknown', 'known'), 'frame'),
        (tool, ('auto', 'known', 'position', 'pose'), 'tool'),
    ):
        if value not in known:
            raise CalibrationError(f"{what}: expected one of {', '.join(known)}, got '{value}'")
    if tool == 'pose' and problem.rotation is None:
        raise CalibrationError("tool 'pose' needs measured orientations (qw,qx,qy,qz); there are positions only")


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


def placed_columns(problem: Problem, unknown: IntArray) -> IntArray:
    """Return the columns of all frames' and targets' unknown axes."""
    first_tool = problem.blocks[1].start
    columns = [6 * s + k for s in range(len(problem.set_names)) for k in unknown if k < 6]
    columns += [first_tool + 6 * t + k - 6 for t in range(len(problem.point_names)) for k in unknown if k >= 6]
    return np.array(columns, dtype=np.int64)


def identifiable(problem: Problem, state: State, unknown: IntArray) -> Identifiable:
    """Decide by rank what can be told apart, first by any measurements of this kind, then by these.

    Frames come before targets and targets before the geometry, so that what is fixed is a
    parameter of the arm with a nominal value; in the geometry the joints' zeros come first.

    Raises
    ------
    CalibrationError
        If there are too few different poses.
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
    reasons = {r.column: _reason(r, names, 'no measurement of this kind {} it') for r in alike}
    different = _different_poses(np.column_stack([problem.q, problem.set_index, problem.point_index]))
    per_pose = int(np.count_nonzero(problem.scale)) // len(problem)
    numbers = different * per_pose
    if numbers <= len(structural):
        raise CalibrationError(
            f'{len(problem)} measurements at {different} different poses give {numbers} numbers for {len(structural)} '
            f'parameters; measure at least {len(structural) // per_pose + 1} different poses, better several times that'
        )
    kept = set(structural.tolist())
    free, lacking = _independent(
        problem, state, [np.array([c for c in g if c in kept], dtype=np.int64) for g in groups]
    )
    reasons |= {r.column: _reason(r, names, 'these poses do not {} it') for r in lacking}
    return Identifiable(free=free, structural=len(structural), poses=different, numbers=numbers, reasons=reasons)


def _independent(problem: Problem, state: State, groups: list[IntArray]) -> tuple[IntArray, tuple[Redundancy, ...]]:
    jacobian = problem.linearise(state)[1] * (problem.scale / problem.scale[:, :3].max())[:, :, None]
    return independent_columns(jacobian.reshape(-1, jacobian.shape[2]), groups)


def _reason(redundancy: Redundancy, names: tuple[str, ...], pattern: str) -> str:
    """Say why a parameter was left out; the pattern says what cannot "show" it, or "tell" it apart."""
    structural = pattern.startswith('no ')
    if not redundancy.like:
        return pattern.format('shows' if structural else 'show') + ': it does not move the target'
    like = [names[k] for k in redundancy.like[:6]]
    more = f' and {len(redundancy.like) - 6} more' if len(redundancy.like) > 6 else ''
    return pattern.format('tells' if structural else 'tell') + f' apart from {", ".join(like)}{more}'


def _unlimited(problem: Problem) -> Problem:
    """Return the same problem at random poses over full turns, as many as anyone could wish."""
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


def _different_poses(q: Array) -> int:
    return len(np.unique(np.round(q, _SAME_POSE), axis=0))
