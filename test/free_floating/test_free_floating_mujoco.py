# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""An independent engine: MuJoCo with a free joint and no gravity, driven through the joints only."""

import numpy as np
import pytest
from free_floating_helpers import example_robot, random_robot

from robotid_ros.excitation import FourierTrajectory
from robotid_ros.free_floating import (
    FloatingMeasurement,
    SensorNoise,
    design_excitation,
    identify_target,
    read_mission,
    simulate,
)
from robotid_ros.free_floating.robot import momentum_map
from robotid_ros.model.inertia import split_inertial_parameters

mujoco = pytest.importorskip('mujoco')


def spell(values):
    return ' '.join(repr(float(value)) for value in np.ravel(values))


def quaternion_of(rotation):
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, np.ascontiguousarray(rotation).ravel())
    return result


def inertial_element(parameters):
    mass, center, inertia = split_inertial_parameters(parameters)
    six = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return f'<inertial mass="{spell(mass)}" pos="{spell(center)}" fullinertia="{spell(six)}"/>'


def engine_of(robot):
    """Return the MuJoCo model of a floating robot, from its bodies and joints alone."""
    model = robot.model
    text = f'<body name="base"><freejoint/>{inertial_element(model.base_inertial)}'
    for k in range(model.n):
        place = model.placements[k]
        kind = 'hinge' if model.joint_types[k] == 'revolute' else 'slide'
        text += (
            f'<body name="b{k}" pos="{spell(place[:3, 3])}" quat="{spell(quaternion_of(place[:3, :3]))}">'
            f'<joint name="{model.joint_names[k]}" type="{kind}" axis="{spell(model.axes[k])}"/>'
            + inertial_element(model.inertial[k])
        )
    return mujoco.MjModel.from_xml_string(
        '<mujoco><compiler angle="radian" balanceinertia="false" boundmass="0" boundinertia="0"/>'
        '<option gravity="0 0 0" integrator="RK4" timestep="0.002"><flag contact="disable"/></option>'
        f'<worldbody>{text}{"</body>" * (model.n + 1)}</worldbody></mujoco>'
    )


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_engine_sees_no_momentum_in_our_base_motion(seed):
    rng = np.random.default_rng(seed)
    robot = example_robot() if seed == 0 else random_robot(rng, 6, prismatic=(2,))
    engine = engine_of(robot)
    data = mujoco.MjData(engine)
    q, dq = rng.normal(size=robot.n), rng.normal(size=robot.n)
    twist = momentum_map(robot.model, q[None]).base_twist(dq[None])[0]
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    data.qpos[:] = np.concatenate([rng.normal(size=3), quaternion, q])
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, quaternion)
    # the engine's free joint: linear velocity along the world's axes, angular along the body's
    data.qvel[:] = np.concatenate([rotation.reshape(3, 3) @ twist[:3], twist[3:], dq])
    mujoco.mj_forward(engine, data)
    mujoco.mj_subtreeVel(engine, data)
    assert np.abs(data.subtree_linvel[1]).max() < 1e-12
    assert np.abs(data.subtree_angmom[1]).max() < 1e-11
    # and the tensor the engine has is the one we mean: momentum appears where the base is disturbed
    data.qvel[0] += 0.1
    mujoco.mj_subtreeVel(engine, data)
    mujoco.mj_forward(engine, data)
    mujoco.mj_subtreeVel(engine, data)
    assert data.subtree_linvel[1, 0] == pytest.approx(0.1, rel=1e-9)


