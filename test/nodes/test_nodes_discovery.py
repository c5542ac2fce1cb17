# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The topics of a driver are found in the graph where the configuration names others."""

import re
import textwrap

import pytest
from ros_helpers import NodeProcess, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

from robotid_ros.nodes.discovery import _choose_states, _choose_trajectory, find_topics  # noqa: E402

DRIVER = textwrap.dedent("""
    import rclpy
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory
    rclpy.init()
    node = rclpy.create_node('driver')
    node.create_subscription(JointTrajectory, '/joint_trajectory_controller/joint_trajectory', lambda _: None, 10)
    node.create_subscription(JointTrajectory, '/other/joint_trajectory_controller/joint_trajectory', lambda _: None, 10)
    def publish(publisher, names, effort):
        count = len(names)
        publisher.publish(JointState(name=names, position=[0.0] * count, effort=[effort] * count if effort else []))
    full, slow, gripper = (node.create_publisher(JointState, name, 10) for name in ('/arm/full', '/slow', '/gripper'))
    node.create_timer(0.005, lambda: publish(full, ['b', 'a', 'finger'], 1.0))
    node.create_timer(0.2, lambda: publish(slow, ['a', 'b'], 0.0))
    node.create_timer(0.005, lambda: publish(gripper, ['finger'], 1.0))
    print('ready', flush=True)
    rclpy.spin(node)
""")


def test_the_topics_of_a_driver_are_found_and_said(tmp_path, monkeypatch) -> None:
    environment = ros_environment()
    for name in ('ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE'):
        monkeypatch.setenv(name, environment[name])
    (tmp_path / 'driver.py').write_text(DRIVER)
    with NodeProcess([str(tmp_path / 'driver.py')], environment) as driver:
        driver.wait_for_line('ready')
        heard, commanded, remarks = find_topics(['a', 'b'], '/joint_states', '/scaled/joint_trajectory', patience=60.0)
    assert heard == '/arm/full'
    assert commanded == '/joint_trajectory_controller/joint_trajectory'
    states, trajectory = remarks
    assert states.startswith('joint states are taken from /arm/full (')
    assert states.endswith('with effort) instead of /joint_states, where there are none')
    assert trajectory == (
        'trajectories go to /joint_trajectory_controller/joint_trajectory: no controller listens to '
        '/scaled/joint_trajectory'
    )


@pytest.mark.parametrize(
    ('heard', 'chosen', 'said'),
    [
        ({'/js': (500.0, True), '/slow': (30.0, True)}, '/js', ''),
        ({'/js': (30.0, True), '/fast': (1000.0, True)}, '/fast', r'instead of /js \(30 Hz, with effort\)'),
        ({'/js': (100.0, False), '/driver': (100.0, True)}, '/driver', r'instead of /js \(100 Hz, without effort\)'),
        ({'/js': (100.0, True), '/fast': (1000.0, False)}, '/js', ''),
        ({'/js': (100.0, False)}, '/js', 'have no effort'),
        ({'/left/js': (500.0, True), '/right/js': (500.0, True)}, '/js', r'there are also /left/js .*, /right/js'),
        ({}, '/js', 'start the driver'),
    ],
)
def test_joint_states_with_effort_and_the_higher_rate_win(heard, chosen, said) -> None:
    topic, remark = _choose_states('/js', heard)
    assert topic == chosen
    assert bool(remark) == bool(said)
    assert re.search(said, remark)


@pytest.mark.parametrize(
    ('takers', 'chosen', 'said'),
    [
        (['/a/joint_trajectory', '/b/joint_trajectory'], '/a/joint_trajectory', ''),
        (['/b/joint_trajectory'], '/b/joint_trajectory', 'trajectories go to /b/joint_trajectory'),
        # Two candidates, or a controller of another namespace, which may be another arm's: nothing is guessed.
        (['/b/joint_trajectory', '/c/joint_trajectory'], '/a/joint_trajectory', 'these do: /b'),
        (['/left/b/joint_trajectory'], '/a/joint_trajectory', 'these do: /left'),
        ([], '/a/joint_trajectory', 'start it before'),
    ],
)
def test_a_controller_is_taken_only_where_it_is_the_only_one(takers, chosen, said) -> None:
    topic, remark = _choose_trajectory('/a/joint_trajectory', takers)
    assert topic == chosen
    assert bool(remark) == bool(said)
    assert said in remark
