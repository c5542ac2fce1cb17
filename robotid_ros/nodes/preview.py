# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The motion that would be run, shown before it is: as joint states over and over, and as markers.

The markers, for RViz and Foxglove, are its path, the room along it, and what is kept clear of.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA

from robotid_ros.arrays import Array
from robotid_ros.errors import RobotIdError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.picture import SpacePicture, space_picture
from robotid_ros.excitation.workspace import Capsule
from robotid_ros.execution.run import Motion
from robotid_ros.model import RobotModel
from robotid_ros.model.transforms import axis_quaternion
from robotid_ros.nodes.messages import LATCHED, publish
from robotid_ros.nodes.runtime import BackgroundWorker, SimulatedTime, steady_timer

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


def _once(motion: Motion) -> tuple[Callable[[Array], tuple[Array, Array, Array]], float]:
    """Return what tells positions, velocities and accelerations over one period, or the whole motion, and its end."""
    if isinstance(motion, FourierTrajectory):
        return motion.evaluate, motion.period
    return motion.reference.evaluate, motion.reference.duration


class Preview:
    """Publishes the joint states of a motion on ``~/preview``, over and over, while somebody listens.

    Nothing of the arm's own topics is touched. ``motion`` returns the joint names and the motion, or None while there
    is none to show; the node's parameter ``preview_speed`` says how fast it is shown.
    """

    def __init__(self, node: Node, motion: Callable[[], tuple[tuple[str, ...], Motion] | None]) -> None:
        self._node, self._motion = node, motion
        self._publisher = node.create_publisher(JointState, '~/preview', 10)
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
        evaluate, duration = _once(motion)
        position, velocity, _ = evaluate(np.array([self._elapsed % duration]))
        message = JointState(name=list(names), position=position[0].tolist(), velocity=velocity[0].tolist())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


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

    def show(self, model: RobotModel, config: ExcitationConfig, motion: Motion) -> None:
        """Draw a motion and its surroundings, off the executor's thread."""
        if self._publisher is None:
            said = 'no markers on ~/preview_markers: they need the ROS package visualization_msgs'
            self._node.get_logger().info(said, once=True)
            return
        self._worker.run(self._draw, model, config, motion)

    def _draw(self, model: RobotModel, config: ExcitationConfig, motion: Motion) -> None:
        evaluate, duration = _once(motion)
        try:
            picture = space_picture(model, config, *evaluate(np.linspace(0.0, duration, _SAMPLES)))
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
