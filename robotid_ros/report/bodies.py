# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The bodies of an arm as triangles: shapes and meshes of its URDF, or capsules along its links."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.errors import ExcitationError, MissingDependencyError
from robotid_ros.excitation.workspace import Capsule, Geometry, find_frame, skeleton
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_tree import origin_of, parse_urdf

_MOST_FACES = 3000  # of a link; the page moves all of them for every picture
_SLENDER = 0.05  # radius of a capsule over the length of the arm, where nothing says how thick it is


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """Triangles that move with one link.

    ``link`` is the number of the moving link, -1 for the base; ``vertices``, shape (V, 3), are in its frame [m], and
    ``faces``, shape (F, 3), are their indices.
    """

    name: str
    link: int
    vertices: Array
    faces: IntArray


def arm_bodies(model: RobotModel, folder: Path | None = None) -> tuple[tuple[Body, ...], tuple[str, ...]]:
    """Return the bodies of an arm, and what to know about them.

    The visual elements of the URDF are drawn; where the mesh of one cannot be read, the collision elements of that
    link; where these cannot either, or there is no URDF, a capsule from the link's joint to the next. Meshes are looked
    for in the URDF's folder, in those above, and in the sourced ROS packages. A MissingDependencyError says that
    trimesh is not installed.
    """
    bodies: list[Body] = []
    notes: list[str] = []
    for name, link, placement, element in _links(model):
        failed = ''
        for kind in ('visual', 'collision'):
            try:
                pieces = [_piece(item, placement, folder) for item in element.findall(kind)]
            except (OSError, ValueError, ImportError, KeyError) as cause:
                failed = failed or ' '.join(str(cause).split())
                continue
            if pieces:
                vertices, faces = _trimesh().util.append_faces(*zip(*pieces, strict=True))
                bodies.append(Body(name=name, link=link, vertices=vertices, faces=faces))
                break
        else:
            if failed:
                notes.append(f"the mesh of '{name}' could not be read ({failed})")
    shown = {body.link for body in bodies}
    missing = [
        capsule
        for capsule in skeleton(model, _SLENDER * _length(model)).capsules
        if find_frame(model, capsule.frame)[0] not in shown and np.linalg.norm(capsule.end) > 0.0
    ]
    if missing:
        notes.append(f'capsules stand for {", ".join(capsule.frame for capsule in missing)}')
    return (*bodies, *capsule_bodies(model, Geometry(capsules=tuple(missing)))), tuple(notes)


def capsule_bodies(model: RobotModel, geometry: Geometry) -> tuple[Body, ...]:
    """Return capsules as triangles."""
    return tuple(_capsule(model, capsule) for capsule in geometry.capsules)


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError as cause:
        raise MissingDependencyError.of('trimesh', 'plot', 'draw an arm') from cause
    return trimesh


def _length(model: RobotModel) -> float:
    """Return the length of the arm when all links lie in one line [m]."""
    return float(np.linalg.norm(model.placements[:, :3, 3], axis=1).sum() + np.linalg.norm(model.tip[:3, 3])) or 1.0


def _links(model: RobotModel) -> Iterator[tuple[str, int, Array, ElementTree.Element]]:
    """Yield the links of the URDF, each with the moving link it belongs to and its placement in that.

    Joints outside the chain stand at zero.
    """
    if model.source is None:
        return
    root = ElementTree.fromstring(model.source)
    above = {joint.child: (joint.parent, joint.origin) for joint in parse_urdf(model.source).joints.values()}
    for element in root.findall('link'):
        name, placement = str(element.get('name')), np.eye(4)
        frame: str | None = name
        while frame is not None:
            try:
                link, place = find_frame(model, frame)
            except ExcitationError:
                frame, step = above.get(frame, (None, placement))
                placement = step @ placement
                continue
            yield name, link, place @ placement, element
            break


