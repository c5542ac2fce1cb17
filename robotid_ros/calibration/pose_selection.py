# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Measurement poses that show the parameters best, out of the workspace of an arm."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray, frozen_array
from robotid_ros.calibration.chain import chain_of, joint_terms
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem, State, identifiable, observability_index
from robotid_ros.errors import CalibrationError
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.robot_model import RobotModel

_SWEEPS = 20


def random_configurations(robot: RobotModel | DHTable, count: int, rng: np.random.Generator) -> Array:
    """Return joint coordinates drawn uniformly inside the limits, revolute joints within -pi to pi, (count, n).

    Raises a CalibrationError if the count is not positive, or a prismatic joint has no limits.
    """
    if count < 1:
        raise CalibrationError(f'expected a positive number of poses, got {count}', expected=1, found=count)
    lower, upper = np.array(robot.limits.lower), np.array(robot.limits.upper)
    for i, name in enumerate(robot.joint_names):
        if robot.joint_types[i] == 'revolute':
            lower[i], upper[i] = max(lower[i], -np.pi), min(upper[i], np.pi)
            if lower[i] >= upper[i]:  # limits that leave the turn around zero
                lower[i], upper[i] = robot.limits.lower[i], robot.limits.upper[i]
        elif not np.isfinite(upper[i] - lower[i]):
            raise CalibrationError(f"prismatic joint '{name}' has no position limits; give it some", name=name)
    return rng.uniform(lower, upper, (count, len(lower)))