def drive(robot, trajectory, duration, every=20):
    """Track a trajectory with computed torque in the engine, and return what its sensors would read."""
    engine = engine_of(robot)
    data = mujoco.MjData(engine)
    n = robot.n
    data.qpos[7:] = trajectory.position([0.0])[0]
    rows = []
    mass, units = np.empty((engine.nv, engine.nv)), np.eye(engine.nv)
    count = round(duration / engine.opt.timestep)
    wanted = trajectory.evaluate(np.arange(count + 1) * engine.opt.timestep)
    # torque is held over a step: its middle is the fair moment for the feed-forward
    middle = trajectory.acceleration((np.arange(count + 1) + 0.5) * engine.opt.timestep)
    for k in range(count + 1):
        mujoco.mj_forward(engine, data)
        if k % every == 0:
            rows.append(np.concatenate([[data.time], data.qpos, data.qvel]))
        q, dq, _ = (part[k] for part in wanted)
        acceleration = middle[k] + 200.0 * (dq - data.qvel[6:]) + 10_000.0 * (q - data.qpos[7:])
        for unit, column in zip(units, mass, strict=True):  # symmetric: rows serve as columns
            mujoco.mj_mulM(engine, data, column, unit)
        bias = data.qfrc_bias
        base = -np.linalg.solve(mass[:6, :6], mass[:6, 6:] @ acceleration + bias[:6])
        data.qfrc_applied[6:] = mass[6:, :6] @ base + mass[6:, 6:] @ acceleration + bias[6:]
        mujoco.mj_step(engine, data)
    table = np.array(rows)
    rotation = np.empty((len(table), 9))
    for k, quaternion in enumerate(table[:, 4:8]):
        mujoco.mju_quat2Mat(rotation[k], quaternion)
    velocity = table[:, 8 + n :]
    linear = np.einsum('nba,nb->na', rotation.reshape(-1, 3, 3), velocity[:, :3])
    return FloatingMeasurement(
        joint_names=robot.arm.joint_names,
        time=table[:, 0],
        q=table[:, 8 : 8 + n],
        dq=velocity[:, 6:],
        base_twist=np.hstack([linear, velocity[:, 3:6]]),
        base_position=table[:, 1:4],
        base_orientation=table[:, 4:8],
    )


@pytest.fixture(scope='module')
def driven():
    mission = read_mission()
    design = design_excitation(mission.robot, start=mission.start, period=10.0, limits=mission.limits, starts=1)
    return mission.true_robot, design.trajectory, drive(mission.true_robot, design.trajectory, 10.0)


@pytest.mark.slow
def test_target_is_found_in_the_engines_data(driven):
    robot, _, measurement = driven
    result = identify_target(robot, measurement)
    assert result.usable
    assert np.abs(result.body.mass / robot.body.mass - 1.0) < 1e-6
    assert np.abs(result.body.center_of_mass - robot.body.center_of_mass).max() < 1e-6
    assert np.abs(result.body.inertia - robot.body.inertia).max() < 1e-5
    assert result.condition_scaled < 1.01


def test_target_is_found_in_the_engines_data_with_noise(driven):
    robot, _, measurement = driven
    result = identify_target(robot, measurement.with_noise(SensorNoise(), np.random.default_rng(7)))
    assert abs(result.target.mass / robot.target.mass - 1.0) < 1e-3
    assert result.noise_scale == pytest.approx(1.0, abs=0.1)


def test_base_follows_the_engines_joints_as_momentum_says(driven):
    robot, _, measurement = driven
    twist = momentum_map(robot.model, measurement.q).base_twist(measurement.dq)
    assert np.abs(twist).max() > 0.05
    assert np.abs(twist - measurement.base_twist).max() < 1e-9


@pytest.mark.slow
def test_integrated_base_pose_is_the_engines(driven):
    robot, trajectory, measurement = driven
    lag = np.abs(measurement.q - trajectory.position(measurement.time)).max()
    assert lag < 1e-4  # the engine's arm followed, but no better than its controller can
    ours = simulate(robot, trajectory, measurement.time)
    assert np.ptp(ours.base_position, axis=0).max() > 0.02
    assert np.abs(ours.base_position - measurement.base_position).max() < lag
    assert np.abs(ours.base_orientation - measurement.base_orientation).max() < lag


def test_base_follows_the_engines_joints_on_a_sliding_arm():
    robot = random_robot(np.random.default_rng(11), 4, prismatic=(1,))
    trajectory = FourierTrajectory(
        a=0.1 * np.array([[1.0, -1.0]] * 4), b=np.zeros((4, 2)), offset=np.zeros(4), base_frequency=0.5
    )
    measurement = drive(robot, trajectory, 1.0, every=50)
    assert (
        np.abs(momentum_map(robot.model, measurement.q).base_twist(measurement.dq) - measurement.base_twist).max()
        < 1e-9
    )
