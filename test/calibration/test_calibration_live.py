# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A calibration over DDS: drive the poses, measure at each, calibrate; and measurements that are refused."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import yaml
from ros_helpers import NodeProcess, ros_environment

from robotid_ros.calibration import calibrate, read_points, select_poses
from robotid_ros.calibration.pairing import PairingConfig, RestingPairs
from robotid_ros.calibration.points import write_joints
from robotid_ros.errors import CalibrationError
from robotid_ros.model import RobotModel
from robotid_ros.model.packaged import arm_description
from robotid_ros.model.transforms import quaternion_of_rotation, rotation_of_vector
from robotid_ros.simulation.measured_arm import TrackerConfig, tracked_arm

TRACKER = TrackerConfig(seed=3)


def _fed(joints: np.ndarray, targets: np.ndarray, turns: np.ndarray | None = None, delay: float = 0.0) -> RestingPairs:
    """Return pairs that received 2 s of both, joints at 100 Hz and targets at 20 Hz."""
    pairs = RestingPairs(('a', 'b'), PairingConfig())
    for k, q in enumerate(joints):
        pairs.receive_joints(100.0 + 0.01 * k, q)
    for k, p in enumerate(targets):
        pairs.receive_target(100.0 + delay + 0.05 * k, p, None if turns is None else turns[k])
    return pairs


def test_a_measurement_is_the_mean_of_the_last_second() -> None:
    rng = np.random.default_rng(0)
    joints = np.array([0.3, -0.2]) + rng.normal(0.0, 1e-5, (200, 2))
    targets = np.array([1.0, 2.0, 3.0]) + rng.normal(0.0, 1e-4, (40, 3))
    turn = np.array([0.3, -0.4, 2.9])
    turns = quaternion_of_rotation(rotation_of_vector(turn) @ rotation_of_vector(rng.normal(0.0, 1e-4, (40, 3))))
    turns[::2] *= -1.0  # the same rotations
    point, scatter = _fed(joints, targets, turns).measure(PairingConfig(set='s', point='p'))
    np.testing.assert_allclose(point.position[0], targets[-21:].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(point.q[0], joints[95:196].mean(axis=0), atol=1e-12)  # until the newest target
    assert 0.5e-4 < scatter < 1.5e-4
    assert (point.sets, point.points) == (('s',), ('p',))
    off = np.abs(point.orientation[0] @ quaternion_of_rotation(rotation_of_vector(turn)))
    assert off == pytest.approx(1.0, abs=1e-8)


def test_measurements_are_refused_with_the_reason() -> None:
    still, there = np.zeros((200, 2)), np.zeros((40, 3))
    moving = np.column_stack([np.zeros(200), 1e-3 * np.arange(200)])
    for pairs, words in (
        (_fed(moving, there), r"the arm moves: joint 'b' by 0\.1 within 1 s"),
        (_fed(still, there[:0]), 'no measurements of the target have come'),
        (_fed(still[:0], there), 'no joint states have come'),
        (_fed(still, there[:10]), r'the measurements of the target cover 0\.45 s of 1 s'),
        (_fed(still, there, delay=5.0), r'are 4\.96 s apart'),
    ):
        with pytest.raises(CalibrationError, match=words):
            pairs.measure(PairingConfig())


def test_joint_states_that_began_after_the_target_ended_are_refused() -> None:
    config = PairingConfig(averaging_time=1.0, largest_lag=60.0)
    pairs = RestingPairs(('a', 'b'), config)
    for k in range(30):
        pairs.receive_target(0.05 * k, np.zeros(3))
        pairs.receive_joints(3.0 + 0.05 * k, np.zeros(2))
    assert not pairs.ready
    with pytest.raises(CalibrationError, match='no joint state came while the target was measured'):
        pairs.measure(config)


@pytest.mark.parametrize('seed', range(20))
def test_every_rest_is_found_in_whatever_order_joints_and_target_arrive(seed: int) -> None:
    """A busy computer hands over one of the two late, and then a second of it at once."""
    rng = np.random.default_rng(seed)
    poses = rng.uniform(-1.0, 1.0, (6, 2))
    stamps = np.arange(0.0, 12.0, 0.04)
    within = np.clip((stamps % 2.0) / 0.7, 0.0, 1.0)[:, None]  # it moves for 0.7 s and rests for 1.3 s
    legs = (stamps // 2.0).astype(int)
    q = (1.0 - within) * np.vstack([np.zeros(2), poses])[legs] + within * poses[legs]
    joints = [
        (t + rng.uniform(0.0, 5.0) * (t % 3.0 < 1.0), 'joints', t, each) for t, each in zip(stamps, q, strict=True)
    ]
    targets = [(t + rng.uniform(0.0, 5.0) * (t % 5.0 < 2.0), 'target', t, np.zeros(3)) for t in stamps]
    arrived = []
    for queue in (joints, targets):  # each in its own order
        late = np.maximum.accumulate([entry[0] for entry in queue])
        arrived += [(when, *entry[1:]) for when, entry in zip(late, queue, strict=True)]
    config = PairingConfig(largest_lag=20.0)
    pairs, found = RestingPairs(('a', 'b'), config), []
    for _, what, stamp, values in sorted(arrived, key=lambda entry: (entry[0], entry[1])):
        (pairs.receive_joints if what == 'joints' else pairs.receive_target)(stamp, values)
        new = pairs.measure_new_place(config)
        if new is not None:
            found.append(new[0].q[0])
    np.testing.assert_allclose(found, poses, atol=1e-12)


def test_a_tracker_sees_the_arm_with_its_errors() -> None:
    model = RobotModel.from_urdf(arm_description('ur10e'))
    exact = tracked_arm(model, TrackerConfig(length_error=0.0, angle_error=0.0, seed=1))
    wrong = tracked_arm(model, TrackerConfig(seed=1))
    np.testing.assert_array_equal(exact.actual.placements, model.placements)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 6))
    off = np.linalg.norm(exact.true_poses(q)[0] - wrong.true_poses(q)[0], axis=1)
    assert 1e-3 < off.mean() < 1.0
    assert np.abs(np.linalg.norm(wrong.frame[:3, 3])) > 0.1


