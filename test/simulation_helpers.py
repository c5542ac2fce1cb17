# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Small arms, and Pinocchio's view of an arm, for the tests of the simulation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters

UR10E = Path(__file__).parents[1] / 'robotid_ros' / 'robots' / 'ur10e.urdf'

# A flywheel on a vertical axis: gravity does nothing, J = Izz + rotor inertia (0.5 + 0.25 = 0.75).
FLYWHEEL = """
<robot name="flywheel" xmlns:drake="http://drake.mit.edu">
  <link name="base"/>
  <link name="wheel">
    <inertial><mass value="2.0"/><inertia ixx="0.3" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.5"/></inertial>
  </link>
  <joint name="spin" type="continuous">
    <parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/><limit velocity="50" effort="100"/>
  </joint>
  <transmission name="t"><joint name="spin"/>
    <actuator name="m"><mechanicalReduction>50</mechanicalReduction><drake:rotor_inertia value="1e-4"/></actuator>
  </transmission>
</robot>
"""

# A point-like bob on a horizontal axis: T = 2 pi sqrt(I / (m g l)) for small swings.
PENDULUM = """
<robot name="pendulum">
  <link name="base"/>
  <link name="rod">
    <inertial><origin xyz="0 0 -0.5"/><mass value="3.0"/>
      <inertia ixx="0.06" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.01"/></inertial>
  </link>
  <joint name="swing" type="revolute">
    <parent link="base"/><child link="rod"/><axis xyz="0 1 0"/><limit lower="-9" upper="9" velocity="50" effort="100"/>
  </joint>
</robot>
"""

# A crane-like arm with a prismatic joint, tilted frames, an oblique axis and full inertia tensors.
CRANE = """
<robot name="crane">
  <link name="base"/>
  <link name="column"><inertial><origin xyz="0.02 -0.1 0.3" rpy="0.3 -0.2 0.1"/><mass value="8"/>
    <inertia ixx="0.5" ixy="0.03" ixz="-0.02" iyy="0.4" iyz="0.05" izz="0.3"/></inertial></link>
  <link name="jib"><inertial><origin xyz="0.4 0.01 -0.02" rpy="0 0.2 -0.4"/><mass value="5"/>
    <inertia ixx="0.1" ixy="0.02" ixz="0.01" iyy="0.6" iyz="-0.03" izz="0.55"/></inertial></link>
  <link name="slide"><inertial><origin xyz="0.1 0.05 0.2"/><mass value="3"/>
    <inertia ixx="0.05" ixy="0.004" ixz="0.003" iyy="0.06" iyz="-0.002" izz="0.04"/></inertial></link>
  <joint name="turn" type="revolute">
    <origin xyz="0.1 0 0.4" rpy="0.1 0 0.2"/><parent link="base"/><child link="column"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="2" effort="200"/>
    <dynamics damping="3" friction="2"/></joint>
  <joint name="luff" type="revolute">
    <origin xyz="0 0.2 0.5" rpy="-0.4 0.3 0"/><parent link="column"/><child link="jib"/>
    <axis xyz="0.6 0.8 0"/><limit lower="-2" upper="2" velocity="2" effort="200"/>
    <dynamics damping="2" friction="1"/></joint>
  <joint name="reach" type="prismatic">
    <origin xyz="0.5 0 0" rpy="0 0.5 0"/><parent link="jib"/><child link="slide"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="1" effort="300"/>
    <dynamics damping="20" friction="5"/></joint>
</robot>
"""


def pinocchio_model(source: str | Path, truth: RobotModel) -> tuple[Any, Any]:
    """Return Pinocchio's own reading of a URDF, with the true inertias and rotors put in."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    if Path(str(source)).is_file():
        source = Path(source).read_text(encoding='utf-8')
    model = pinocchio.buildModelFromXML(source)
    mass, com, inertia = split_inertial_parameters(truth.inertial)
    for k in range(truth.n):
        assert model.names[k + 1] == truth.joint_names[k]
        model.inertias[k + 1] = pinocchio.Inertia(float(mass[k]), com[k], inertia[k])
    model.armature = truth.rotor_inertia.copy()
    return model, model.createData()


def pinocchio_torque(model: Any, data: Any, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Return Pinocchio's inverse dynamics, rotors included: before version 3 its own leave them out."""
    import pinocchio

    torque: np.ndarray = pinocchio.rnea(model, data, q, dq, ddq).copy()
    if int(pinocchio.__version__.split('.')[0]) < 3:
        torque += model.armature * ddq
    return torque


def sine_reference(
    model: RobotModel, rate: float, duration: float, amplitude: float = 0.5, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a motion of all joints about the middle of their limits, in motion from the start."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * rate))[:, None] / rate
    w = rng.uniform(1.0, 3.0, model.n)
    phase = rng.uniform(0.0, 6.0, model.n)
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    q = middle + amplitude * np.sin(w * t + phase)
    return q, amplitude * w * np.cos(w * t + phase), -amplitude * w**2 * np.sin(w * t + phase)
