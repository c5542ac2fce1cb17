# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The bench of wrong set-ups: of a simulated arm each kind is what it says, and is named."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identification_helpers import UR10E, dataset, fourier_motion, pinocchio_torque

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmark.recordings import Pair
from benchmark.wrong_setups import KINDS, Maker, Wrong
from robotid_ros.data import Dataset
from robotid_ros.errors import ModelWarning
from robotid_ros.identification.setup import Finding
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.model import RobotModel

with pytest.warns(ModelWarning, match='joints held at zero'):
    ARM = RobotModel.from_urdf(UR10E, joints=RobotModel.from_urdf(UR10E).joint_names[:3])


def recorded(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    motion = fourier_motion(3, rng, size=0.8, seconds=12.0)
    friction = np.array([8.0, 10.0, 6.0]) * (np.sign(motion[2]) + 0.5 * motion[2])
    return dataset(ARM, motion, pinocchio_torque(ARM, *motion[1:]) + friction)


PAIR = Pair(name='simulated', urdf=UR10E, model=ARM, training=[recorded(0)], held_out=[recorded(1)])


@pytest.mark.parametrize('kind', ['as recorded', *KINDS])
def test_each_kind_of_wrong_set_up_is_made_and_named(kind: str) -> None:
    wrong = Maker(PAIR, np.random.default_rng(3)).make(kind)
    assert wrong is not None
    assert wrong.kind == kind
    setup, _ = find_setup(wrong.pair.training, wrong.pair.model)
    assert wrong.named(setup), setup.findings
    # What is recorded next is recorded alike; a payload is taken up once.
    assert (wrong.pair.held_out[0] is PAIR.held_out[0] or wrong.pair.model is not ARM) == (
        kind in ('as recorded', 'gravity', 'change')
    )
    assert not Wrong('as recorded' if kind != 'as recorded' else 'zero', ('elbow_joint',), PAIR).named(setup)
    # What a recording has of its own neither names a wrong set-up nor spoils it.
    assert wrong.named(setup, setup.findings) == (kind == 'as recorded')
    beside = Finding(kind='drives', joints=ARM.joint_names[:2], text='', remedy='')
    other = replace(setup, findings=(beside, *setup.findings))
    assert wrong.named(other, [beside])
    assert wrong.named(other) == (bool(setup.findings) and not wrong.joints)
