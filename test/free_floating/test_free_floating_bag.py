# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags of a free-floating robot, written by another library, and recorded over DDS."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from free_floating_helpers import example_robot, random_trajectory
from ros_helpers import DEADLINE, NodeProcess, ros_environment, wait_until

from robotid_ros.errors import DataError
from robotid_ros.free_floating import identify_target, read_measurement, simulate

rosbag2 = pytest.importorskip('rosbags.rosbag2')
typesys = pytest.importorskip('rosbags.typesys')

START = 1_700_000_000_000_000_000
ODOMETRY, TWIST, POSE = 'nav_msgs/msg/Odometry', 'geometry_msgs/msg/TwistStamped', 'geometry_msgs/msg/PoseStamped'


@pytest.fixture(scope='module')
def flown():
    """A robot, and what an engine of its own would see at 200 Hz (joints) and at 50 Hz between (base)."""
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(0), robot.n, frequency=0.2)
    fast, slow = np.arange(0.0, 5.0, 0.005), np.arange(0.0513, 4.9, 0.02)
    everything = np.union1d(fast, slow)
    both = simulate(robot, trajectory, everything)
    return robot, both, np.isin(everything, fast), np.isin(everything, slow)


def write(folder: Path, measured, fast, slow, kinds: tuple[str, ...]) -> Path:
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    types = store.types

    def header(t):
        stamp = START + round(1e9 * t)
        time = types['builtin_interfaces/msg/Time'](stamp // 10**9, stamp % 10**9)
        return stamp, types['std_msgs/msg/Header'](time, 'inertial')

    def vector(values, kind='Vector3'):
        return types[f'geometry_msgs/msg/{kind}'](*map(float, values))

    with rosbag2.Writer(folder, version=9) as writer:

        def put(topic, kind, rows, content):
            connection = writer.add_connection(topic, kind, typestore=store)
            for k in np.flatnonzero(rows):
                stamp, head = header(measured.time[k])
                writer.write(connection, stamp, store.serialize_cdr(types[kind](head, *content(k)), kind))

        put(
            '/joint_states',
            'sensor_msgs/msg/JointState',
            fast,
            lambda k: (list(measured.joint_names), measured.q[k], measured.dq[k], np.zeros(0)),
        )

        def twist(k):
            v = measured.base_twist[k]
            return types['geometry_msgs/msg/Twist'](vector(v[:3]), vector(v[3:]))

        def pose(k):
            w, x, y, z = measured.base_orientation[k] * (-1.0) ** k  # the same rotation
            place = vector(measured.base_position[k], 'Point')
            return types['geometry_msgs/msg/Pose'](place, types['geometry_msgs/msg/Quaternion'](x, y, z, w))

        if ODOMETRY in kinds:
            pose_kind = types['geometry_msgs/msg/PoseWithCovariance']
            twist_kind = types['geometry_msgs/msg/TwistWithCovariance']
            put(
                '/odom',
                ODOMETRY,
                slow,
                lambda k: ('base', pose_kind(pose(k), np.ones(36)), twist_kind(twist(k), np.ones(36))),
            )
        if TWIST in kinds:
            put('/base/twist', TWIST, slow, lambda k: (twist(k),))
        if POSE in kinds:
            put('/base/pose', POSE, fast, lambda k: (pose(k),))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize('kinds', [(ODOMETRY,), (TWIST,), (TWIST, POSE)])
def test_a_bag_gives_the_target(flown, tmp_path, kinds):
    robot, measured, fast, slow = flown
    read = read_measurement(write(tmp_path / 'bag', measured, fast, slow, kinds), robot.arm.joint_names)
    assert read.has_pose == (kinds != (TWIST,))
    assert len(read) == slow.sum()
    np.testing.assert_allclose(read.base_twist, measured.base_twist[slow], atol=1e-12)
    np.testing.assert_allclose(read.q, measured.q[slow], atol=1e-7)
    np.testing.assert_allclose(read.dq, measured.dq[slow], atol=1e-6)
    if read.has_pose:
        np.testing.assert_allclose(read.base_position, measured.base_position[slow], atol=1e-7)
        same = np.abs(np.sum(read.base_orientation * measured.base_orientation[slow], axis=1))
        np.testing.assert_allclose(same, 1.0, atol=1e-10)
    found = identify_target(robot, read)
    assert found.target.mass == pytest.approx(40.0, rel=1e-4)


def test_bags_that_lack_something_are_refused(flown, tmp_path):
    robot, measured, fast, slow = flown
    without = write(tmp_path / 'without', measured, fast, slow, ())
    with pytest.raises(DataError, match=r'expected the twist of the base .*/joint_states \(sensor_msgs/JointState\)'):
        read_measurement(without, robot.arm.joint_names)
    late = write(tmp_path / 'late', measured, measured.time < 0.04, slow, (TWIST,))
    with pytest.raises(DataError, match='no time in common'):
        read_measurement(late, robot.arm.joint_names)


@pytest.mark.slow
@pytest.mark.ros
@pytest.mark.parametrize('topics', [('base_twist', 'base_pose'), ('odom',)], ids='-'.join)
def test_a_flight_is_recorded_over_dds(flown, tmp_path, topics):
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from geometry_msgs.msg import PoseStamped, TwistStamped

    kinds = {'base_twist': TwistStamped, 'base_pose': PoseStamped}
    if 'odom' in topics:
        kinds['odom'] = pytest.importorskip('nav_msgs.msg', reason='needs nav_msgs').Odometry
    import rclpy
    from diagnostic_msgs.msg import DiagnosticStatus
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState
    from std_srvs.srv import Trigger

    robot, measured, _, slow = flown
    environment = ros_environment()
    context = rclpy.Context()
    context.init(domain_id=int(environment['ROS_DOMAIN_ID']))
    node = rclpy.create_node('flight', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    joints = node.create_publisher(JointState, 'joint_states', 1000)
    bases = {topics[0]: node.create_publisher(kinds[topics[0]], topics[0], 1000)}

    counts: dict[str, str] = {}
    node.create_subscription(
        DiagnosticStatus,
        'floating_recorder/status',
        lambda message: counts.update({item.key: item.value for item in message.values}),
        10,
    )

    def call(service):
        client = node.create_client(Trigger, service)
        wait_until(lambda: executor.spin_once(timeout_sec=0.05) or client.service_is_ready(), service)
        for _ in range(
            int(DEADLINE / 10.0)
        ):  # an answer is lost where the server has not yet found the client's reader
            future = client.call_async(Trigger.Request())
            executor.spin_until_future_complete(future, timeout_sec=10.0)
            if future.done():
                return future.result()
        raise AssertionError(f'{service} did not answer within {DEADLINE:g} s')

    def stamped(message, t):
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(START + round(1e9 * t), 10**9)
        return message

    command = ['-m', 'robotid_ros.nodes.floating_recorder', '--ros-args', '-p', f'output_folder:={tmp_path}']
    try:
        with NodeProcess(command, environment):

            def started():
                answer = call('/floating_recorder/start')
                return answer.success or 'already' in answer.message

            wait_until(started, 'a start')
            for topic in topics[1:]:  # one that appears while others are recorded
                bases[topic] = node.create_publisher(kinds[topic], topic, 1000)
            wait_until(lambda: all(each.get_subscription_count() for each in bases.values()), 'subscriptions')
            for k in np.flatnonzero(slow):
                t, v = measured.time[k], measured.base_twist[k].tolist()
                joints.publish(
                    stamped(
                        JointState(
                            name=list(measured.joint_names),
                            position=measured.q[k].tolist(),
                            velocity=measured.dq[k].tolist(),
                        ),
                        t,
                    )
                )
                for topic, publisher in bases.items():
                    message = stamped(kinds[topic](), t)
                    if topic != 'base_pose':
                        twist = message.twist.twist if topic == 'odom' else message.twist
                        (twist.linear.x, twist.linear.y, twist.linear.z) = v[:3]
                        (twist.angular.x, twist.angular.y, twist.angular.z) = v[3:]
                    if topic != 'base_twist':
                        pose = message.pose.pose if topic == 'odom' else message.pose
                        place, turn = pose.position, pose.orientation
                        place.x, place.y, place.z = measured.base_position[k].tolist()
                        turn.w, turn.x, turn.y, turn.z = measured.base_orientation[k].tolist()
                    publisher.publish(message)
            whole = {f'/{topic}': str(slow.sum()) for topic in ('joint_states', *topics)}
            wait_until(
                lambda: executor.spin_once(timeout_sec=0.05) or counts.items() >= whole.items(), 'all messages written'
            )
            answer = call('/floating_recorder/stop')
            assert answer.success, answer.message
            assert not call('/floating_recorder/stop').success
            answer = call('/floating_recorder/identify')
            assert answer.success, answer.message
            assert yaml.safe_load(answer.message)['target']['mass'] == pytest.approx(40.0, rel=1e-4)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    (folder,) = tmp_path.iterdir()
    with rosbag2.Reader(folder) as reader:
        found = {connection.topic: connection.msgcount for connection in reader.connections}
    assert found == dict.fromkeys((f'/{topic}' for topic in ('joint_states', *topics)), int(slow.sum()))
    read = read_measurement(folder, robot.arm.joint_names)
    np.testing.assert_allclose(read.base_twist, measured.base_twist[slow], atol=1e-12)
    assert read.has_pose
    assert identify_target(robot, read).target.mass == pytest.approx(40.0, rel=1e-4)
