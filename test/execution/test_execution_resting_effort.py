# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Efforts of an arm at rest: those that a driver has taken gravity out of are told from those that hold the arm."""

import numpy as np
import pinocchio
import pytest
from dynamics_helpers import ARMS, arm

from robotid_ros.execution.effort_watch import holds_no_gravity

NAMES = ['ur5', 'ur10', 'ur10e', 'panda', 'kinova', 'xarm7']


def weights(name, positions):
    """Return the gravity torques of a description by Pinocchio, shape (N, n)."""
    model = pinocchio.buildModelFromUrdf(str(ARMS[name]))
    joints = [model.joints[model.getJointId(joint)] for joint in arm(name).joint_names]
    data, torques = model.createData(), []
    for position in positions:
        q = pinocchio.neutral(model)
        for joint, value in zip(joints, position, strict=True):
            q[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
        torques.append(pinocchio.computeGeneralizedGravity(model, data, q)[[joint.idx_v for joint in joints]])
    return np.array(torques)


@pytest.mark.parametrize('name', NAMES)
def test_an_arm_that_holds_itself_is_never_refused_and_one_without_weight_where_the_pose_tells(name):
    model, rng = arm(name), np.random.default_rng(7)
    limit, n, count = model.limits.effort, model.n, 400
    lower, upper = (np.clip(x, -np.pi, np.pi) for x in (model.limits.lower, model.limits.upper))
    positions = rng.uniform(lower, upper, (count, n))
    true = weights(name, positions)
    friction = rng.uniform(-0.05, 0.05, (count, n)) * limit
    masses = rng.uniform(0.5, 2.0, (count, 1))  # of the arm, relative to the description's
    held = [holds_no_gravity(model, q, tau) for q, tau in zip(positions, masses * true + friction, strict=True)]
    assert not any(held)
    turned = [holds_no_gravity(model, q, tau) for q, tau in zip(positions, -true + friction, strict=True)]
    assert not any(turned)  # a sign is another fault, which the identification finds and undoes
    left = rng.uniform(-0.02, 0.02, (count, n)) * limit  # what static friction leaves of a compensated effort
    told = np.array([holds_no_gravity(model, q, tau) for q, tau in zip(positions, left, strict=True)])
    size = np.abs(true / limit)
    tells = 0.5 * np.sum(size**2, axis=1) > 0.1 * np.sum(size, axis=1)
    np.testing.assert_array_equal(told, tells)


def test_joints_without_a_limit_or_a_known_torque_do_not_count():
    model = arm('ur10e')
    q = np.array([0.0, -1.2, 1.2, -1.2, -1.5, 0.0])
    assert holds_no_gravity(model, q, np.zeros(6))
    assert holds_no_gravity(model, q, np.array([np.nan, 0.0, 0.0, 0.0, np.nan, np.nan]))
    assert not holds_no_gravity(model, q, np.full(6, np.nan))  # currents without a torque constant
    unlimited = model.with_inertial(model.inertial, limits=model.limits.overridden(effort=np.full(6, np.inf)))
    assert not holds_no_gravity(unlimited, q, np.zeros(6))
    upright = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])
    assert not holds_no_gravity(model, upright, np.zeros(6))  # such a pose tells nothing
