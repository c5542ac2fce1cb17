# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Forward kinematics against Pinocchio and closed forms."""

import numpy as np
import pytest

from robotid_ros.model import RobotModel
from robotid_ros.model.kinematics import link_transforms, tip_transforms
from robotid_ros.model.transforms import rpy_of_rotation, rpy_rotation

CHAIN = """<robot name="mixed"><link name="base"/><link name="a"/><link name="b"/><link name="c"/><link name="flange"/>
<joint name="turn" type="revolute"><parent link="base"/><child link="a"/><origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.5"/>
<axis xyz="0 1 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<joint name="slide" type="prismatic"><parent link="a"/><child link="b"/><origin xyz="0 0.1 0" rpy="1 0 0"/>
<axis xyz="1 0 2"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<joint name="spin" type="continuous"><parent link="b"/><child link="c"/><origin xyz="0 0 0.4" rpy="0 1 0.1"/>
<axis xyz="0 0 1"/><limit velocity="1" effort="1"/></joint>
<joint name="mount" type="fixed"><parent link="c"/><child link="flange"/><origin xyz="0 0 0.2" rpy="0 0.4 0"/></joint>
</robot>"""


@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_poses_equal_pinocchio() -> None:
    pin = pytest.importorskip('pinocchio', reason='needs pin')
    model = RobotModel.from_urdf(CHAIN, tip='flange')
    reference = pin.buildModelFromXML(CHAIN)
    data = reference.createData()
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 3))
    poses, tips = link_transforms(model, q), tip_transforms(model, q)
    frame = reference.getFrameId('flange')
    for k in range(5):
        configuration = np.array([q[k, 0], q[k, 1], np.cos(q[k, 2]), np.sin(q[k, 2])])
        pin.forwardKinematics(reference, data, configuration)
        pin.updateFramePlacements(reference, data)
        for i in range(3):
            assert poses[k, i] == pytest.approx(data.oMi[i + 1].homogeneous, abs=1e-12)
        assert tips[k] == pytest.approx(data.oMf[frame].homogeneous, abs=1e-12)


def test_planar_arm_reaches_where_the_closed_form_says() -> None:
    model = RobotModel.from_dh([(0.0, 0.0, 0.5, 0.0), (0.0, 0.0, 0.3, 0.0)])
    q = np.random.default_rng(1).uniform(-3.0, 3.0, (7, 2))
    tip = tip_transforms(model, q)[:, :2, 3]
    total = q.sum(axis=1)
    expected = 0.5 * np.stack([np.cos(q[:, 0]), np.sin(q[:, 0])], 1) + 0.3 * np.stack([np.cos(total), np.sin(total)], 1)
    assert tip == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize('rpy', [(0.3, -0.2, 2.0), (-3.0, 1.5, 0.1), (0.0, np.pi / 2, 0.7), (0.0, -np.pi / 2, -0.4)])
def test_rpy_of_rotation_inverts_rpy_rotation(rpy: tuple[float, float, float]) -> None:
    rotation = rpy_rotation(*rpy)
    assert rpy_rotation(*rpy_of_rotation(rotation)) == pytest.approx(rotation, abs=1e-12)
