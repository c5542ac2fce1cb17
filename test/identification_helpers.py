# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Arms, motions and torques for the tests of the identification."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.identification.judge import Decision
from robotid_ros.identification.setup import SetUp
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters

ROBOTS = Path(__file__).parents[1] / 'robotid_ros' / 'robots'
UR10E = ROBOTS / 'ur10e.urdf'

TWO_LINKS = """<?xml version="1.0"?>
<!-- a planar arm in the vertical plane, with a tool fixed to its second link -->
<robot name="two_links">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0.2 0 0"/><mass value="4.0"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.06"/></inertial>
  </link>
  <link name="lower">
    <inertial><origin xyz="0.15 0.01 0"/><mass value="2.5"/>
      <inertia ixx="0.008" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial>
  </link>
  <link name="tool"><inertial><mass value="0.3"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="4" effort="100"/></joint>
  <joint name="elbow" type="revolute"><origin xyz="0.4 0 0"/><parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="4" effort="50"/></joint>
  <joint name="flange" type="fixed"><origin xyz="0.35 0 0" rpy="0 0.4 0"/>
    <parent link="lower"/><child link="tool"/></joint>
</robot>
"""


@contextmanager
def as_described() -> Iterator[None]:
    """Let ``identify`` not search for set-ups, which takes a third to two thirds of it: other tests are about those."""
    said = Decision(subject='set-up', chosen='as described')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            'robotid_ros.identification.steps.find_setups', lambda _, model, **__: ([SetUp.as_described(model)], said)
        )
        yield


def pinocchio_arm(model: RobotModel) -> Any:
    """Return a model of revolute joints as Pinocchio has it."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    arm = pinocchio.Model()
    arm.gravity.linear = np.array(model.gravity)
    parent = 0
    for k in range(model.n):
        placement = pinocchio.SE3(model.placements[k][:3, :3], model.placements[k][:3, 3])
        joint = pinocchio.JointModelRevoluteUnaligned(model.axes[k])
        parent = arm.addJoint(parent, joint, placement, model.joint_names[k])
        mass, centre, inertia = split_inertial_parameters(model.inertial[k])
        arm.appendBodyToJoint(parent, pinocchio.Inertia(float(mass), centre, inertia), pinocchio.SE3.Identity())
    return arm


def pinocchio_torque(model: RobotModel, q: Array, dq: Array, ddq: Array) -> Array:
    """Return the inverse dynamics of a model by Pinocchio, rotor inertias included, shape (N, n)."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    arm = pinocchio_arm(model)
    data = arm.createData()
    rows = [pinocchio.rnea(arm, data, *row).copy() for row in zip(q, dq, ddq, strict=True)]
    return np.array(rows) + model.rotor_inertia * ddq


def fourier_motion(
    n: int,
    rng: np.random.Generator,
    *,
    seconds: float = 10.0,
    rate: float = 100.0,
    size: float = 0.6,
    begin: float = 0.0,
    harmonics: int = 5,
) -> tuple[Array, Array, Array, Array]:
    """Return times, positions, velocities and accelerations of a random periodic motion."""
    time = begin + np.arange(int(seconds * rate)) / rate
    frequency = 2.0 * np.pi / seconds * np.arange(1, 6)
    phase = rng.uniform(0.0, 2.0 * np.pi, (n, 5))
    amplitude = rng.uniform(0.3, 1.0, (n, 5)) * size / np.arange(1, 6)
    angle = time[:, None, None] * frequency + phase
    q = np.sum(amplitude * np.sin(angle), axis=2)
    dq = np.sum(amplitude * frequency * np.cos(angle), axis=2)
    ddq = -np.sum(amplitude * frequency**2 * np.sin(angle), axis=2)
    return time, q, dq, ddq


def dataset(
    model: RobotModel, motion: tuple[Array, Array, Array, Array], torque: Array, rate: float = 100.0, **options: object
) -> Dataset:
    """Return a dataset without any filtering."""
    time, q, dq, ddq = motion
    fields = {'joint_names': model.joint_names, 'rate': rate, 'cutoff': rate / 2.0, **options}
    return Dataset(time=time, q=q, dq=dq, ddq=ddq, tau=torque, **fields)  # type: ignore[arg-type]


def swept(model: RobotModel, coulomb: Array, viscous: Array, noise: float = 0.02) -> FrictionStrokes:
    """Return the strokes of a sweep, three speeds and eight places each, with the torques of Pinocchio."""
    speeds = [sign * v for v in (0.05, 0.2, 0.6) for sign in (1.0, -1.0)]
    rows = [(j, v, place) for j in range(model.n) for v in speeds for place in range(8)]
    joint, velocity, place = (np.array(column) for column in zip(*rows, strict=True))
    q, dq = np.tile(np.linspace(0.3, -0.5, model.n), (len(rows), 1)), np.zeros((len(rows), model.n))
    q[np.arange(len(rows)), joint] += 0.05 * np.where(velocity > 0.0, place, 7 - place)
    dq[np.arange(len(rows)), joint] = velocity
    torque = pinocchio_torque(model, q, dq, np.zeros_like(q)) + coulomb * np.sign(dq) + viscous * dq
    torque += np.random.default_rng(0).normal(0.0, noise, torque.shape)
    time = 0.1 * np.arange(len(rows))
    return FrictionStrokes(joint_names=model.joint_names, time=time, q=q, dq=dq, tau=torque)