def sample_workspace(
    robot: RobotModel | DHTable, samples: int = 100_000, *, rng: np.random.Generator | None = None
) -> Array:
    """Return the positions of the tip for joint coordinates drawn uniformly inside the limits.

    Joints without limits turn from -pi to pi.

    Parameters
    ----------
    robot : RobotModel or DHTable
    samples : int
        N
    rng : numpy.random.Generator, optional

    Returns
    -------
    ndarray, shape (N, 3)
        In the base frame [m].

    Raises
    ------
    CalibrationError
        If the number of samples is not positive, or a prismatic joint has no limits.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    chain = chain_of(robot)
    q = random_configurations(robot, samples, rng)
    positions = np.empty((samples, 3))
    for first in range(0, samples, 10_000):
        part = slice(first, first + 10_000)
        positions[part] = chain.evaluate(chain.nominal, q[part]).position
    return positions


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseSelection:
    """Measurement poses and how well they show the parameters."""

    q: Array  # shape (count, n): [rad or m]
    # O1 = (s_1 ... s_m)^(1/m) / sqrt(count) of the Jacobian's singular values, lengths in m, angles in rad (Borm and
    # Menq 1991)
    observability_index: float
    random_index: float  # mean index of as many candidates chosen at random
    parameters: tuple[str, ...]  # the m parameters of the index
    candidates: int  # number of poses chosen from


def select_poses(
    robot: RobotModel | DHTable,
    count: int,
    *,
    candidates: Array | int = 2000,
    allowed: Callable[[Array], BoolArray] | None = None,
    frame: str = 'unknown',
    target: Array | None = None,
    full_pose: bool = False,
    rng: np.random.Generator | None = None,
) -> PoseSelection:
    """Choose poses that maximise the observability index O1 under the joint limits.

    Greedy choice from the candidates by the determinant of the information, then exchanges of a
    chosen pose for a better candidate until none helps (Fedorov).

    Parameters
    ----------
    robot : RobotModel or DHTable
    count : int
        How many.
    candidates : ndarray, shape (C, n), or int
        Poses to choose from, or how many to draw inside the joint limits (within a turn).
    allowed : callable, optional
        Takes tip poses (C, 4, 4) in the base frame and tells which are allowed: visible to the
        tracker, above the table.
    frame : {'unknown', 'known'}
        Whether the measurement frame will be estimated.
    target : ndarray, shape (3,), optional
        Where the target will be in the tip frame [m]; 0.1 m off every axis by default.
    full_pose : bool
        Whether orientations will be measured.
    rng : numpy.random.Generator, optional

    Raises
    ------
    CalibrationError
        If there are too few allowed candidates, or too few poses for the parameters.
    """
    if frame not in ('unknown', 'known'):
        raise CalibrationError(f"frame: expected 'unknown' or 'known', got '{frame}'")
    rng = np.random.default_rng(0) if rng is None else rng
    chain = chain_of(robot)
    q = (
        random_configurations(robot, int(candidates), rng)
        if isinstance(candidates, (int, np.integer))
        else frozen_array(candidates, 'candidates', (None, chain.n), CalibrationError)
    )
    if allowed is not None:
        q = q[np.asarray(allowed(chain.evaluate(chain.nominal, q).transforms), dtype=bool)]
    if count < 1:
        raise CalibrationError(f'expected at least one pose to select, got {count}')
    if len(q) < count:
        raise CalibrationError(f'expected at least {count} allowed candidate poses, got {len(q)}; draw more')
    jacobian, names = _jacobian(robot, q, frame, target, full_pose)
    m, width = jacobian.shape[2], jacobian.shape[1]
    if count * width < m:
        raise CalibrationError(f'{count} poses cannot show {m} parameters; choose at least {-(-m // width)}')
    unit = np.sqrt(np.mean(np.square(jacobian), axis=(0, 1)))
    chosen = np.array(_best(jacobian / unit, count))
    picks = [chosen, *(rng.choice(len(q), count, replace=False) for _ in range(20))]
    index, *others = [observability_index(jacobian[pick].reshape(-1, m), count) for pick in picks]
    return PoseSelection(
        q=q[chosen],
        observability_index=index,
        random_index=float(np.mean(others)),
        parameters=names,
        candidates=len(q),
    )


def _jacobian(
    robot: RobotModel | DHTable, q: Array, frame: str, target: Array | None, full_pose: bool
) -> tuple[Array, tuple[str, ...]]:
    """Return the Jacobian by the independent parameters, (C, 3 or 6, m), and their names."""
    chain = chain_of(robot)
    count = len(q)
    points = MeasuredPoints(
        joint_names=chain.joint_names,
        q=q,
        position=np.zeros((count, 3)),
        orientation=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)) if full_pose else None,
    )
    terms, _ = joint_terms(chain, (), robot.gravity)
    problem = Problem.of(points, chain, terms)
    tools = np.eye(4)[None].copy()
    tools[0, :3, 3] = 0.1 if target is None else frozen_array(target, 'target', (3,), CalibrationError)
    state = State(frames=np.eye(4)[None], tools=tools, geometry=np.array(chain.nominal), coefficients=np.zeros(0))
    unknown = list(range(0 if frame == 'unknown' else 6, 12 if full_pose else 9))
    free: IntArray = identifiable(problem, state, np.array(unknown, dtype=np.int64)).free
    jacobian = problem.linearise(state)[1][:, :, free]
    return jacobian, tuple(problem.names[k] for k in free)


def _best(jacobian: Array, count: int) -> list[int]:
    """Choose poses one by one, then exchange them for better ones until a whole sweep changes nothing."""
    chosen: list[int] = []
    for _ in range(count):
        chosen.append(_fitting(jacobian, chosen, None))
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for place, k in enumerate(before):
            chosen[place] = _fitting(jacobian, chosen[:place] + chosen[place + 1 :], k)
        if chosen == before:
            break
    return chosen


def _fitting(jacobian: Array, others: list[int], present: int | None) -> int:
    """Return the pose that raises the determinant of the others' information most; the present one if none is better.

    The gain is log det(I + J_k M^-1 J_k^T), with a tiny multiple of the identity in M.
    """
    known = jacobian[others].reshape(-1, jacobian.shape[2])
    normal = known.T @ known
    inverse = np.linalg.inv(normal + 1e-9 * max(np.trace(normal) / len(normal), 1.0) * np.eye(len(normal)))
    inner = np.eye(jacobian.shape[1]) + (jacobian @ inverse) @ np.swapaxes(jacobian, 1, 2)
    gain = np.asarray(np.linalg.slogdet(inner)[1])
    gain[others] = -np.inf
    best = int(np.argmax(gain))
    return best if present is None or gain[best] > gain[present] + 1e-9 else present
