# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Edits of a URDF's text change the numbers asked for and nothing else."""

from xml.etree import ElementTree

import numpy as np
import pytest
from errors_helpers import refused

from robotid_ros.errors import ModelError
from robotid_ros.model.inertia import inertial_parameters, split_inertial_parameters
from robotid_ros.model.transforms import rpy_rotation, translation
from robotid_ros.model.urdf_edit import edited_urdf

URDF = """<?xml version="1.0"?>
<!-- bench arm, mass > guess -->
<robot name="édge">
  <link name="base"/>
  <link name="arm">
    <!-- from the drawing -->
    <inertial>
      <mass value='2.0'/>  <!-- weighed -->
      <origin rpy="0.1 0.2 0.3" xyz="0.1 0 0"/>
      <inertia ixx="1" ixy="0" ixz="0"
               iyy="1" iyz="0" izz="1" />
    </inertial>
    <visual name="a > b"><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <link name="hand"></link>
  <joint name="j1" type="revolute">
    <parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/>
  </joint>
  <joint name="j2" type="revolute"><parent link="arm"/><child link="hand"/><origin xyz="1 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="1"/><dynamics damping="0.1" note="kept"/></joint>
</robot>
"""


def _body(rng: np.random.Generator) -> np.ndarray:
    half = rng.normal(size=(3, 3))
    sigma = half @ half.T + 0.1 * np.eye(3)
    return inertial_parameters(rng.uniform(1, 5), rng.normal(size=3), np.trace(sigma) * np.eye(3) - sigma)


def test_new_inertials_are_read_by_an_independent_parser() -> None:
    pin = pytest.importorskip('pinocchio', reason='needs pin')
    rng = np.random.default_rng(3)
    wanted = {'base': _body(rng), 'arm': _body(rng), 'hand': _body(rng)}
    edited = edited_urdf(URDF, inertials=wanted)
    model = pin.buildModelFromXML(edited)
    for joint, link in ((1, 'arm'), (2, 'hand')):
        mass, com, tensor = split_inertial_parameters(wanted[link])
        body = model.inertias[joint]
        assert body.mass == pytest.approx(mass, rel=1e-14)
        assert body.lever == pytest.approx(com, rel=1e-12)
        assert body.inertia == pytest.approx(tensor, rel=1e-10, abs=1e-12)


def test_everything_else_survives_to_the_letter() -> None:
    edited = edited_urdf(URDF, inertials={'arm': _body(np.random.default_rng(4))})
    changed = [(a, b) for a, b in zip(URDF.splitlines(), edited.splitlines(), strict=True) if a != b]
    assert len(changed) == 4  # mass, origin and the two lines of the inertia
    assert '<!-- weighed -->' in edited
    assert all(old.split('=')[0] == new.split('=')[0] for old, new in changed)


def test_origins_and_dynamics_are_set_or_added() -> None:
    pin = pytest.importorskip('pinocchio', reason='needs pin')
    transform = translation([0.1, -0.2, 0.3]) @ rpy_rotation(0.4, -0.5, 0.6)
    dynamics = {'j1': (0.5, 1.5), 'j2': (0.25, 0.75)}
    edited = edited_urdf(URDF, origins={'j1': transform, 'j2': transform}, dynamics=dynamics)
    model = pin.buildModelFromXML(edited)
    for k in (1, 2):
        assert model.jointPlacements[k].homogeneous == pytest.approx(transform, abs=1e-15)
    dynamics = {e.get('name'): e.find('dynamics') for e in ElementTree.fromstring(edited.encode()).findall('joint')}
    assert dynamics['j1'].attrib == {'damping': '0.5', 'friction': '1.5'}
    assert dynamics['j2'].attrib == {'damping': '0.25', 'note': 'kept', 'friction': '0.75'}


def test_no_edit_returns_the_same_text() -> None:
    assert edited_urdf(URDF, inertials={}) == URDF


@pytest.mark.parametrize(
    ('call', 'name', 'expected'),
    [
        (lambda: edited_urdf(URDF, inertials={'leg': np.zeros(10)}), 'leg', ('base', 'arm', 'hand')),
        (lambda: edited_urdf(URDF, origins={'j9': np.eye(4)}), 'j9', ('j1', 'j2')),
        (lambda: edited_urdf('<robot><link', origins={}), None, None),
    ],
)
def test_bad_input_is_named(call, name, expected) -> None:
    with refused(ModelError, name=name, expected=expected):
        call()