def _places(points: Path) -> np.ndarray:
    """Return the different poses of a points file."""
    return np.unique(np.round(read_points(points).q / 0.02), axis=0) if points.exists() else np.zeros((0, 6))


def _recorder(environment: dict[str, str], **values: object) -> NodeProcess:
    given = [part for key, value in values.items() for part in ('-p', f'{key}:={value}')]
    return NodeProcess(['-m', 'robotid_ros.nodes.pose_recorder', '--ros-args', *given], environment)


@pytest.mark.ros
def test_a_frame_of_a_tracker_is_paired_with_the_joints(tmp_path: Path) -> None:
    """The arm's own publisher sends the link frames on the same topic, as robot_state_publisher does."""
    pytest.importorskip('rclpy', reason='needs the ros extra')
    messages = pytest.importorskip('tf2_msgs.msg', reason='needs tf2_msgs')
    from excitation_user import User
    from geometry_msgs.msg import TransformStamped
    from sensor_msgs.msg import JointState

    rng = np.random.default_rng(4)
    environment = ros_environment()
    user = User(int(environment['ROS_DOMAIN_ID']))
    states = user.node.create_publisher(JointState, '/joint_states', 100)
    tracker, arm = (user.node.create_publisher(messages.TFMessage, '/tf', 100) for _ in range(2))
    turn = quaternion_of_rotation(rotation_of_vector(np.array([0.4, -0.2, 2.8])))
    sent: list[np.ndarray] = []
    clock = [1_700_000_000_000_000_000]

    def stamped(message: object) -> object:
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(clock[0], 10**9)
        return message

    def transform(parent: str, child: str, place: np.ndarray) -> TransformStamped:
        made = stamped(TransformStamped(child_frame_id=child))
        made.header.frame_id = parent
        shift, rotation = made.transform.translation, made.transform.rotation
        shift.x, shift.y, shift.z = place.tolist()
        rotation.w, rotation.x, rotation.y, rotation.z = turn.tolist()
        return made

    def publish(q: np.ndarray, place: np.ndarray, target: str, count: int = 25) -> None:
        """Publish ``count`` measurements 50 ms apart, each between five joint states 10 ms apart."""
        for _ in range(count):
            for _ in range(5):
                clock[0] += 10_000_000
                states.publish(stamped(JointState(name=['a', 'b'], position=q.tolist())))
                arm.publish(messages.TFMessage(transforms=[transform('base', 'link', q[:1] * np.ones(3))]))
            measured = place + rng.normal(0.0, 1e-4, 3)
            sent.append(measured)
            others = transform('base', 'target', np.zeros(3)), transform('tracker', 'other', np.ones(3))
            ours = transform('tracker', target, measured)
            tracker.publish(messages.TFMessage(transforms=[others[0], ours, others[1]]))

    points = tmp_path / 'points.csv'
    places = {(0.1, -0.4): (1.0, 2.0, 3.0), (0.6, 0.9): (0.5, 2.5, 2.0)}
    try:
        with _recorder(environment, tf_parent='tracker', tf_child='target', points_file=points, timeout=0.5) as node:
            user.until(lambda: all(each.get_subscription_count() for each in (states, tracker, arm)), 'subscriptions')
            for q, place in places.items():
                user.until(
                    lambda q=q, place=place: (
                        publish(np.array(q), np.array(place), 'target'),
                        user.call('/pose_recorder/measure').success,
                    )[1],
                    'a row',
                )
                row = read_points(points)
                # a second of measurements, 20 or 21; the last ones may not have been there yet
                means = [np.mean(sent[k : k + n], axis=0) for n in (20, 21) for k in range(len(sent) - n + 1)]
                assert min(np.abs(mean - row.position[-1]).max() for mean in means) < 1e-9
                np.testing.assert_allclose(row.q[-1], q, atol=1e-12)
                assert np.abs(row.orientation[-1] @ turn) == pytest.approx(1.0, abs=1e-9)
            publish(np.array([0.6, 0.8]), np.array(place), 'target', 10)
            rows: list[int] = []

            def refused() -> bool:
                """Ask once; until the new joint states have come, the old place is measured once more."""
                rows.append(len(read_points(points).q))
                return "joint 'b' by 0.1" in user.call('/pose_recorder/measure').message

            user.until(refused, 'a refusal')
            assert len(read_points(points).q) == rows[-1]
            assert 'Traceback' not in node.output
        with _recorder(environment, tf_parent='tracker', tf_child='targt', points_file=points, timeout=0.1) as node:
            user.until(lambda: all(each.get_subscription_count() for each in (states, tracker, arm)), 'subscriptions')
            publish(np.array(q), np.array(place), 'target')
            wanted = "no transform from 'tracker' to 'targt' has come on /tf; those from 'base' to 'link', "
            user.until(lambda: wanted in user.call('/pose_recorder/measure').message, 'a refusal that names the frames')
    finally:
        user.close()


