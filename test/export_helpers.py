# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Results that identifications could have found, and states to compare torques at."""

import numpy as np

from robotid_ros.dynamics import base_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import IdentificationResult
from robotid_ros.identification.verdict import Metrics
from robotid_ros.model import RobotModel


def _link(name: str, mass: float) -> str:
    inertia = f'<inertia ixx="{0.1 * mass}" iyy="{0.1 * mass}" izz="{0.05 * mass}" ixy="0" ixz="0" iyz="0"/>'
    return f'<link name="{name}"><inertial><origin xyz="0.05 0 0.1"/><mass value="{mass}"/>{inertia}</inertial></link>'


def _joint(name: str, kind: str, parent: str, child: str, inside: str) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    bounds = '<limit lower="-1" upper="1" effort="80" velocity="2"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}{bounds}</joint>'


# An arm on a rail, with a gripper one finger of which follows the other.
RAIL = (
    '<robot name="rail"><link name="world"/>'
    + ''.join(_link(*one) for one in (('cart', 9.0), ('arm', 4.0), ('hand', 1.0), ('left', 0.1), ('right', 0.1)))
    + _joint('slide', 'prismatic', 'world', 'cart', '<origin xyz="0 0 1" rpy="0.2 0 0.4"/><axis xyz="0 1 0"/>')
    + _joint('turn', 'revolute', 'cart', 'arm', '<origin xyz="0.1 0 0.2" rpy="0 0.5 0"/><axis xyz="0 0.6 0.8"/>')
    + _joint('reach', 'prismatic', 'arm', 'hand', '<origin xyz="0 0 0.3"/><axis xyz="1 0 0"/>')
    + _joint('left_finger', 'prismatic', 'hand', 'left', '<origin xyz="0 0.02 0.1"/><axis xyz="0 1 0"/>')
    + _joint('right_finger', 'prismatic', 'hand', 'right', '<axis xyz="0 -1 0"/><mimic joint="left_finger"/>')
    + '</robot>'
)


def identified(model: RobotModel, name: str, *, smooth: bool = False, seed: int = 0) -> IdentificationResult:
    """Return a result with random friction of a model: what an identification could have found."""
    rng, n = np.random.default_rng(seed), model.n
    ripple = np.where(np.arange(n) % 2, 200.0, 0.0) if 'ripple' in name else None
    scale = np.full(n, 0.03) if smooth else None
    friction = friction_model(name, velocity_scale=scale, ripple_frequency=ripple)
    values = rng.uniform(0.1, 2.0, (n, len(friction.names)))
    base = base_parameters(model, rotor_inertia=True, tolerance=1e-5)
    metrics = Metrics(
        joint_names=model.joint_names, rmse=np.ones(n), relative_error=np.ones(n), relative_error_total=1.0, samples=100
    )
    return IdentificationResult(
        robot=model.name,
        joint_names=model.joint_names,
        joint_types=model.joint_types,
        link_names=model.link_names,
        gravity=model.gravity,
        base_names=base.names,
        base_units=('1',) * len(base.names),
        base_values=base.values,
        base_std=0.01 * np.abs(base.values),
        base_essential=(True,) * len(base.names),
        inertial=model.inertial,
        rotor_inertia=model.rotor_inertia,
        has_rotor_inertia=True,
        friction=friction,
        friction_values=values,
        friction_std=0.1 * values,
        torque_bandwidth=None,
        condition_si=10.0,
        condition_scaled=5.0,
        usable=True,
        reason='',
        metrics={'training': metrics},
        plain_friction=np.tile([1.0, 2.0], (n, 1)),
    )


def states(n: int, count: int = 40, seed: int = 3) -> tuple[np.ndarray, ...]:
    """Return random states, standstill and creeping among them."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.uniform(-3.0, 3.0, (3, count, n))
    dq[0], dq[1], dq[2] = 0.0, 0.004, -0.0099
    return q, dq, ddq