def _piece(element: ElementTree.Element, placement: Array, folder: Path | None) -> tuple[Array, IntArray]:
    """Return the triangles of one visual or collision element in the frame of the moving link."""
    trimesh = _trimesh()
    geometry = element.find('geometry')
    if geometry is None or len(geometry) == 0:
        raise ValueError('no geometry')
    shape = geometry[0]
    numbers = {key: [float(x) for x in value.split()] for key, value in shape.attrib.items() if key != 'filename'}
    if shape.tag == 'box':
        mesh = trimesh.creation.box(extents=numbers['size'])
    elif shape.tag == 'sphere':
        mesh = trimesh.creation.icosphere(subdivisions=2, radius=numbers['radius'][0])
    elif shape.tag in ('cylinder', 'capsule'):
        make = getattr(trimesh.creation, shape.tag)
        mesh = make(height=numbers['length'][0], radius=numbers['radius'][0])
        mesh.apply_translation(-mesh.bounds.mean(axis=0))  # trimesh's capsules have had their origin at one end
    elif shape.tag == 'mesh':
        mesh = trimesh.load(_mesh_file(str(shape.get('filename')), folder), force='mesh')
        mesh.apply_scale(numbers.get('scale', [1.0, 1.0, 1.0]))
    else:
        raise ValueError(f"unknown geometry '{shape.tag}'")
    vertices, faces = _reduced(np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64))
    moved = placement @ origin_of(element, element.tag)
    return vertices @ moved[:3, :3].T + moved[:3, 3], faces


def _mesh_file(name: str, folder: Path | None) -> Path:
    """Return where the file of a mesh lies."""
    package, _, inside = (
        name.removeprefix('package://').partition('/') if name.startswith('package://') else ('', '', '')
    )
    plain = Path(name.removeprefix('file://'))
    above = [] if folder is None else [folder, *folder.parents][:6]
    if not package:
        found = [plain] if plain.is_absolute() else [place / plain for place in above[:1]]
    else:
        prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
        found = [place / package / inside for place in above]
        found += [place / inside for place in above if place.name == package]
        found += [Path(prefix) / 'share' / package / inside for prefix in prefixes if prefix]
        found += [
            Path(each) / package / inside for each in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep) if each
        ]
    for path in found:
        if path.is_file():
            return path
    raise FileNotFoundError(f'{name} was not found')


def _reduced(vertices: Array, faces: IntArray) -> tuple[Array, IntArray]:
    """Return fewer triangles of the same shape: vertices in one cell of a grid become one, at their mean."""
    cells = 64
    while len(faces) > _MOST_FACES and cells > 4:
        size = float(np.ptp(vertices, axis=0).max()) / cells
        _, first, group = np.unique(
            np.floor(vertices / size).astype(np.int64), axis=0, return_index=True, return_inverse=True
        )
        group = group.reshape(-1)
        counts = np.bincount(group, minlength=len(first))
        means = np.stack([np.bincount(group, vertices[:, k], len(first)) / counts for k in range(3)], axis=1)
        joined = group[faces]
        apart = (joined[:, 0] != joined[:, 1]) & (joined[:, 1] != joined[:, 2]) & (joined[:, 2] != joined[:, 0])
        _, kept = np.unique(np.sort(joined[apart], axis=1), axis=0, return_index=True)
        if len(kept) <= _MOST_FACES:
            return means, joined[apart][kept]
        cells = int(cells / 1.3)
    return vertices, faces


def _capsule(model: RobotModel, capsule: Capsule) -> Body:
    trimesh = _trimesh()
    along = capsule.end - capsule.start
    length = float(np.linalg.norm(along))
    mesh = trimesh.creation.capsule(height=max(length, 1e-6), radius=capsule.radius, count=[12, 12])
    link, placement = find_frame(model, capsule.frame)
    turn = np.eye(4) if length == 0.0 else trimesh.geometry.align_vectors([0.0, 0.0, 1.0], along)
    middle = np.asarray(mesh.vertices) - mesh.bounds.mean(axis=0)
    vertices = middle @ turn[:3, :3].T + 0.5 * (capsule.start + capsule.end)
    placed = vertices @ placement[:3, :3].T + placement[:3, 3]
    return Body(name=capsule.frame, link=link, vertices=placed, faces=np.asarray(mesh.faces, dtype=np.int64))
