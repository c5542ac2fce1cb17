# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The space around the arm: MoveIt's objects as obstacles, and the motion that would be run, shown before it is.

The objects of MoveIt's planning scene, which needs ``moveit_msgs``, are obstacles of designs and runs. A motion is
shown as joint states, over and over, and as markers for RViz and Foxglove: its path, the room along it, and what is
kept clear of.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError, MissingDependencyError, RobotIdError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.picture import SpacePicture, space_picture
from robotid_ros.excitation.workspace import Capsule, box_capsules, cylinder_capsules, with_obstacles
from robotid_ros.execution.run import Motion, once
from robotid_ros.model import RobotModel
from robotid_ros.model.transforms import axis_quaternion, rigid_transform, rotation_of_quaternion, translation
from robotid_ros.nodes.messages import LATCHED, publish
from robotid_ros.nodes.runtime import BackgroundWorker, SimulatedTime, call_service, steady_timer

PREFIX = 'preview/'
"""Of the frames of the arm that view.launch.py shows."""
_SAMPLES = 500
_WIDE = 0.1
"""Room from which the path is drawn as far from everything [m]."""
_NEAR, _FAR = (0.84, 0.37, 0.0), (0.0, 0.45, 0.70)
_LINK, _FIXED, _GROUND, _WALL = (
    (0.6, 0.7, 0.8, 0.25),
    (0.55, 0.5, 0.45, 0.6),
    (0.9, 0.9, 0.85, 0.5),
    (0.3, 0.3, 0.3, 1.0),
)
_OPEN = 0.3
"""How far beyond the path a wall is drawn where a box has none [m]."""
_RATE = 50.0
"""Of the joint states [Hz]: RViz draws 30 pictures a second."""
_LOOK = 0.5
"""Between checks for subscribers [s]: 50 checks a second take 4 % of a core."""


class PlanningScene:
    """Asks MoveIt for its planning scene, by the service of that name where there is one in the graph."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # removed with this object

    def surrounded(self, service: str, model: RobotModel, config: ExcitationConfig) -> ExcitationConfig:
        """Return settings with the objects of the scene in their geometry; off the executor's thread.

        They are as they were where nobody serves the scene, or it has no objects.

        Raises a RobotIdError if the scene is there and cannot be read: an obstacle that is passed over is worse than a
        refusal.
        """
        if not service:
            return config
        name = self._node.resolve_service_name(service)
        served = dict(self._node.get_service_names_and_types())
        if 'moveit_msgs/srv/GetPlanningScene' not in served.get(name, ()):
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

    Raises an ExcitationError if an object's frame has no known place, or it is a plane, or the scene has an octomap.
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
            return np.asarray(np.linalg.inv(_matrix(each.transform)))
    state = scene.robot_state.multi_dof_joint_state  # where the robot stands in the world
    if state.header.frame_id == frame and len(state.transforms) == 1:
        return np.asarray(np.linalg.inv(_matrix(state.transforms[0])))
    raise ExcitationError(
        f"object '{name}' of the planning scene is in the frame '{frame}', whose place from the base of the arm, "
        f"'{base}', is not known: publish the object in '{base}', or set base_link to that frame if the URDF has it"
    )


def _matrix(pose: Any) -> Array:
    """Return the matrix of a Pose or a Transform, shape (4, 4)."""
    position, turn = (pose.position, pose.orientation) if isinstance(pose, Pose) else (pose.translation, pose.rotation)
    quaternion = np.array([turn.w, turn.x, turn.y, turn.z])
    rotation = rotation_of_quaternion(quaternion) if np.any(quaternion) else np.eye(3)  # zero: nobody set it
    return rigid_transform(rotation, (position.x, position.y, position.z))


class Preview:
    """Shows a motion while somebody listens: over and over as joint states on ``~/preview``, and as markers.

    Nothing of the arm's own topics is touched. ``motion`` returns the joint names and the motion, or None while there
    is none to show; the node's parameter ``preview_speed`` says how fast it is shown. The markers, on the latched
    ``~/preview_markers``, need visualization_msgs, which RViz brings; without it the log says so once.
    """

    def __init__(
        self, node: Node, worker: BackgroundWorker, motion: Callable[[], tuple[tuple[str, ...], Motion] | None]
    ) -> None:
        self._node, self._worker, self._motion = node, worker, motion
        self._publisher = node.create_publisher(JointState, '~/preview', 10)
        self._markers: Publisher | None = None
        with suppress(ImportError):
            from visualization_msgs.msg import MarkerArray

            self._markers = node.create_publisher(MarkerArray, '~/preview_markers', LATCHED)
        self._elapsed = 0.0
        self._last: float | None = None
        self._time = SimulatedTime(node)
        self._timer = steady_timer(node, _LOOK, self._show)

    def _show(self) -> None:
        now = time.monotonic()
        shown = self._motion() if self._publisher.get_subscription_count() else None
        if shown is None:
            if self._last is not None:
                self._time.leave()
                self._timer.timer_period_ns = int(1e9 * _LOOK)
            self._elapsed, self._last = 0.0, None
            return
        if self._last is None:
            self._time.follow()
            self._timer.timer_period_ns = int(1e9 / _RATE)
            self._timer.reset()  # else the second message would come after the old period, and the motion would jump
        else:
            self._elapsed += float(self._node.get_parameter('preview_speed').value) * (now - self._last)
        self._last = now
        names, motion = shown
        reference = once(motion)
        position, velocity, _ = reference.evaluate([self._elapsed % reference.duration])
        message = JointState(name=list(names), position=position[0].tolist(), velocity=velocity[0].tolist())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def draw(self, model: RobotModel, config: ExcitationConfig, motion: Motion) -> None:
        """Publish the markers of a motion and its surroundings, off the executor's thread."""
        if self._markers is None:
            said = 'no markers on ~/preview_markers: they need the ROS package visualization_msgs'
            self._node.get_logger().info(said, once=True)
            return

        def work() -> None:
            reference = once(motion)
            times = np.linspace(0.0, reference.duration, _SAMPLES)
            try:
                picture = space_picture(model, config, *reference.evaluate(times))
            except RobotIdError as cause:
                self._node.get_logger().warning(f'the motion cannot be drawn: {cause}')
                return
            publish(self._markers, marker_array(picture, config, model.base_name))

        self._worker.run(work)


