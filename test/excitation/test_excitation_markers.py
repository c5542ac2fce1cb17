# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is drawn of a motion: its path and the room along it against closed forms, its markers over ROS."""

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm, ur10e

from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.picture import space_picture
from robotid_ros.model.transforms import axis_quaternion, rotation_of_quaternion

ARM = planar_arm(2, limits=limits(2, 2.0, 2.0, 6.0))  # two links of 0.4 m in the plane x, z
CONFIG = ExcitationConfig(ground=True, ground_height=-0.5, link_radius=0.05, clearance=0.02, acceleration_limit=6.0)


def swing(count=201):
    """Return both joints as sines, which leaves the arm's plane never."""
    time = np.linspace(0.0, 2.0 * np.pi, count)
    q = np.stack([0.9 * np.sin(time), 0.7 * np.cos(time)], axis=1)
    dq = np.stack([0.9 * np.cos(time), -0.7 * np.sin(time)], axis=1)
    return q, dq, -q


def test_the_path_and_the_room_above_the_ground_are_those_of_two_links() -> None:
    q, dq, ddq = swing()
    picture = space_picture(ARM, CONFIG, q, dq, ddq)
    angles = np.cumsum(q, axis=1)
    points = 0.4 * np.cumsum(np.stack([np.cos(angles), np.sin(angles)], axis=-1), axis=1)  # elbow and tip
    np.testing.assert_allclose(
        picture.path, np.stack([points[:, 1, 0], 0.0 * q[:, 0], points[:, 1, 1]], axis=1), atol=1e-9
    )
    above = np.minimum(points[:, 0, 1], points[:, 1, 1]) + 0.5 - 0.05 - 0.02
    beside = 0.4 - 0.05 - 0.05 - 0.02  # of the second link from the base: an elbow that bends by less than 90 degrees
    np.testing.assert_allclose(picture.room, np.minimum(above, beside), atol=1e-9)
    assert picture.room.min() < 0.0 < picture.room.max()
    assert 'capsule' in picture.closest
    assert picture.closest.endswith(f': {1e3 * above.min():.0f} mm left')
    assert picture.limit.endswith(': 45 % used')  # 0.9 of 2 rad, and of 2 rad/s


def test_without_bounds_in_space_the_room_is_infinite() -> None:
    picture = space_picture(ARM, ExcitationConfig(), *swing())
    assert np.isinf(picture.room).all()
    assert picture.closest == ''
    assert picture.capsules == ()


@pytest.mark.parametrize('seed', range(5))
def test_the_quaternion_of_an_axis_turns_z_into_it(seed: int) -> None:
    along = np.random.default_rng(seed).normal(size=3)
    np.testing.assert_allclose(rotation_of_quaternion(axis_quaternion(along))[:, 2], along / np.linalg.norm(along))


def test_the_quaternions_of_both_ends_of_the_z_axis_are_rotations() -> None:
    for sign in (1.0, -1.0):
        turned = rotation_of_quaternion(axis_quaternion(np.array([0.0, 0.0, 2.0 * sign])))
        np.testing.assert_allclose(turned[:, 2], [0.0, 0.0, sign], atol=1e-12)
    np.testing.assert_array_equal(axis_quaternion(np.zeros(3)), [1.0, 0.0, 0.0, 0.0])


def test_the_markers_are_the_picture_and_can_be_sent() -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    pytest.importorskip('visualization_msgs', reason='needs the ROS package visualization_msgs')
    from rclpy.serialization import serialize_message
    from visualization_msgs.msg import Marker

    from robotid_ros.nodes.scene import PREFIX, marker_array

    arm = ur10e()
    config = ExcitationConfig(
        ground=True, link_radius=0.06, workspace_frames=('tip',), workspace_lower=(-1.0, -1.0, 0.1)
    )
    q = 0.3 * np.sin(np.linspace(0.0, 6.0, 50))[:, None] + np.array([0.0, -1.2, 1.2, -1.2, -1.5, 0.0])
    picture = space_picture(arm, config, q, np.zeros_like(q), np.zeros_like(q))
    message = marker_array(picture, config, arm.base_name)
    assert len(serialize_message(message)) > 1000
    first, *markers = message.markers
    assert first.action == Marker.DELETEALL
    assert len({(each.ns, each.id) for each in markers}) == len(markers)
    path = next(each for each in markers if each.ns == 'path')
    np.testing.assert_allclose([[p.x, p.y, p.z] for p in path.points], picture.path)
    assert path.colors[picture.room.argmin()].r == max(colour.r for colour in path.colors)
    assert {each.ns for each in markers} == {'path', 'closest', 'ground', 'walls', 'links', 'obstacles'}
    frames = {PREFIX + name for name in (arm.base_name, *arm.link_names)}
    assert {each.header.frame_id for each in markers} == frames
    for capsule in picture.capsules:  # the cylinder's ends are the capsule's
        own = [each for each in markers if each.header.frame_id == PREFIX + capsule.frame]
        for rod in (each for each in own if each.type == Marker.CYLINDER):
            turn = rod.pose.orientation
            axis = rotation_of_quaternion(np.array([turn.w, turn.x, turn.y, turn.z]))[:, 2]
            middle = np.array([rod.pose.position.x, rod.pose.position.y, rod.pose.position.z])
            np.testing.assert_allclose(middle + 0.5 * rod.scale.z * axis, capsule.end, atol=1e-9)
            assert rod.scale.x == pytest.approx(2.0 * capsule.radius)
