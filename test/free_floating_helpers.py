# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Robots of the free-floating tests: the packaged example, and random ones."""

import numpy as np

from robotid_ros.excitation import FourierTrajectory
from robotid_ros.free_floating import FreeFloatingRobot, RigidBody, read_mission
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import rpy_rotation, translation


def example_robot():
    return read_mission().true_robot


def random_body(rng, mass):
    """Return a physical body: principal moments from a positive definite second-moment matrix."""
    root = rng.normal(size=(3, 3)) * 0.3
    sigma = mass * (root @ root.T + 0.01 * np.eye(3))
    return RigidBody(mass=mass, center_of_mass=rng.normal(size=3) * 0.3, inertia=np.trace(sigma) * np.eye(3) - sigma)


def random_robot(rng, n, prismatic=()):
    """Return a random arm on a random base, its last body included."""
    placements = np.stack([translation(rng.normal(size=3) * 0.4) @ rpy_rotation(*rng.normal(size=3)) for _ in range(n)])
    axes = rng.normal(size=(n, 3))
    arm = RobotModel(
        name='random',
        joint_names=tuple(f'j{k + 1}' for k in range(n)),
        joint_types=tuple('prismatic' if k in prismatic else 'revolute' for k in range(n)),
        placements=placements,
        axes=axes / np.linalg.norm(axes, axis=1, keepdims=True),
        inertial=np.stack([random_body(rng, rng.uniform(1.0, 8.0)).parameters for _ in range(n)]),
        base_inertial=random_body(rng, rng.uniform(50.0, 300.0)).parameters,
    )
    bare = FreeFloatingRobot(arm=arm, body=RigidBody.from_parameters(arm.inertial[-1]))
    return bare.with_target(random_body(rng, rng.uniform(5.0, 50.0)))


def random_trajectory(rng, n, size=0.25, frequency=0.1, harmonics=2):
    return FourierTrajectory(
        a=size * rng.normal(size=(n, harmonics)),
        b=size * rng.normal(size=(n, harmonics)),
        offset=rng.normal(size=n),
        base_frequency=frequency,
    )


def planar_robot():
    """Return one revolute joint about z, base and link both in its plane: momentum in closed form."""
    link = inertial_parameters(2.0, np.array([0.5, 0.0, 0.0]), np.diag([0.01, 0.2, 0.2]))
    arm = RobotModel(
        name='planar',
        joint_names=('j1',),
        joint_types=('revolute',),
        placements=np.eye(4)[None],
        axes=np.array([[0.0, 0.0, 1.0]]),
        inertial=link[None],
        base_inertial=inertial_parameters(10.0, np.zeros(3), np.diag([1.0, 1.0, 1.5])),
    )
    return FreeFloatingRobot(arm=arm, body=RigidBody.from_parameters(link))


def point_jacobian(model, q, link, point):
    """Return the textbook Jacobian of a point of a link: columns [z x (p - o); z], or [z; 0] of a slide."""
    poses = link_transforms(model, q)
    target = poses[:, link, :3, :3] @ point + poses[:, link, :3, 3]
    result = np.zeros((len(q), 6, model.n))
    for i in range(link + 1):
        axis = poses[:, i, :3, :3] @ model.axes[i]
        turns = model.joint_types[i] == 'revolute'
        result[:, :3, i] = np.cross(axis, target - poses[:, i, :3, 3]) if turns else axis
        result[:, 3:, i] = axis if turns else 0.0
    return result @ model.coupling
