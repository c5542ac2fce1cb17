# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Capsules as the geometry of an arm's links, and distances between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.reading import read_yaml, refusing

_ALWAYS = 0.95  # share of poses in which a pair is close by construction
_POSES = 400  # random ones for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Capsule:
    """All points within a radius of a line segment that is fixed to a frame; a sphere if the ends meet.

    Attributes
    ----------
    frame : str
        A link of the robot, the base, or 'tip'.
    start, end : ndarray, shape (3,)
        Ends of the segment in that frame [m].
    radius : float
        [m]
    """

    frame: str
    start: Array
    end: Array
    radius: float

    def __post_init__(self) -> None:
        for name in ('start', 'end'):
            object.__setattr__(self, name, frozen_array(getattr(self, name), f'capsule {name}', (3,), ExcitationError))
        if not self.radius > 0.0:
            raise ExcitationError(f"capsule of '{self.frame}': expected a positive radius [m], got {self.radius:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Capsules and which pairs of them have to stay apart.

    Attributes
    ----------
    capsules : tuple of Capsule
    ignored : frozenset of frozenset of str
        Pairs of frames whose capsules may touch.
    """

    capsules: tuple[Capsule, ...]
    ignored: frozenset[frozenset[str]] = field(default_factory=frozenset)

    def pairs(self, model: RobotModel, distance: float = 0.0) -> list[tuple[int, int]]:
        """Return the pairs of capsules to keep apart.

        Capsules of the same link, of neighbouring links and of ignored pairs are left out, and so
        are pairs that are closer than ``distance`` [m] in 95 % of all poses, as by construction.

        Raises
        ------
        ExcitationError
            If a frame is not one of the robot's.
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
    span = np.where([kind == 'revolute' for kind in model.joint_types], np.pi, 1.0)
    low, high = np.maximum(limits.lower, -span), np.minimum(limits.upper, span)
    low, high = np.minimum(low, high), np.maximum(low, high)
    drawn: Array = np.random.default_rng(0).uniform(low, high, (count, model.n))
    return drawn


def find_frame(model: RobotModel, name: str) -> tuple[int, Array]:
    """Return the moving link a frame is fixed to (-1 for the base), and its placement in that link."""
    if name == model.base_name:
        return -1, np.eye(4)
    for k, link in enumerate(model.link_names):
        if name == link:
            return k, np.eye(4)
    for k, group in enumerate(model.attached):
        for attached in group:
            if name == attached.name:
                return k, attached.placement
    if name in ('tip', model.tip_name):
        return model.n - 1, model.tip
    known = [model.base_name, *model.link_names, *(a.name for group in model.attached for a in group), 'tip']
    raise ExcitationError(f"frame '{name}' is not one of the robot's; it has: {', '.join(dict.fromkeys(known))}")


def capsule_ends(model: RobotModel, capsule: Capsule, poses: Array) -> tuple[Array, Array]:
    """Return both ends of a capsule in the base frame, (N, 3) each [m], at poses (N, n, 4, 4) of the links."""
    link, placement = find_frame(model, capsule.frame)
    ends = []
    for point in (capsule.start, capsule.end):
        local = placement[:3, :3] @ point + placement[:3, 3]
        moved = poses[:, link, :3, :3] @ local + poses[:, link, :3, 3] if link >= 0 else np.tile(local, (len(poses), 1))
        ends.append(moved)
    return ends[0], ends[1]


def closest_points(start1: Array, end1: Array, start2: Array, end2: Array) -> tuple[Array, Array]:
    """Return the closest points of N pairs of line segments, one on each.

    Parameters
    ----------
    start1, end1, start2, end2 : ndarray, shape (N, 3)
        Ends of the segments [m]; a segment may be a point.

    Returns
    -------
    first, second : ndarray, shape (N, 3)

    Notes
    -----
    Source: Ericson, "Real-Time Collision Detection", 2005, section 5.1.9.
    """
    along1, along2, between = end1 - start1, end2 - start2, start1 - start2
    pairs = ((along1, along1), (along2, along2), (along1, along2), (along1, between), (along2, between))
    a, e, b, c, f = (np.einsum('ij,ij->i', *pair) for pair in pairs)
    tiny = 1e-16
    safe_a, safe_e = np.maximum(a, tiny), np.maximum(e, tiny)
    denominator = a * e - b * b
    parallel = denominator <= 1e-12 * safe_a * safe_e
    s = np.where(parallel, 0.0, np.clip((b * f - c * e) / np.where(parallel, 1.0, denominator), 0.0, 1.0))
    s = np.where(e <= tiny, np.clip(-c / safe_a, 0.0, 1.0), s)  # the second one is a point
    t = (b * s + f) / safe_e
    s = np.where(t < 0.0, np.clip(-c / safe_a, 0.0, 1.0), np.where(t > 1.0, np.clip((b - c) / safe_a, 0.0, 1.0), s))
    t = np.clip(t, 0.0, 1.0)
    return start1 + s[:, None] * along1, start2 + t[:, None] * along2


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

    The file has ``capsules:`` with entries ``{link, from: [x, y, z], to: [x, y, z], radius}``,
    ``spheres:`` with entries ``{link, centre: [x, y, z], radius}`` and ``ignore:``, a list of pairs
    of links; lengths in m, points in the link's frame. All three are optional.

    Raises
    ------
    ExcitationError
        If the file cannot be read or an entry is not as described.
    """
    content = read_yaml(path, 'geometry', ExcitationError)
    with refusing(f'geometry {path}', ExcitationError):
        return _geometry(content, path)


def _geometry(content: Any, path: str | Path) -> Geometry:
    if not isinstance(content, Mapping) or not set(content) <= {'capsules', 'spheres', 'ignore'}:
        raise ExcitationError(f"geometry {path}: expected 'capsules', 'spheres' and 'ignore' at the top")
    for key, value in content.items():
        if value is not None and not isinstance(value, list):
            raise ExcitationError(f"geometry {path}: expected a list under '{key}', got {value!r:.40}")
    capsules = [_capsule(entry, ('link', 'from', 'to', 'radius'), path) for entry in content.get('capsules') or ()]
    capsules += [
        _capsule(entry, ('link', 'centre', 'centre', 'radius'), path) for entry in content.get('spheres') or ()
    ]
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