def marker_array(picture: SpacePicture, config: ExcitationConfig, base: str) -> Any:
    """Return the ``visualization_msgs/MarkerArray`` of a picture, which takes the place of all markers before it.

    The namespaces are ``path`` (red where no room is left, blue from 10 cm on), ``closest`` (the place of the least
    room, with words), ``ground``, ``walls``, ``links`` and ``obstacles``.
    """
    from visualization_msgs.msg import Marker, MarkerArray

    markers: list[Any] = []

    def add(space: str, kind: int, size: tuple[float, float, float], frame: str = base, **values: Any) -> None:
        marker = Marker(ns=space, id=len(markers), type=kind, action=Marker.ADD, **values)
        marker.header.frame_id = PREFIX + frame  # stamp 0: wherever the frame is now
        marker.frame_locked = True
        marker.scale.x, marker.scale.y, marker.scale.z = map(float, size)
        markers.append(marker)

    shares = np.clip(picture.room / _WIDE, 0.0, 1.0)[:, None]
    colours = [_rgba((*row, 1.0)) for row in shares * np.array(_FAR) + (1.0 - shares) * np.array(_NEAR)]
    points = [_point(each) for each in picture.path]
    add('path', Marker.LINE_STRIP, (0.006, 0.0, 0.0), points=points, colors=colours)
    least = int(picture.room.argmin())
    words = '\n'.join(filter(None, (picture.closest, picture.limit)))
    if picture.closest:
        add('closest', Marker.SPHERE, (0.03, 0.03, 0.03), pose=_pose(picture.path[least]), color=colours[least])
    if words:
        above = picture.path[least] + [0.0, 0.0, 0.08]
        add('closest', Marker.TEXT_VIEW_FACING, (0.0, 0.0, 0.04), pose=_pose(above), color=_rgba(_WALL), text=words)
    low, high = picture.path.min(axis=0) - _OPEN, picture.path.max(axis=0) + _OPEN
    if config.ground:
        middle = np.array([*(low + high)[:2] / 2.0, config.ground_height - 0.001])
        wide = max(np.abs([low, high])[:, :2].max(), 1.0)
        add('ground', Marker.CUBE, (2.0 * wide, 2.0 * wide, 0.002), pose=_pose(middle), color=_rgba(_GROUND))
    if config.workspace_frames:
        lower, upper = (np.array(each or [np.inf] * 3) for each in (config.workspace_lower, config.workspace_upper))
        corners = np.where(np.isfinite(lower), lower, low), np.where(np.isfinite(upper), upper, high)
        add('walls', Marker.LINE_LIST, (0.004, 0.0, 0.0), points=_edges(*corners), color=_rgba(_WALL))
    for capsule in picture.capsules:
        space, colour = ('obstacles', _FIXED) if capsule.frame == base else ('links', _LINK)
        along = capsule.end - capsule.start
        pose, length = _pose((capsule.start + capsule.end) / 2.0), float(np.linalg.norm(along))
        turn = pose.orientation  # of the cylinder's axis, which is z
        turn.w, turn.x, turn.y, turn.z = axis_quaternion(along).tolist()
        wide = 2.0 * capsule.radius
        if length > 0.0:
            add(space, Marker.CYLINDER, (wide, wide, length), capsule.frame, pose=pose, color=_rgba(colour))
        ends = [_point(capsule.start), _point(capsule.end)]
        add(space, Marker.SPHERE_LIST, (wide, wide, wide), capsule.frame, points=ends, color=_rgba(colour))
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL), *markers])


def _rgba(values: tuple[float, ...]) -> ColorRGBA:
    return ColorRGBA(**dict(zip('rgba', map(float, values), strict=True)))


def _point(values: Array) -> Point:
    return Point(**dict(zip('xyz', map(float, values), strict=True)))


def _pose(position: Array) -> Pose:
    return Pose(position=_point(position))


def _edges(low: Array, high: Array) -> list[Point]:
    """Return the ends of the twelve edges of a box, one after the other."""
    corners = np.array(np.meshgrid(*zip(low, high, strict=True), indexing='ij')).reshape(3, -1).T
    pairs = [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]
    return [_point(corners[k]) for pair in pairs for k in pair]
