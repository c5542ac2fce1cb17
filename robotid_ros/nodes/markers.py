# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The motion that would be run as markers of RViz and Foxglove: its path, the room along it, what is kept clear of."""

from contextlib import suppress
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import ColorRGBA

from robotid_ros.arrays import Array
from robotid_ros.errors import RobotIdError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.friction_sweep import FrictionSweep
from robotid_ros.excitation.picture import SpacePicture, space_picture
from robotid_ros.excitation.pose_tour import PoseTour
from robotid_ros.excitation.workspace import Capsule
from robotid_ros.model import RobotModel
from robotid_ros.model.transforms import axis_quaternion
from robotid_ros.nodes.conversions import LATCHED
from robotid_ros.nodes.publishing import publish
from robotid_ros.nodes.runtime import BackgroundWorker

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


class PreviewMarkers:
    """Publishes markers of a motion on ``~/preview_markers``, latched, where visualization_msgs is installed.

    RViz brings that package; without it nothing is drawn, and the log says so once.
    """

    def __init__(self, node: Node, worker: BackgroundWorker) -> None:
        self._node, self._worker = node, worker
        self._publisher: Publisher | None = None
        with suppress(ImportError):
            from visualization_msgs.msg import MarkerArray

            self._publisher = node.create_publisher(MarkerArray, '~/preview_markers', LATCHED)

    def show(
        self, model: RobotModel, config: ExcitationConfig, motion: FourierTrajectory | FrictionSweep | PoseTour
    ) -> None:
        """Draw a motion and its surroundings, off the executor's thread."""
        if self._publisher is None:
            said = 'no markers on ~/preview_markers: they need the ROS package visualization_msgs'
            self._node.get_logger().info(said, once=True)
            return
        self._worker.run(self._draw, model, config, motion)

    def _draw(
        self, model: RobotModel, config: ExcitationConfig, motion: FourierTrajectory | FrictionSweep | PoseTour
    ) -> None:
        path = motion if isinstance(motion, FourierTrajectory) else motion.reference
        duration = motion.period if isinstance(motion, FourierTrajectory) else motion.reference.duration
        try:
            picture = space_picture(model, config, *path.evaluate(np.linspace(0.0, duration, _SAMPLES)))
        except RobotIdError as cause:
            self._node.get_logger().warning(f'the motion cannot be drawn: {cause}')
            return
        publish(self._publisher, marker_array(picture, config, model.base_name))


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

    colours = [_colour(room) for room in picture.room]
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
        pose, length = _placed(capsule)
        wide = 2.0 * capsule.radius
        if length > 0.0:
            add(space, Marker.CYLINDER, (wide, wide, length), capsule.frame, pose=pose, color=_rgba(colour))
        ends = [_point(capsule.start), _point(capsule.end)]
        add(space, Marker.SPHERE_LIST, (wide, wide, wide), capsule.frame, points=ends, color=_rgba(colour))
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL), *markers])


def _colour(room: float) -> ColorRGBA:
    share = float(np.clip(room / _WIDE, 0.0, 1.0))
    return _rgba((*(share * np.array(_FAR) + (1.0 - share) * np.array(_NEAR)), 1.0))


def _rgba(values: tuple[float, ...]) -> ColorRGBA:
    return ColorRGBA(**dict(zip('rgba', map(float, values), strict=True)))


def _point(values: Array) -> Point:
    return Point(**dict(zip('xyz', map(float, values), strict=True)))


def _pose(position: Array) -> Pose:
    return Pose(position=_point(position))


def _placed(capsule: Capsule) -> tuple[Pose, float]:
    """Return the pose of the cylinder between the ends of a capsule, along its z axis, and its length [m]."""
    along = capsule.end - capsule.start
    pose = _pose((capsule.start + capsule.end) / 2.0)
    turn = axis_quaternion(along)
    pose.orientation.w, pose.orientation.x, pose.orientation.y, pose.orientation.z = map(float, turn)
    return pose, float(np.linalg.norm(along))


def _edges(low: Array, high: Array) -> list[Point]:
    """Return the ends of the twelve edges of a box, one after the other."""
    corners = np.array(np.meshgrid(*zip(low, high, strict=True), indexing='ij')).reshape(3, -1).T
    pairs = [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]
    return [_point(corners[k]) for pair in pairs for k in pair]
