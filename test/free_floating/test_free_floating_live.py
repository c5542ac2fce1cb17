# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A free-floating robot simulated by MuJoCo: by our own momentum conservation, and live, from design to target."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from ros_helpers import NodeProcess, ros_environment

from robotid_ros.errors import ModelError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating import read_mission, simulate

pytest.importorskip('mujoco', reason='needs the sim extra')

from robotid_ros.simulation.plant import FloatingPlant

MISSION = read_mission()


def motion(seed: int) -> FourierTrajectory:
    """Return a motion of the packaged robot that begins at rest."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-0.3, 0.3, (7, 4))
    b = rng.uniform(-0.3, 0.3, (7, 4))
    orders = np.arange(1, 5)
    a -= a.mean(axis=1, keepdims=True)
    b -= (b @ orders)[:, None] * orders / (orders @ orders)
    begin = FourierTrajectory(a=a, b=b, offset=np.zeros(7), base_frequency=2.0 * np.pi / 8.0).position([0.0])[0]
    return FourierTrajectory(a=a, b=b, offset=MISSION.start - begin, base_frequency=2.0 * np.pi / 8.0)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
def test_the_base_moves_as_momentum_says(seed: int) -> None:
    trajectory, robot = motion(seed), MISSION.true_robot
    strong = replace(robot.model, limits=robot.model.limits.overridden(effort=np.full(7, np.inf)))
    plant = FloatingPlant(strong, rate=500.0, bandwidth=10.0)
    plant.reset(MISSION.start)
    time = np.arange(0.0, 4.0, 0.002)
    wanted = trajectory.evaluate(time)
    rows = []
    for k in range(0, len(time), 5):
        seen = plant.run(*(part[k : k + 5] for part in wanted))
        rows.append(np.concatenate([seen.position[0], plant.base_twist, plant.base_position, plant.base_orientation]))
    found = np.array(rows)
    expected = simulate(robot, trajectory, time[::5])
    assert np.abs(found[:, :7] - expected.q).max() < 5e-4
    assert np.ptp(expected.base_position, axis=0).max() > 0.005
    for columns, value in ((slice(7, 13), expected.base_twist), (slice(13, 16), expected.base_position)):
        assert np.abs(found[:, columns] - value).max() < 2e-3 * np.abs(value).max()
    assert np.abs(np.sum(found[:, 16:] * expected.base_orientation, axis=1)).min() > 1.0 - 1e-6


def test_a_base_without_mass_is_refused() -> None:
    model = MISSION.true_robot.model
    with pytest.raises(ModelError, match='has no mass, and cannot float'):
        FloatingPlant(model.with_inertial(model.inertial, base_inertial=np.zeros(10)))
    with pytest.raises(ModelError, match=r'up to rate/15 = 33\.3333 Hz, got 50'):
        FloatingPlant(model, bandwidth=50.0)


@pytest.mark.slow
@pytest.mark.ros
def test_the_target_is_found_over_the_graph(tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from excitation_user import User

    environment = ros_environment()

    def node(name: str, **values: object) -> list[str]:
        given = [part for key, value in values.items() for part in ('-p', f'{key}:={value}')]
        return ['-m', f'robotid_ros.nodes.{name}', '--ros-args', *given]

    arm = node(
        'simulated_arm',
        mission='iiwa14_space.yaml',
        physics_rate=500.0,
        publish_rate=50.0,
        clock_rate=50.0,
        bandwidth=10.0,
        speed=4.0,
        publish_clock=True,
    )
    excitation = node(
        'excitation',
        use_sim_time=True,
        run='free_floating',
        periods=1,
        acceleration_limit=2.0,
        joint_state_timeout=60.0,
        window_time=35.0,
        latency=0.5,
        start_anyway=['unchecked_workspace'],
        least_joint_state_rate=10.0,
    )
    recorder = node('floating_recorder', use_sim_time=True, output_folder=tmp_path)
    chain = node('chain', run='free_floating', start_at_once=True)
    with NodeProcess(arm, environment), NodeProcess(excitation, environment), NodeProcess(recorder, environment):
        user = User(int(environment['ROS_DOMAIN_ID']))
        try:
            with NodeProcess(chain, environment) as steps:
                assert steps.wait() == 0, steps.output
            user.until_state('finished')
            assert float(user.value('condition_number_scaled')) < 1.1
            answer = user.call('/floating_recorder/identify')  # once more, from the same recording
            assert answer.success, answer.message
        finally:
            user.close()
    told = yaml.safe_load(answer.message)['target']
    truth = MISSION.target
    assert truth is not None
    assert told['mass'] == pytest.approx(truth.mass, abs=min(5.0 * told['std']['mass'], 0.05))
    assert np.abs(np.array(told['center_of_mass']) - truth.center_of_mass).max() < 1e-3
    six = truth.inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    assert np.abs(np.array(told['inertia']) - six).max() < 0.02


@pytest.mark.ros
def test_a_recording_begins_as_soon_as_an_arm_and_its_base_are_heard(tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from geometry_msgs.msg import TwistStamped
    from ros_client import GraphClient
    from sensor_msgs.msg import JointState
    from std_srvs.srv import Trigger

    environment = ros_environment()
    given = ['-p', f'output_folder:={tmp_path}', '-p', 'start_timeout:=0.3']
    client = GraphClient(int(environment['ROS_DOMAIN_ID']))
    try:
        with NodeProcess(['-m', 'robotid_ros.nodes.floating_recorder', '--ros-args', *given], environment):
            refused = client.ask('/floating_recorder/start')
            assert not refused.success
            assert refused.message == 'nobody publishes joint states, on /joint_states'
            assert client.set_parameters('floating_recorder', {'start_timeout': 120.0})[0].successful
            asked = client.node.create_client(Trigger, '/floating_recorder/start')
            client.until(asked.service_is_ready, 'the service appears')
            answer = asked.call_async(Trigger.Request())
            topics = [(JointState, '/joint_states'), (TwistStamped, '/base_twist')]
            told = [client.node.create_publisher(*topic, 10) for topic in topics]
            client.until(answer.done, 'the recording begins')
            assert answer.result().success, answer.result().message
            assert len(told) == 2
            assert [folder.is_dir() for folder in tmp_path.iterdir()] == [True]
    finally:
        client.close()
