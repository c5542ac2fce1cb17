# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Robots and oracles of the dynamics tests."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from robotid_ros.dynamics.recursion import one_sample, single_torque
from robotid_ros.errors import ModelWarning
from robotid_ros.model import RobotModel

ROBOTS = Path(__file__).parent / 'robots'
PACKAGED = Path(__file__).parents[1] / 'robotid_ros' / 'robots'
ARMS = {
    'ur5': ROBOTS / 'ur5.urdf',
    'ur10': ROBOTS / 'ur10.urdf',
    'ur10e': PACKAGED / 'ur10e.urdf',
    'panda': ROBOTS / 'panda.urdf',
    'kinova': ROBOTS / 'kinova_j2s6s200.urdf',
    'xarm7': ROBOTS / 'xarm7.urdf',
    'iiwa14': PACKAGED / 'iiwa14_space.urdf',
}

HALF = np.pi / 2.0
# Geometry as in the manufacturers' sheets: (theta, d, a, alpha) before each link's far end.
UR10_DH = (
    (0, 0.1273, 0, HALF),
    (0, 0, -0.612, 0),
    (0, 0, -0.5723, 0),
    (0, 0.163941, 0, HALF),
    (0, 0.1157, 0, -HALF),
    (0, 0.0922, 0, 0),
)
# (alpha, a, d, theta) before each joint.
PUMA560_MDH = (
    (0, 0, 0, 0),
    (-HALF, 0, 0.2435, 0),
    (0, 0.4318, -0.0934, 0),
    (HALF, -0.0203, 0.4331, 0),
    (-HALF, 0, 0, 0),
    (HALF, 0, 0, 0),
)
LWR4_MDH = (
    (0, 0, 0.3105, 0),
    (HALF, 0, 0, 0),
    (-HALF, 0, 0.4, 0),
    (-HALF, 0, 0, 0),
    (HALF, 0, 0.39, 0),
    (HALF, 0, 0, 0),
    (-HALF, 0, 0.078, 0),
)


def arm(name: str, **options: Any) -> RobotModel:
    """Return one of ARMS; what its description lacks is of no interest here."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(ARMS[name], **options)


def motion(n: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random positions, velocities and accelerations, shape (count, n)."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.uniform(-3.0, 3.0, (3, count, n))
    return q, dq, ddq


@contextlib.contextmanager
def without_compiler() -> Iterator[None]:
    """Evaluate in numpy what is otherwise compiled."""
    before = os.environ.get('ROBOTID_NO_COMPILER')
    os.environ['ROBOTID_NO_COMPILER'] = '1'
    kept = single_torque, one_sample
    try:
        for function in kept:
            function.cache_clear()
        yield
    finally:
        for function in kept:
            function.cache_clear()
        del os.environ['ROBOTID_NO_COMPILER']
        if before is not None:
            os.environ['ROBOTID_NO_COMPILER'] = before


class PinocchioArm:
    """The same arm in Pinocchio, every joint outside the chain held at its neutral position."""

    def __init__(self, model: RobotModel) -> None:
        pinocchio = pytest.importorskip('pinocchio', reason='needs pin')

        self.pin = pinocchio
        assert model.source is not None
        whole = pinocchio.buildModelFromXML(model.source)
        wanted = {whole.getJointId(name) for name in model.joint_names}
        locked = [k for k in range(1, whole.njoints) if k not in wanted]
        self.model = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole))
        self.model.gravity.linear = np.array(model.gravity)
        assert list(self.model.names)[1:] == list(model.joint_names)
        self.data = self.model.createData()

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Return Pinocchio's configuration: cosine and sine for a continuous joint."""
        parts = [
            [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
            for joint, value in zip(list(self.model.joints)[1:], q, strict=True)
        ]
        return np.concatenate(parts)

    def inverse_dynamics(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Return rnea sample by sample."""
        rows = zip(q, dq, ddq, strict=True)
        return np.array([self.pin.rnea(self.model, self.data, self.configuration(a), b, c) for a, b, c in rows])

    def regressor(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Return computeJointTorqueRegressor with the columns in this package's order."""
        result = np.array(
            [
                self.pin.computeJointTorqueRegressor(self.model, self.data, self.configuration(a), b, c)
                for a, b, c in zip(q, dq, ddq, strict=True)
            ]
        )
        # Pinocchio: m mx my mz Ixx Ixy Iyy Ixz Iyz Izz.
        order = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
        blocks = result.reshape(*result.shape[:2], -1, 10)
        return blocks[..., order].reshape(result.shape)


def random_inertial(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return physical parameters of n links: clouds of point masses."""
    points = rng.normal(scale=0.2, size=(n, 12, 3))
    masses = rng.uniform(0.05, 0.5, (n, 12))
    square = np.einsum('kp,kpi,kpi->k', masses, points, points)
    spread = np.einsum('kp,kpi,kpj->kij', masses, points, points)
    tensor = square[:, None, None] * np.eye(3) - spread
    first = np.einsum('kp,kpi->ki', masses, points)
    six = tensor[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    return np.concatenate([six, first, masses.sum(axis=1)[:, None]], axis=1)


@st.composite
def dh_robots(draw: st.DrawFn, *, largest: int = 8, couplings: bool = True) -> RobotModel:
    """Return arms of 1 to ``largest`` joints, modified or standard DH, many right angles and zeros."""
    n = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    angles = rng.choice([0.0, HALF, -HALF, np.pi, np.nan], (n, 2), p=[0.3, 0.25, 0.2, 0.1, 0.15])
    angles = np.where(np.isnan(angles), rng.uniform(-3.0, 3.0, (n, 2)), angles)
    lengths = rng.uniform(-0.8, 0.8, (n, 2)) * rng.integers(0, 2, (n, 2))
    types = tuple(draw(st.lists(st.sampled_from(('revolute', 'revolute', 'prismatic')), min_size=n, max_size=n)))
    gravity = ((0.0, 0.0, -9.81), (0.0, 9.81, 0.0), tuple(rng.normal(size=3)), (0.0, 0.0, 0.0))[draw(st.integers(0, 3))]
    coupling = np.eye(n)
    if couplings and draw(st.booleans()):
        coupling += np.tril(rng.normal(scale=0.3, size=(n, n)), -1)
    options = {'types': types, 'gravity': gravity, 'coupling': coupling, 'inertial': random_inertial(n, rng)}
    if draw(st.booleans()):
        return RobotModel.from_mdh(np.column_stack([angles[:, 0], lengths, angles[:, 1]]), **options)
    return RobotModel.from_dh(np.column_stack([angles[:, 1], lengths, angles[:, 0]]), **options)
