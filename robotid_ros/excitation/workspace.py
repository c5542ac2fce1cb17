# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Limits in space: capsules as links and as what stands around, a box for chosen frames, clearance, the ground."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import Bound, Constraint, Pullback
from robotid_ros.excitation.motion import Motion, MotionGradient
from robotid_ros.files import write_text
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.reading import read_yaml, refusing

_ALWAYS = 0.95  # share of poses in which a pair is close by construction
_POSES = 400  # random ones for that
WORKSPACE_SCALE = 0.1  # excess in space is divided by 1 dm, comparable with a tenth of a joint's range


@dataclass(frozen=True, slots=True, kw_only=True)
class Capsule:
    """All points within a radius of a line segment that is fixed to a frame; a sphere if the ends meet."""

    frame: str  # a link of the robot, the base, or 'tip'
    start: Array  # shape (3,): ends of the segment in that frame [m]
    end: Array
    radius: float  # [m]

    def __post_init__(self) -> None:
        for name in ('start', 'end'):
            object.__setattr__(self, name, frozen_array(getattr(self, name), f'capsule {name}', (3,), ExcitationError))
        if not self.radius > 0.0:
            raise ExcitationError(f"capsule of '{self.frame}': expected a positive radius [m], got {self.radius:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Capsules and which pairs of them have to stay apart."""

    capsules: tuple[Capsule, ...]
    ignored: frozenset[frozenset[str]] = field(default_factory=frozenset)  # pairs of frames whose capsules may touch

    def pairs(self, model: RobotModel, distance: float = 0.0) -> list[tuple[int, int]]:
        """Return the pairs of capsules to keep apart.

        Capsules of the same link, of neighbouring links and of ignored pairs are left out, and so are pairs that are
        closer than ``distance`` [m] in 95 % of all poses, as by construction. Raises an ExcitationError if a frame is
        not one of the robot's.
        """
        links = [find_frame(model, capsule.frame)[0] for capsule in self.capsules]
        wanted = [
            (i, j)
            for i, j in combinations(range(len(self.capsules)), 2)
            if abs(links[i] - links[j]) > 1
            and frozenset((self.capsules[i].frame, self.capsules[j].frame)) not in self.ignored
        ]
        poses = link_transforms(model, random_positions(model, _POSES))
        ends = [capsule_ends(model, capsule, poses) for capsule in self.capsules]
        result = []
        for i, j in wanted:
            first, second = closest_points(*ends[i], *ends[j])
            gap = np.linalg.norm(first - second, axis=1) - self.capsules[i].radius - self.capsules[j].radius
            if np.mean(gap <= distance) < _ALWAYS:
                result.append((i, j))
        return result


def random_positions(model: RobotModel, count: int, limits: JointLimits | None = None) -> Array:
    """Return joint positions spread over the ranges of an arm, the same ones each time, shape (count, n)."""
    limits = model.limits if limits is None else limits
    span = np.where(model.revolute, np.pi, 1.0)
    low, high = np.maximum(limits.lower, -span), np.minimum(limits.upper, span)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return np.asarray(np.random.default_rng(0).uniform(low, high, (count, model.n)))


def find_frame(model: RobotModel, name: str) -> tuple[int, Array]:
    """Return the moving link a frame is fixed to (-1 for the base), and its placement in that link."""
    frames = model.frames
    if name in frames:
        return frames[name]
    if name in ('tip', model.tip_name):
        return model.n - 1, model.tip
    raise ExcitationError(f"frame '{name}' is not one of the robot's; it has: {', '.join([*frames, 'tip'])}")


def fixed_point(model: RobotModel, frame: str, point: Array) -> tuple[int, Array]:
    """Return the moving link that a point of a frame is fixed to (-1 for the base), and its place in that [m]."""
    link, placement = find_frame(model, frame)
    return link, placement[:3, :3] @ point + placement[:3, 3]


class FixedPoints:
    """P points that are fixed to links of a model, or to its base.

    Each is a link, -1 for the base, and the place in that [m].
    """

    def __init__(self, model: RobotModel, points: Sequence[tuple[int, Array]]) -> None:
        # A place is linear in the entries of a pose, of which the last one is 1.
        entries = np.zeros((model.n, 4, 4, len(points), 3))
        for k, (link, point) in enumerate(points):
            for axis in range(3):
                if link < 0:
                    entries[0, 3, 3, k, axis] = point[axis]
                else:
                    entries[link, axis, :, k, axis] = *point, 1.0
        self._map = entries.reshape(16 * model.n, -1)

    def places(self, poses: Array) -> Array:
        """Return where they are in the base frame, (N, P, 3) [m], at poses (N, n, 4, 4) of the links."""
        result: Array = (poses.reshape(len(poses), -1) @ self._map).reshape(len(poses), -1, 3)
        return result


def capsule_ends(model: RobotModel, capsule: Capsule, poses: Array) -> tuple[Array, Array]:
    """Return both ends of a capsule in the base frame, (N, 3) each [m], at poses (N, n, 4, 4) of the links."""
    ends = [fixed_point(model, capsule.frame, point) for point in (capsule.start, capsule.end)]
    start, end = FixedPoints(model, ends).places(poses).transpose(1, 0, 2)
    return start, end


def closest_points(start1: Array, end1: Array, start2: Array, end2: Array) -> tuple[Array, Array]:
    """Return the closest points of pairs of line segments, one on each, of shape (..., 3) like all ends [m].

    A segment may be a point. Source: Ericson, "Real-Time Collision Detection", 2005, section 5.1.9.
    """
    along1, along2, between = end1 - start1, end2 - start2, start1 - start2
    pairs = ((along1, along1), (along2, along2), (along1, along2), (along1, between), (along2, between))
    a, e, b, c, f = (np.einsum('...j,...j->...', *pair) for pair in pairs)
    tiny = 1e-16
    safe_a, safe_e = np.maximum(a, tiny), np.maximum(e, tiny)
    denominator = a * e - b * b
    parallel = denominator <= 1e-12 * safe_a * safe_e
    s = np.where(parallel, 0.0, np.clip((b * f - c * e) / np.where(parallel, 1.0, denominator), 0.0, 1.0))
    s = np.where(e <= tiny, np.clip(-c / safe_a, 0.0, 1.0), s)  # the second one is a point
    t = (b * s + f) / safe_e
    s = np.where(t < 0.0, np.clip(-c / safe_a, 0.0, 1.0), np.where(t > 1.0, np.clip((b - c) / safe_a, 0.0, 1.0), s))
    t = np.clip(t, 0.0, 1.0)
    return start1 + s[..., None] * along1, start2 + t[..., None] * along2


def skeleton(model: RobotModel, radius: float) -> Geometry:
    """Return a capsule of this radius [m] for every link, from its joint to the next one, or to the tip."""
    ends = [*(model.placements[k, :3, 3] for k in range(model.n)), model.tip[:3, 3]]
    names = [model.base_name, *model.link_names]
    capsules = [
        Capsule(frame=name, start=np.zeros(3), end=end, radius=radius) for name, end in zip(names, ends, strict=True)
    ]
    return Geometry(capsules=tuple(capsules))


def load_geometry(path: str | Path) -> Geometry:
    """Read capsules and spheres from YAML.

    The file has ``capsules:`` with entries ``{link, from: [x, y, z], to: [x, y, z], radius}``, ``spheres:`` with
    entries ``{link, centre: [x, y, z], radius}`` and ``ignore:``, a list of pairs of links; lengths in m, points in the
    link's frame. All three are optional. Raises an ExcitationError if the file cannot be read or an entry is not as
    described.
    """
    content = read_yaml(path, 'geometry', ExcitationError)
    with refusing(f'geometry {path}', ExcitationError):
        if not isinstance(content, Mapping) or not set(content) <= {'capsules', 'spheres', 'ignore'}:
            raise ExcitationError(f"geometry {path}: expected 'capsules', 'spheres' and 'ignore' at the top")
        for key, value in content.items():
            if value is not None and not isinstance(value, list):
                raise ExcitationError(f"geometry {path}: expected a list under '{key}', got {value!r:.40}")
        forms = {'capsules': ('link', 'from', 'to', 'radius'), 'spheres': ('link', 'centre', 'centre', 'radius')}
        capsules = [_capsule(entry, keys, path) for kind, keys in forms.items() for entry in content.get(kind) or ()]
        pairs = content.get('ignore') or ()
        ignored = [frozenset(map(str, pair)) if isinstance(pair, list) else frozenset() for pair in pairs]
        if any(len(pair) != 2 for pair in ignored):
            raise ExcitationError(f"geometry {path}: expected pairs of different links under 'ignore'")
        if not capsules:
            raise ExcitationError(f'geometry {path}: it has neither capsules nor spheres')
        return Geometry(capsules=tuple(capsules), ignored=frozenset(ignored))


def _capsule(entry: Any, keys: Sequence[str], path: str | Path) -> Capsule:
    if not isinstance(entry, Mapping) or set(entry) != set(keys):
        raise ExcitationError(
            f'geometry {path}: expected an entry with {", ".join(dict.fromkeys(keys))}, got {entry!r:.80}'
        )
    link, start, end, radius = (entry[key] for key in keys)
    try:
        size = float(radius)
    except (TypeError, ValueError) as cause:
        raise ExcitationError(f'geometry {path}: expected a radius [m], got {radius!r:.40}') from cause
    return Capsule(frame=str(link), start=start, end=end, radius=size)


def _space_bound(quantity: str, subject: str, bound: float, sign: float) -> Bound:
    return Bound(quantity=quantity, subject=subject, unit='m', bound=bound, sign=sign, scale=WORKSPACE_SCALE)


class PointBox:
    """Keeps points fixed to links inside boxes in the base frame.

    ``points``: a name for the messages, the frame, the point in it, and the lower and upper corner of its box in the
    base frame, each of shape (3,) [m]; infinity where there is no wall.
    """

    def __init__(self, model: RobotModel, points: Sequence[tuple[str, str, Array, Array, Array]]) -> None:
        bounds: list[Bound] = []
        self._columns: list[tuple[int, int]] = []
        fixed: list[tuple[int, Array]] = []
        for name, frame, point, lower, upper in points:
            fixed.append(fixed_point(model, frame, point))
            for axis in range(3):
                for sign, wall in ((-1.0, lower[axis]), (1.0, upper[axis])):
                    if np.isfinite(wall):
                        bounds.append(_space_bound('xyz'[axis], name, float(wall), sign))
                        self._columns.append((len(fixed) - 1, axis))
        self.bounds = tuple(bounds)
        self._links, self._points = [link for link, _ in fixed], FixedPoints(model, fixed)

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see Constraint."""
        positions = self._points.places(motion.poses)
        excess = np.empty((len(motion), len(self.bounds)))
        for k, (bound, (index, axis)) in enumerate(zip(self.bounds, self._columns, strict=True)):
            excess[:, k] = bound.sign * (positions[:, index, axis] - bound.bound) / bound.scale

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            forces = np.zeros(positions.shape)
            for k, (bound, (index, axis)) in enumerate(zip(self.bounds, self._columns, strict=True)):
                forces[:, index, axis] += weights[:, k] * bound.sign / bound.scale
            for k, link in enumerate(self._links):
                gradient.add_point(motion, link, positions[:, k], forces[:, k])

        return excess, pullback


class Clearance:
    """Keeps capsules of different links apart: their surfaces by at least ``distance`` [m]."""

    def __init__(self, model: RobotModel, geometry: Geometry, distance: float) -> None:
        capsules, sides = geometry.capsules, ('start', 'end')
        ends = [fixed_point(model, each.frame, getattr(each, side)) for each in capsules for side in sides]
        self._links, self._ends = [link for link, _ in ends[::2]], FixedPoints(model, ends)
        self._pairs = np.reshape(geometry.pairs(model, distance), (-1, 2)).astype(int)
        self._needed = distance + np.array([each.radius for each in capsules])[self._pairs].sum(axis=1)
        self.bounds = tuple(
            _space_bound('clearance', f"'{capsules[i].frame}' from '{capsules[j].frame}'", distance, sign=-1.0)
            for i, j in self._pairs
        )

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see Constraint.

        The gradient of a distance is that of its closest points held fixed to their links: moving
        them along the segments changes the distance in second order only.
        """
        ends = self._ends.places(motion.poses)
        first, second = closest_points(*(ends[:, 2 * each + end] for each in self._pairs.T for end in (0, 1)))
        apart = first - second
        distance = np.sqrt(np.sum(apart * apart, axis=2) + 1e-18)
        excess = (self._needed - distance) / WORKSPACE_SCALE

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            for k, (i, j) in enumerate(self._pairs):
                touched = np.flatnonzero(weights[:, k])
                if not len(touched):
                    continue
                force = -weights[:, k, None] / WORKSPACE_SCALE * apart[:, k] / distance[:, k, None]
                gradient.add_point(motion, self._links[i], first[:, k], force)
                gradient.add_point(motion, self._links[j], second[:, k], -force)

        return excess, pullback


def workspace_box(model: RobotModel, frames: Sequence[str], lower: Sequence[float], upper: Sequence[float]) -> PointBox:
    """Return the limits that keep the origins of some frames inside a box in the base frame.

    The frames are links, attached frames, or 'tip'. The corners [m] have infinity, or are empty, where there is no
    wall.
    """
    low = np.array(lower if len(lower) else [-np.inf] * 3, dtype=float)
    high = np.array(upper if len(upper) else [np.inf] * 3, dtype=float)
    return PointBox(model, [(f"frame '{frame}'", frame, np.zeros(3), low, high) for frame in frames])


def ground_clearance(model: RobotModel, capsules: Sequence[Capsule], height: float, distance: float) -> PointBox:
    """Return the limits that keep moving capsules above the ground, at a height along the base frame's z axis [m].

    A capsule is above a plane when both ends of its segment are its radius above it, here by ``distance`` more. Ends
    whose height no joint changes are left out.
    """
    points = []
    poses = link_transforms(model, random_positions(model, 50))
    for capsule in capsules:
        link, _ = find_frame(model, capsule.frame)
        if link < 0:
            continue
        floor = np.array([-np.inf, -np.inf, height + distance + capsule.radius])
        ends = [capsule.start] if np.array_equal(capsule.start, capsule.end) else [capsule.start, capsule.end]
        heights = [reached[:, 2] for reached in capsule_ends(model, capsule, poses)]
        # Ends whose height is constant, as on a base that turns about the vertical, are left out.
        points += [
            (f"capsule of '{capsule.frame}'", capsule.frame, end, floor, np.full(3, np.inf))
            for end, height in zip(ends, heights, strict=False)
            if np.ptp(height) > 1e-9
        ]
    return PointBox(model, points)


def configured_geometry(model: RobotModel, config: ExcitationConfig) -> Geometry | None:
    """Return the capsules that the settings ask for: those of their file, or one along each link, or none."""
    if config.geometry:
        return load_geometry(config.geometry)
    return skeleton(model, config.link_radius) if config.link_radius > 0.0 else None


def workspace_constraints(model: RobotModel, config: ExcitationConfig) -> list[Constraint]:
    """Return the workspace, clearance and ground limits that the settings ask for."""
    result: list[Constraint] = []
    if config.workspace_frames:
        result.append(workspace_box(model, config.workspace_frames, config.workspace_lower, config.workspace_upper))
    geometry = configured_geometry(model, config)
    if geometry is not None:
        result.append(Clearance(model, geometry, config.clearance))
        if config.ground:
            result.append(ground_clearance(model, geometry.capsules, config.ground_height, config.clearance))
    elif config.ground:
        # without geometry the joints themselves and the tip stay above the ground
        floor = (-np.inf, -np.inf, config.ground_height + config.clearance)
        frames = [name for k, name in enumerate(model.link_names) if k > 0]
        result.append(workspace_box(model, [*frames, 'tip'], floor, ()))
    return result


_ACROSS = 12  # most capsules side by side: a plate 1 m wide is then covered with 3 to 4 cm to spare


def box_capsules(frame: str, pose: Array, size: Sequence[float]) -> list[Capsule]:
    """Return capsules that cover a box, side by side along its longest edge.

    Each covers a bar of the cross-section w x h by a radius of half its diagonal. No point of a capsule is further than
    that radius from the box. ``pose``, shape (4, 4), is of its middle in the frame that it is fixed to, ``size`` holds
    its edges along x, y and z [m].
    """
    edges = np.array(size, dtype=float)
    if edges.shape != (3,) or not (np.isfinite(edges) & (edges > 0.0)).all():
        raise ExcitationError(f'box: expected three edges above 0 [m], got {[float(x) for x in edges]}')
    thin, wide, long = np.argsort(edges, kind='stable')
    cell = max(edges[wide] / _ACROSS, edges[thin] / 2.0)
    counts = {k: int(np.ceil(edges[k] / cell - 1e-9)) for k in (thin, wide)}
    step = {k: edges[k] / counts[k] for k in counts}
    radius = 0.5 * float(np.hypot(*step.values()))
    half = np.zeros(3)
    half[long] = edges[long] / 2.0
    capsules = []
    for i in range(counts[thin]):
        for j in range(counts[wide]):
            middle = np.zeros(3)
            middle[thin] = (i + 0.5) * step[thin] - edges[thin] / 2.0
            middle[wide] = (j + 0.5) * step[wide] - edges[wide] / 2.0
            ends = [pose[:3, :3] @ point + pose[:3, 3] for point in (middle - half, middle + half)]
            capsules.append(Capsule(frame=frame, start=ends[0], end=ends[1], radius=radius))
    return capsules


def cylinder_capsules(frame: str, pose: Array, height: float, radius: float) -> list[Capsule]:
    """Return capsules that cover a cylinder along the z axis of a pose: one, or those of its box where it is flat.

    See :func:`box_capsules`. A height of 0 makes a sphere.
    """
    if not (radius > 0.0 and height >= 0.0 and np.isfinite([radius, height]).all()):
        raise ExcitationError(f'cylinder or sphere: expected a radius above 0 [m], got {radius:g}, height {height:g}')
    if 0.0 < height < 2.0 * radius:
        return box_capsules(frame, pose, (2.0 * radius, 2.0 * radius, height))
    up = 0.5 * height * pose[:3, 2]
    return [Capsule(frame=frame, start=pose[:3, 3] - up, end=pose[:3, 3] + up, radius=radius)]


def with_obstacles(
    model: RobotModel, config: ExcitationConfig, obstacles: Sequence[Capsule], path: str | Path
) -> ExcitationConfig:
    """Return settings whose geometry is that of the arm and the obstacles, written to a file for them.

    Raises an ExcitationError if the settings do not say how thick the arm is, or the file cannot be written.
    """
    if not obstacles:
        return config
    geometry = configured_geometry(model, config)
    if geometry is None:
        raise ExcitationError(
            'there are obstacles around the arm, but how thick it is is not said: set link_radius, or geometry'
        )
    entries = [
        {'link': each.frame, 'from': each.start.tolist(), 'to': each.end.tolist(), 'radius': each.radius}
        for each in (*geometry.capsules, *obstacles)
    ]
    content = {'capsules': entries, 'ignore': [sorted(pair) for pair in geometry.ignored]}
    write_text(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None))
    return replace(config, geometry=str(path))
