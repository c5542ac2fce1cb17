# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The objects of MoveIt's planning scene as obstacles of designs and runs; needs ``moveit_msgs``."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.node import Node

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError, MissingDependencyError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.workspace import Capsule, box_capsules, cylinder_capsules, with_obstacles
from robotid_ros.model import RobotModel
from robotid_ros.model.transforms import rigid_transform, rotation_of_quaternion, translation
from robotid_ros.nodes.runtime import call_service

_KIND = 'moveit_msgs/srv/GetPlanningScene'


class PlanningScene:
    """Asks MoveIt for its planning scene, by the service of that name where there is one in the graph."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # removed with this object

    def surrounded(self, service: str, model: RobotModel, config: ExcitationConfig) -> ExcitationConfig:
        """Return settings with the objects of the scene in their geometry; off the executor's thread.

        They are as they were where nobody serves the scene, or it has no objects.

        Raises
        ------
        RobotIdError
            If the scene is there and cannot be read: an obstacle that is passed over is worse than a refusal.
        """
        if not service:
            return config
        name = self._node.resolve_service_name(service)
        if not any(each == name and _KIND in kinds for each, kinds in self._node.get_service_names_and_types()):
            return config
        try:
            from moveit_msgs.srv import GetPlanningScene
        except ImportError as cause:
            raise MissingDependencyError(
                f'MoveIt tells its planning scene on {name}, whose objects are obstacles; reading it needs the ROS '
                'package moveit_msgs (sudo apt install ros-$ROS_DISTRO-moveit-msgs); to go without them, set '
                "planning_scene to ''"
            ) from cause
        request = GetPlanningScene.Request()
        parts = request.components
        request.components.components = (
            parts.ROBOT_STATE
            | parts.WORLD_OBJECT_NAMES
            | parts.WORLD_OBJECT_GEOMETRY
            | parts.OCTOMAP
            | parts.TRANSFORMS
        )
        answer = call_service(self._node, GetPlanningScene, name, request)
        if answer is None:
            raise ExcitationError(f'{name} does not answer: what stands around the arm is not known')
        found = scene_capsules(answer.scene, model.base_name)
        if not found:
            return config
        count = len(answer.scene.world.collision_objects)
        self._node.get_logger().info(f'objects of the planning scene are obstacles: {count}, as {len(found)} capsules')
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix='robotid_')
        return with_obstacles(model, config, found, Path(self._folder.name) / 'surroundings.yaml')


def scene_capsules(scene: Any, base: str) -> list[Capsule]:
    """Return capsules, in the frame of the base, that cover the objects of a ``moveit_msgs/PlanningScene``.

    Meshes and prisms are taken as the boxes around them. Objects that the arm carries are no obstacles.

    Raises
    ------
    ExcitationError
        If an object's frame has no known place, or it is a plane, or the scene has an octomap.
    """
    capsules = []
    for each in scene.world.collision_objects:
        placed = _frame(scene, each.header.frame_id, base, each.id) @ _matrix(each.pose)
        if each.planes:
            raise ExcitationError(
                f"object '{each.id}' of the planning scene is a plane, which is not read: set ground and "
                'ground_height, or a wall by workspace_frames'
            )
        for shape, pose in zip(each.primitives, each.primitive_poses, strict=True):
            capsules += _primitive(shape, placed @ _matrix(pose), base, each.id)
        for mesh, pose in zip(each.meshes, each.mesh_poses, strict=True):
            points = np.array([[point.x, point.y, point.z] for point in mesh.vertices])
            capsules += _box_around(points, placed @ _matrix(pose), base)
    if scene.world.octomap.octomap.data:
        raise ExcitationError(
            'the planning scene has an octomap, which is not read: give what it holds as objects; to go without any of '
            "them, set planning_scene to ''"
        )
    return capsules


def _primitive(shape: Any, pose: Array, base: str, name: str) -> list[Capsule]:
    sizes = list(shape.dimensions)
    if shape.type == shape.BOX:
        return box_capsules(base, pose, sizes[:3])
    if shape.type == shape.SPHERE:
        return cylinder_capsules(base, pose, 0.0, sizes[0])
    if shape.type in (shape.CYLINDER, shape.CONE):
        return cylinder_capsules(base, pose, sizes[shape.CYLINDER_HEIGHT], sizes[shape.CYLINDER_RADIUS])
    if shape.type == getattr(shape, 'PRISM', None):
        points = np.array([[point.x, point.y, 0.0] for point in shape.polygon.points])
        half = np.array([0.0, 0.0, 0.5 * sizes[shape.PRISM_HEIGHT]])
        return _box_around(np.concatenate([points - half, points + half]), pose, base)
    raise ExcitationError(f"object '{name}' of the planning scene has a shape of type {shape.type}, which is not known")


def _box_around(points: Array, pose: Array, base: str) -> list[Capsule]:
    low, high = points.min(axis=0), points.max(axis=0)
    return box_capsules(base, pose @ translation((low + high) / 2.0), np.maximum(high - low, 1e-3).tolist())


def _frame(scene: Any, frame: str, base: str, name: str) -> Array:
    """Return the placement of a frame in that of the base, shape (4, 4)."""
    if frame in ('', base):
        return np.eye(4)
    for each in scene.fixed_frame_transforms:
        pair = each.header.frame_id, each.child_frame_id
        if pair == (base, frame):
            return _matrix(each.transform)
        if pair == (frame, base):
            return _inverse(_matrix(each.transform))
    state = scene.robot_state.multi_dof_joint_state  # where the robot stands in the world
    if state.header.frame_id == frame and len(state.transforms) == 1:
        return _inverse(_matrix(state.transforms[0]))
    raise ExcitationError(
        f"object '{name}' of the planning scene is in the frame '{frame}', whose place from the base of the arm, "
        f"'{base}', is not known: publish the object in '{base}', or set base_link to that frame if the URDF has it"
    )


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=float)


def _matrix(pose: Any) -> Array:
    """Return the matrix of a Pose or a Transform, shape (4, 4)."""
    position, turn = (pose.position, pose.orientation) if isinstance(pose, Pose) else (pose.translation, pose.rotation)
    quaternion = np.array([turn.w, turn.x, turn.y, turn.z])
    rotation = rotation_of_quaternion(quaternion) if np.any(quaternion) else np.eye(3)  # zero: nobody set it
    return rigid_transform(rotation, (position.x, position.y, position.z))
