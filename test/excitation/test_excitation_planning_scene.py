# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The objects of MoveIt's planning scene are obstacles: a real node beside a real service of moveit_msgs."""

import re
from pathlib import Path

import numpy as np
import pytest
from excitation_helpers import UR10E, ur10e
from ros_helpers import NodeProcess, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('moveit_msgs', reason='needs the ROS package moveit_msgs, which is not on PyPI')
pytestmark = pytest.mark.ros

from excitation_user import JOINTS, User, arguments  # noqa: E402
from geometry_msgs.msg import Point, TransformStamped  # noqa: E402
from moveit_msgs.msg import CollisionObject, PlanningScene  # noqa: E402
from shape_msgs.msg import Mesh, SolidPrimitive  # noqa: E402

from robotid_ros.excitation import load_excitation  # noqa: E402
from robotid_ros.excitation.workspace import (  # noqa: E402
    box_capsules,
    capsule_ends,
    closest_points,
    skeleton,
)
from robotid_ros.model.kinematics import link_transforms  # noqa: E402
from robotid_ros.nodes.scene import scene_capsules  # noqa: E402

HERE = Path(__file__).parents[1]
NODE = ['-m', 'robotid_ros.nodes.excitation', '--ros-args']
BLOCKED = (
    "import sys; sys.modules['moveit_msgs'] = None; from robotid_ros.nodes.excitation import main; sys.exit(main())"
)
WITHOUT = ['-c', BLOCKED, '--ros-args']
SETTINGS = {'urdf_file': UR10E, 'link_radius': 0.06, 'period': 4.0, 'starts': 1, 'position_scaling': 1.0}


def tip_of(design):
    """Return the point of the tip's path that is furthest from the axis of the base."""
    model = ur10e()
    poses = link_transforms(model, design.trajectory.position(np.linspace(0.0, design.trajectory.period, 400)))
    tip = (poses[:, -1] @ model.tip)[:, :3, 3]
    return tip[np.linalg.norm(tip[:, :2], axis=1).argmax()]


def gap(design, place):
    """Return how near the links come to the capsules of a box of 20 cm at a place."""
    model, pose = ur10e(), np.eye(4)
    pose[:3, 3] = place
    poses = link_transforms(model, design.trajectory.position(np.linspace(0.0, design.trajectory.period, 2000)))
    gaps = []
    for own in skeleton(model, 0.06).capsules[2:]:
        for other in box_capsules(model.base_name, pose, (0.2, 0.2, 0.2)):
            points = closest_points(*capsule_ends(model, own, poses), *capsule_ends(model, other, poses))
            gaps.append((np.linalg.norm(points[0] - points[1], axis=1) - own.radius - other.radius).min())
    return min(gaps)


def move_group(environment, kind, place=(5.0, 5.0, 5.0)):
    text = ','.join(f'{x:.6f}' for x in place)
    return NodeProcess([str(HERE / 'excitation_move_group.py'), kind, text], environment)


def test_a_box_of_the_scene_is_kept_clear_of_and_a_trajectory_through_it_is_refused(tmp_path):
    environment = ros_environment()
    free, around = tmp_path / 'free.yaml', tmp_path / 'around.yaml'
    arm = [str(HERE / 'excitation_fake_arm.py'), ','.join(JOINTS)]
    settings = arguments(**{**SETTINGS, 'save_to': free, 'acceleration_limit': 8.0})
    with NodeProcess([*NODE, *settings], environment) as node, NodeProcess(arm, environment) as arm_process:
        user = User(int(environment['ROS_DOMAIN_ID']))
        arm_process.wait_for_line('ready')
        assert user.call('/excitation/design').success
        place = tip_of(load_excitation(free))
        assert gap(load_excitation(free), place) < 0.0
        with move_group(environment, 'box', place) as scene:
            scene.wait_for_line('ready')
            user.set(save_to=str(around))
            answer = user.call('/excitation/design')
            while 'objects of the planning scene' not in node.output:  # the node has not heard of the scene yet
                answer = user.call('/excitation/design')
            assert answer.success, answer.message
            assert 'objects of the planning scene are obstacles: 1, as 4 capsules' in node.output
            assert gap(load_excitation(around), place) > 0.0
            user.set(trajectory=str(free))
            refused = user.call('/excitation/start')
            assert not refused.success
            assert re.search("clearance of '[a-z_0-9]+' from 'base_link' is -", refused.message)
        user.close()


