# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A motion in space: the path of the tip, the room that is left along it, and what is kept clear of."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import JointRanges
from robotid_ros.excitation.motion import Motion
from robotid_ros.excitation.preparation import design_limits
from robotid_ros.excitation.workspace import Capsule, configured_geometry, fixed_point, workspace_constraints
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacePicture:
    """What is drawn of a motion at N instants; in the base frame where nothing else is said."""

    path: Array  # shape (N, 3): of the tip [m]
    # shape (N,): what is left to the nearest bound of the workspace, beyond the clearance asked for; infinite without
    # any [m]
    room: Array
    # the bound that comes nearest over the motion and its room; the joint limit that does and its share. Empty where
    # there is none.
    closest: str
    limit: str
    # of links, by the name of the moving link, and of the base: obstacles are among these
    capsules: tuple[Capsule, ...]


def space_picture(
    model: RobotModel, config: ExcitationConfig, position: Array, velocity: Array, acceleration: Array
) -> SpacePicture:
    """Return the picture of a motion, shapes (N, n) [rad, rad/s, rad/s^2, or m and so on].

    Raises an ExcitationError if the geometry of the settings cannot be read.
    """
    zero = np.zeros_like(position)
    motion = Motion(model, (position, velocity, acceleration, zero))
    path = (motion.poses[:, -1] @ model.tip)[:, :3, 3]
    constraints = workspace_constraints(model, config)
    bounds = [bound for each in constraints for bound in each.bounds]
    room, closest = np.full(len(path), np.inf), ''
    if bounds:
        left = np.hstack([each.evaluate(motion)[0] for each in constraints]) * -np.array([b.scale for b in bounds])
        room = left.min(axis=1)
        least = left.min(axis=0)
        closest = f'{bounds[int(least.argmin())].label}: {1e3 * least.min():.0f} mm left'
    ranges = JointRanges(model, design_limits(model, config))
    limit = ''
    if ranges.bounds:
        share = 1.0 + ranges.evaluate(motion)[0].max(axis=0)
        limit = f'{ranges.bounds[int(share.argmax())].label}: {100.0 * share.max():.0f} % used'
    geometry = configured_geometry(model, config)
    capsules = []
    for each in () if geometry is None else geometry.capsules:  # in the frame of the moving link, or of the base
        (link, start), (_, end) = (fixed_point(model, each.frame, point) for point in (each.start, each.end))
        frame = model.base_name if link < 0 else model.link_names[link]
        capsules.append(Capsule(frame=frame, start=start, end=end, radius=each.radius))
    return SpacePicture(path=path, room=room, closest=closest, limit=limit, capsules=tuple(capsules))
