# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Arms and measurements made without the package's own kinematics."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.calibration import MeasuredPoints
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.joint_limits import JointLimits


def turn(axis: int, angle: float) -> np.ndarray:
    """Elementary rotation, written out."""
    c, s = np.cos(angle), np.sin(angle)
    result = np.eye(4)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    result[i, i] = result[j, j] = c
    result[i, j], result[j, i] = -s, s
    return result


def shift(*xyz: float) -> np.ndarray:
    result = np.eye(4)
    result[:3, 3] = xyz
    return result


def dh_pose(table: DHTable, q: Sequence[float]) -> np.ndarray:
    """Tip of a DH table by the textbook product of elementary matrices."""
    pose = np.eye(4)
    for i in range(table.n):
        motion = table.direction[i] * q[i]
        slides = table.joint_types[i] == 'prismatic'
        about = turn(2, table.theta[i] + (0.0 if slides else motion)) @ shift(0, 0, table.d[i] + motion * slides)
        along = shift(table.a[i], 0, 0)
        if table.convention == 'standard':
            pose = pose @ about @ along @ turn(0, table.alpha[i]) @ turn(1, table.beta[i])
        else:
            pose = pose @ turn(0, table.alpha[i]) @ along @ turn(1, table.beta[i]) @ about
    return pose


def dh_poses(table: DHTable, q: np.ndarray) -> np.ndarray:
    return np.stack([dh_pose(table, row) for row in q])


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    matrix = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return matrix * np.sign(np.linalg.det(matrix))


def random_frame(rng: np.random.Generator, distance: float = 3.0) -> np.ndarray:
    frame = np.eye(4)
    frame[:3, :3], frame[:3, 3] = random_rotation(rng), rng.uniform(-distance, distance, 3)
    return frame


def measured(
    joint_names: Sequence[str],
    q: np.ndarray,
    tips: np.ndarray,
    rng: np.random.Generator,
    *,
    frame: np.ndarray | None = None,
    target: Sequence[float] = (0.06, -0.04, 0.11),
    noise: float = 0.0,
    **labels: tuple[str, ...],
) -> MeasuredPoints:
    """Measurements of one target from given tip poses."""
    tool = shift(*target)
    poses = (np.eye(4) if frame is None else frame) @ tips @ tool
    return MeasuredPoints(
        joint_names=tuple(joint_names),
        q=q,
        position=poses[:, :3, 3] + rng.normal(0.0, 1.0, (len(q), 3)) * noise,
        **labels,
    )


def elbow_puma() -> DHTable:
    """Puma 560, standard DH (Corke and Armstrong 1994): axes 2 and 3 parallel, others not."""
    right = np.pi / 2
    return DHTable(
        joint_names=tuple('abcdef'),
        theta=np.zeros(6),
        d=np.array([0.6718, 0.0, 0.15005, 0.4318, 0.0, 0.0563]),
        a=np.array([0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0]),
        alpha=np.array([right, 0.0, -right, right, -right, 0.0]),
    )


def ur10e() -> DHTable:
    """Universal Robots UR10e, standard DH as published: axes 2, 3 and 4 parallel."""
    right = np.pi / 2
    return DHTable(
        joint_names=tuple('abcdef'),
        theta=np.zeros(6),
        d=np.array([0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655]),
        a=np.array([0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0]),
        alpha=np.array([right, 0.0, 0.0, right, -right, 0.0]),
    )


def iiwa_modified() -> DHTable:
    """KUKA LBR iiwa 14, seven axes, modified DH."""
    right = np.pi / 2
    return DHTable(
        joint_names=tuple('abcdefg'),
        theta=np.zeros(7),
        d=np.array([0.36, 0.0, 0.42, 0.0, 0.4, 0.0, 0.126]),
        a=np.zeros(7),
        alpha=np.array([0.0, -right, right, right, -right, -right, right]),
        convention='modified',
    )


def scara() -> DHTable:
    """Four axes, three parallel turning ones and a slide."""
    return DHTable(
        joint_names=('j1', 'j2', 'lift', 'j4'),
        theta=np.zeros(4),
        d=np.array([0.4, 0.0, 0.0, 0.05]),
        a=np.array([0.35, 0.3, 0.0, 0.0]),
        alpha=np.array([0.0, np.pi, 0.0, 0.0]),
        joint_types=('revolute', 'revolute', 'prismatic', 'revolute'),
        limits=JointLimits.unlimited(4).overridden(lower=[-2.5, -2.5, -0.2, -3.0], upper=[2.5, 2.5, 0.0, 3.0]),
    )


def random_table(rng: np.random.Generator, n: int, convention: str = 'standard') -> DHTable:
    """Any arm: some right angles, some parallel neighbours, some skew ones, possibly a slide."""
    alpha = rng.choice([0.0, np.pi / 2, -np.pi / 2, np.pi, 0.7], n)
    types = ['revolute'] * n
    if n > 1 and rng.random() < 0.3:
        types[int(rng.integers(1, n))] = 'prismatic'
    return DHTable(
        joint_names=tuple(f'j{k}' for k in range(n)),
        theta=rng.uniform(-np.pi, np.pi, n),
        d=rng.uniform(-0.4, 0.4, n),
        a=rng.uniform(-0.4, 0.4, n),
        alpha=alpha,
        convention=convention,
        joint_types=tuple(types),
        direction=rng.choice([-1.0, 1.0], n),
    )