@pytest.mark.parametrize(
    ('kind', 'said'),
    [
        ('plane', "object 'thing' of the planning scene is a plane, which is not read: set ground"),
        ('elsewhere', "is in the frame 'nowhere', whose place from the base of the arm, 'base_link', is not known"),
        ('nothing', ''),
    ],
)
def test_what_cannot_be_read_is_refused(kind, said):
    environment = ros_environment()
    settings = arguments(**{**SETTINGS, 'link_radius': 0.0, 'iterations': 5})
    with NodeProcess([*NODE, *settings], environment), move_group(environment, kind) as scene:
        scene.wait_for_line('ready')
        user = User(int(environment['ROS_DOMAIN_ID']))
        if said:
            user.until(lambda: said in user.call('/excitation/design').message, 'the scene is refused')
        else:
            assert user.call('/excitation/design').success
        user.close()


def test_without_moveit_msgs_the_design_says_what_to_install():
    environment = ros_environment()
    with (
        NodeProcess([*WITHOUT, *arguments(**{**SETTINGS, 'iterations': 5})], environment),
        move_group(environment, 'box') as scene,
    ):
        scene.wait_for_line('ready')
        user = User(int(environment['ROS_DOMAIN_ID']))
        said = 'reading it needs the ROS package moveit_msgs (sudo apt install ros-$ROS_DISTRO-moveit-msgs)'
        user.until(lambda: said in user.call('/excitation/design').message, 'the scene is refused')
        user.set(planning_scene='')
        assert user.call('/excitation/design').success
        user.close()


def scene_of(shape=None, mesh=None, frame='base_link'):
    thing = CollisionObject(id='thing')
    thing.header.frame_id = frame
    thing.pose.position.x, thing.pose.position.z, thing.pose.orientation.w = 1.0, 0.5, 1.0
    if shape is not None:
        thing.primitives, thing.primitive_poses = [shape], [thing.pose.__class__()]
        thing.primitive_poses[0].position.y = 2.0
    if mesh is not None:
        thing.meshes, thing.mesh_poses = [mesh], [thing.pose.__class__()]
    scene = PlanningScene()
    scene.world.collision_objects = [thing]
    return scene


def bounds(capsules):
    low = np.min([np.minimum(each.start, each.end) - each.radius for each in capsules], axis=0)
    return low, np.max([np.maximum(each.start, each.end) + each.radius for each in capsules], axis=0)


def test_shapes_are_where_object_and_shape_poses_put_them():
    ball = SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.3])
    (capsule,) = scene_capsules(scene_of(ball), 'base_link')
    np.testing.assert_allclose([capsule.start, capsule.end], [[1.0, 2.0, 0.5]] * 2)
    assert capsule.radius == 0.3
    pole = SolidPrimitive(type=SolidPrimitive.CYLINDER, dimensions=[2.0, 0.1])
    (capsule,) = scene_capsules(scene_of(pole), 'base_link')
    np.testing.assert_allclose(sorted([capsule.start[2], capsule.end[2]]), [-0.5, 1.5])
    mesh = Mesh(vertices=[Point(x=float(x), y=float(y), z=float(z)) for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    low, high = bounds(scene_capsules(scene_of(mesh=mesh), 'base_link'))
    assert (low <= [1.0, 0.0, 0.5]).all()
    assert (high >= [2.0, 1.0, 1.5]).all()


def test_an_object_in_the_world_is_placed_by_where_the_robot_stands_in_it():
    ball = SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.3])
    scene = scene_of(ball, frame='world')
    moved = TransformStamped(child_frame_id='base_link')
    moved.header.frame_id, moved.transform.translation.x = 'world', 1.0
    moved.transform.rotation.z, moved.transform.rotation.w = 1.0, 0.0  # half a turn
    scene.fixed_frame_transforms = [moved]
    (capsule,) = scene_capsules(scene, 'base_link')
    np.testing.assert_allclose(capsule.start, [0.0, -2.0, 0.5], atol=1e-12)
    scene.fixed_frame_transforms = []
    state = scene.robot_state.multi_dof_joint_state
    state.header.frame_id, state.joint_names, state.transforms = 'world', ['fixed'], [moved.transform]
    (capsule,) = scene_capsules(scene, 'base_link')
    np.testing.assert_allclose(capsule.start, [0.0, -2.0, 0.5], atol=1e-12)
