# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Obstacles: capsules that cover boxes and cylinders, and the objects of MoveIt's planning scene in the graph."""

from pathlib import Path

import numpy as np
import pytest
from excitation_helpers import ur10e

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.excitation.workspace import (
    box_capsules,
    capsule_ends,
    closest_points,
    configured_geometry,
    cylinder_capsules,
    with_obstacles,
)
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import rotation_of_vector


def outside(points: np.ndarray, capsules) -> np.ndarray:
    """Return how far points, shape (N, 3), are from the nearest capsule's surface, negative within."""
    apart = []
    for each in capsules:
        start, end = (np.tile(x, (len(points), 1)) for x in (each.start, each.end))
        first, second = closest_points(points, points, start, end)
        apart.append(np.linalg.norm(first - second, axis=1) - each.radius)
    return np.min(apart, axis=0)


def placed(rng: np.random.Generator) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation_of_vector(rng.normal(size=3)), rng.normal(size=3)
    return pose


@pytest.mark.parametrize('seed', range(20))
def test_every_point_of_a_box_is_covered_and_no_capsule_sticks_out_by_more_than_its_radius(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, pose = 10.0 ** rng.uniform(-2.0, 0.5, 3), placed(rng)
    capsules = box_capsules('base', pose, size)
    corners = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
    inside = np.concatenate([corners, rng.uniform(-0.5, 0.5, (500, 3))]) * size
    assert outside(inside @ pose[:3, :3].T + pose[:3, 3], capsules).max() <= 1e-9
    assert len(capsules) <= 24
    for each in capsules:  # the segment is in the box, so its surface is a radius away at most
        for end in (each.start, each.end):
            assert (np.abs(pose[:3, :3].T @ (end - pose[:3, 3])) <= 0.5 * size + 1e-9).all()
    spare = max(each.radius for each in capsules)
    assert spare <= 0.71 * max(np.sort(size)[1] / 12.0, np.sort(size)[0] / 2.0) + 1e-9


@pytest.mark.parametrize('seed', range(20))
def test_every_point_of_a_cylinder_is_covered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, radius, pose = *(10.0 ** rng.uniform(-2.0, 0.5, 2)), placed(rng)
    angle, r = rng.uniform(0.0, 2.0 * np.pi, 500), radius * np.sqrt(rng.uniform(0.0, 1.0, 500))
    points = np.stack([r * np.cos(angle), r * np.sin(angle), height * rng.uniform(-0.5, 0.5, 500)], axis=1)
    capsules = cylinder_capsules('base', pose, height, radius)
    assert outside(points @ pose[:3, :3].T + pose[:3, 3], capsules).max() <= 1e-9


@pytest.mark.parametrize('bad', [(0.0, 1.0, 1.0), (1.0, 1.0), (1.0, np.nan, 1.0)])
def test_a_box_without_three_edges_is_refused(bad) -> None:
    with pytest.raises(ExcitationError, match='expected three edges'):
        box_capsules('base', np.eye(4), bad)


@pytest.mark.slow
def test_a_design_keeps_clear_of_a_box(tmp_path: Path) -> None:
    """The arm's own way without the box goes through it."""
    model = ur10e()
    config = ExcitationConfig(link_radius=0.06, ground=True, period=4.0, harmonics=3, starts=1, iterations=20, seed=1)
    free = optimize_excitation(model, config)
    tip = (link_transforms(model, free.trajectory.position(np.linspace(0.0, 4.0, 200)))[:, -1] @ model.tip)[:, :3, 3]
    box = np.eye(4)
    box[:3, 3] = tip[np.linalg.norm(tip[:, :2], axis=1).argmax()]
    obstacles = box_capsules(model.base_name, box, (0.2, 0.2, 0.2))
    around = with_obstacles(model, config, obstacles, tmp_path / 'scene.yaml')
    assert Path(around.geometry).is_file()
    geometry = configured_geometry(model, around)
    assert len(geometry.capsules) == model.n + 1 + len(obstacles)

    def nearest(design) -> float:
        poses = link_transforms(model, design.trajectory.position(np.linspace(0.0, 4.0, 2000)))
        gaps = []
        for own in configured_geometry(model, config).capsules[2:]:
            for other in obstacles:
                points = closest_points(*capsule_ends(model, own, poses), *capsule_ends(model, other, poses))
                gaps.append((np.linalg.norm(points[0] - points[1], axis=1) - own.radius - other.radius).min())
        return min(gaps)

    assert nearest(free) < 0.0
    assert nearest(optimize_excitation(model, around)) >= around.clearance - 1e-6


def test_obstacles_around_an_arm_of_unknown_thickness_are_refused(tmp_path: Path) -> None:
    model = ur10e()
    with pytest.raises(ExcitationError, match='set link_radius, or geometry'):
        with_obstacles(model, ExcitationConfig(), box_capsules('base', np.eye(4), (1, 1, 1)), tmp_path / 'x.yaml')
    assert with_obstacles(model, ExcitationConfig(), [], tmp_path / 'x.yaml') == ExcitationConfig()