@pytest.mark.slow
@pytest.mark.ros
def test_frames_that_cannot_be_followed_are_refused_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    environment = ros_environment()
    cases = [({'tf_parent': 'tracker'}, 'tf_parent and tf_child: expected both')]
    if find_spec('tf2_msgs') is None:
        cases.append(({'tf_parent': 'tracker', 'tf_child': 'target'}, 'need the ROS package tf2_msgs'))
    for values, words in cases:
        with _recorder(environment, points_file=tmp_path / 'points.csv', **values) as node:
            assert node.wait() == 2
            assert words in node.output
            assert 'Traceback' not in node.output


@pytest.mark.slow
@pytest.mark.ros
def test_drive_measure_calibrate_is_better_by_ten(tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    pytest.importorskip('mujoco', reason='needs the sim extra')
    from excitation_user import User

    model = RobotModel.from_urdf(arm_description('ur10e'))
    middle = np.array([0.0, -1.3, 1.2, -1.0, 1.0, 0.0])
    rng = np.random.default_rng(0)
    candidates = middle + rng.uniform(-0.6, 0.6, (300, 6))
    poses = select_poses(model, 18, candidates=candidates, full_pose=True).q
    poses[4, 2] = 9.0  # beyond its limit: left out, and the tour goes on
    write_joints(tmp_path / 'poses.csv', model.joint_names, poses)
    points = tmp_path / 'points.csv'
    environment = ros_environment()

    def node(name: str, **values: object) -> list[str]:
        given = [part for key, value in values.items() for part in ('-p', f'{key}:={value}')]
        return ['-m', f'robotid_ros.nodes.{name}', '--ros-args', *given]

    arm = node(
        'simulated_arm',
        physics_rate=500.0,
        publish_rate=25.0,
        clock_rate=25.0,
        speed=6.0,
        publish_clock=True,
        initial_position=middle.tolist(),
    )
    excitation = node(
        'excitation',
        use_sim_time=True,
        run='poses',
        poses=tmp_path / 'poses.csv',
        dwell=1.5,
        ramp_velocity=1.0,
        acceleration_limit=4.0,
        settling_time=0.3,
        joint_state_timeout=60.0,
        window_time=35.0,  # in simulated seconds, which pass quickly
        window_points=2000,
        latency=0.5,
        start_delay=6.0,  # a second of this computer, for the window's way to the arm
        start_anyway=['unchecked_workspace'],
        least_joint_state_rate=10.0,
    )
    with (
        NodeProcess(arm, environment),
        NodeProcess(node('simulated_tracker', seed=TRACKER.seed), environment),
        NodeProcess(
            node('pose_recorder', use_sim_time=True, automatic=True, points_file=points, timeout=1.0, largest_lag=60.0),
            environment,
        ),
        NodeProcess(excitation, environment) as driver,
    ):
        user = User(int(environment['ROS_DOMAIN_ID']))
        try:
            # a recorder that is not up yet, on a busy machine, would miss the first poses
            user.until(lambda: user.call('/pose_recorder/measure').success, 'a row where the arm stands')
            with NodeProcess(node('chain', run='poses', start_at_once=True), environment) as chain:
                driver.wait_for_line('pose left out: the straight way to pose 5')
                user.until_state('running')
                user.until(lambda: 'the arm moves' in user.call('/pose_recorder/measure').message, 'a refusal')
                assert chain.wait() == 0, chain.output
            user.until_state('finished')
            assert len(_places(points)) >= 18
            answer = user.call('/pose_recorder/identify')
            assert answer.success, answer.message
        finally:
            user.close()
    measured = read_points(points)
    assert len(_places(points)) >= 18

    q = middle + rng.uniform(-0.6, 0.6, (100, 6))
    unseen = tracked_arm(model, TRACKER).measure(q, rng, noise=0.0, angle_noise=0.0)
    result = calibrate(model, measured, held_out=unseen)
    told = yaml.safe_load(answer.message)
    assert told['usable']
    assert told['accuracy']['training']['after']['rms'] < 0.1 * told['accuracy']['training']['before']['rms']
    assert result.held_out.before.rms > 5e-4
    assert result.held_out.after.rms < 0.1 * result.held_out.before.rms
