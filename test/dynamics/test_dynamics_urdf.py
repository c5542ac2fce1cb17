# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Reading URDFs: what is refused, what is warned of, what is lumped, locked and scaled."""

import itertools
import warnings

import numpy as np
import pytest
from dynamics_helpers import ARMS, PinocchioArm, arm, motion
from errors_helpers import refused

from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import ModelError, ModelWarning
from robotid_ros.model import RobotModel

SOUND = '<mass value="2"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/>'
LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="50"/>'


def link(name: str, inertial: str = SOUND) -> str:
    return f'<link name="{name}"><inertial><origin xyz="0.1 0.02 0.3" rpy="0.1 0.2 0.3"/>{inertial}</inertial></link>'


def joint(name: str, parent: str, child: str, kind: str = 'revolute', extra: str = LIMIT, axis: str = '0 1 0') -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0 0.2" rpy="0.3 -0.2 0.1"/><axis xyz="{axis}"/>{extra}</joint>'
    )


def urdf(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


TWO = (link('base'), link('a'), link('b'), joint('j1', 'base', 'a'), joint('j2', 'a', 'b', axis='1 0 0'))


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('<robot name="r"><link', 'not well-formed'),
        ('<sdf/>', 'must have <robot>'),
        (urdf(), 'no links'),
        (urdf(link('base')), 'no moving joint'),
        (urdf(link('base'), link('a'), joint('f', 'base', 'a', 'fixed')), 'no moving joint'),
        (
            urdf(*TWO, link('c'), link('d'), joint('k', 'base', 'c'), joint('l', 'c', 'd')),
            {'name': 'base', 'expected': ('b', 'd')},
        ),
        (urdf(*TWO, link('stray')), {'expected': 1, 'found': ('base', 'stray')}),
        (urdf(link('a'), link('b'), joint('x', 'a', 'b'), joint('y', 'b', 'a')), 'a closed loop'),
        (urdf(*TWO, link('c'), link('d'), joint('x', 'c', 'd'), joint('y', 'd', 'c')), {'found': ('c', 'd')}),
        (urdf(*TWO, joint('j3', 'base', 'b')), {'name': 'b', 'found': ('a', 'base')}),
        (urdf(*TWO, link('a')), {'name': 'a'}),
        (urdf(*TWO, link('c'), joint('j1', 'b', 'c')), {'name': 'j1'}),
        (urdf(*TWO, joint('j3', 'b', 'nowhere')), {'name': 'nowhere'}),
        (urdf(link('base'), link('a'), joint('j', 'base', 'a', 'hinge')), {'name': 'j', 'found': 'hinge'}),
        (urdf(*TWO, link('world'), joint('free', 'world', 'base', 'floating')), {'name': 'free', 'found': 'floating'}),
        (urdf(link('base'), link('a'), joint('j', 'base', 'a', axis='0 0 0')), {'name': 'j'}),
        (urdf(link('base'), link('a'), joint('j', 'base', 'a', axis='0 1')), {'expected': 3, 'found': '0 1'}),
        (urdf(link('base'), link('a'), joint('j', 'base', 'a', axis='0 nan 1')), {'expected': 3, 'found': '0 nan 1'}),
        (
            urdf(link('base'), link('a', SOUND.replace('"2"', '"-2"')), joint('j', 'base', 'a')),
            {'name': 'a', 'found': -2.0},
        ),
        (urdf(link('base'), link('a', '<inertia ixx="1"/>'), joint('j', 'base', 'a')), {'name': 'a'}),
        (urdf(link('base'), link('a'), joint('j', 'base', 'a', extra='<limit lower="1" upper="-1"/>')), 'exceeds'),
        (urdf(link('base'), link('a'), '<joint name="j" type="revolute"><parent link="base"/></joint>'), {'name': 'j'}),
        (urdf(*TWO, link('c'), joint('j3', 'b', 'c', extra='<mimic joint="j1"/>')), {'name': 'j3', 'found': 'j1'}),
    ],
    ids=itertools.count(),
)
def test_what_is_no_serial_arm_is_refused_by_name(text, message):
    about = message if isinstance(message, dict) else {}
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        with refused(ModelError, **about) as caught:
            RobotModel.from_urdf(text)
    assert isinstance(message, dict) or message in str(caught.value)


@pytest.mark.parametrize(
    ('options', 'about'),
    [
        ({'tip': 'elbow'}, {'name': 'elbow', 'expected': ('base', 'a', 'b')}),
        ({'base': 'elbow'}, {'name': 'elbow', 'expected': ('base', 'a', 'b')}),
        ({'base': 'b', 'tip': 'a'}, {'name': 'a', 'expected': 'b'}),
        ({'joints': ['j1', 'elbow']}, {'name': 'elbow', 'expected': ('j1', 'j2')}),
        ({'joints': []}, {'expected': ('j1', 'j2')}),
        ({'gravity': (0.0, 9.81)}, {'name': 'gravity', 'expected': (3,), 'found': (2,)}),
    ],
)
def test_a_wrong_choice_says_what_there_is(options, about):
    with refused(ModelError, **about):
        RobotModel.from_urdf(urdf(*TWO), **options)


def test_a_missing_file_and_a_macro_file_are_named(tmp_path):
    with refused(ModelError, file=str(tmp_path / 'arm.urdf')):
        RobotModel.from_urdf(tmp_path / 'arm.urdf')
    (tmp_path / 'arm.xacro').write_text('<robot/>')
    with refused(ModelError, file=str(tmp_path / 'arm.xacro')):
        RobotModel.from_urdf(tmp_path / 'arm.xacro')
    (tmp_path / 'photo.urdf').write_bytes(b'\xff\xd8\xff')
    with pytest.raises(ModelError, match='cannot be read'):
        RobotModel.from_urdf(tmp_path / 'photo.urdf')


@pytest.mark.parametrize(
    ('part', 'message'),
    [
        (link('b', '<mass value="0"/>'), "'b' .*'j2'.* has no mass"),
        (link('b', SOUND.replace('0.02', '-0.02')), "'b' .* not a physical body: the inertia .* not positive"),
        (link('b', SOUND.replace('0.02', '2.0')), "'b' .* break the triangle inequality"),
    ],
)
def test_a_link_that_cannot_be_is_warned_of(part, message):
    with pytest.warns(ModelWarning, match=message):
        RobotModel.from_urdf(urdf(*TWO[:2], part, *TWO[3:]))


def test_a_bad_link_is_not_hidden_by_a_heavy_one_it_is_fixed_to():
    tool = link('tool', SOUND.replace('0.02', '-0.0001').replace('"2"', '"0.01"'))
    with pytest.warns(ModelWarning, match="'tool' .*'j2'.* not a physical body"):
        RobotModel.from_urdf(urdf(*TWO, tool, joint('mount', 'b', 'tool', 'fixed')))


@pytest.mark.parametrize(
    ('extra', 'message'),
    [
        ('', "'j2' has no position, velocity, effort limit"),
        ('<limit lower="-1" upper="1" effort="5"/>', "'j2' has no velocity limit"),
        ('<limit velocity="1" effort="5"/>', "'j2' has no room to move"),
    ],
)
def test_missing_limits_are_warned_of(extra, message):
    with pytest.warns(ModelWarning, match=message):
        model = RobotModel.from_urdf(urdf(*TWO[:4], joint('j2', 'a', 'b', extra=extra)))
    assert model.n == 2


def test_a_sound_description_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        model = RobotModel.from_urdf(urdf(*TWO, link('flange'), joint('mount', 'b', 'flange', 'fixed')))
    assert model.joint_names == ('j1', 'j2')
    assert model.tip_name == 'b'
    np.testing.assert_allclose(model.inertial[:, 9], [2.0, 4.0])


def arm_of(count: int, name: str, parent: str) -> tuple[str, ...]:
    links = [parent, *(f'{name}_l{k}' for k in range(count))]
    return tuple(
        part for k in range(count) for part in (link(links[k + 1]), joint(f'{name}_j{k}', links[k], links[k + 1]))
    )


def test_the_arm_goes_on_past_a_head_to_its_hand():
    # as Sawyer's public description: the head turns on the first link, a hand with unequal fingers at the end
    hand = (*arm_of(3, 'thumb', 'arm_l5'), *arm_of(2, 'finger', 'arm_l5'))
    body = (link('base'), link('l0'), joint('j0', 'base', 'l0'), *arm_of(1, 'head', 'l0'), *arm_of(6, 'arm', 'l0'))
    with pytest.warns(
        ModelWarning, match='held at zero.*: finger_j0, .*head_j0, thumb_j0.*ends at link .arm_l5'
    ) as one:
        model = RobotModel.from_urdf(urdf(*body, *hand))
    assert len(one) == 1
    assert model.joint_names == ('j0', *(f'arm_j{k}' for k in range(6)))
    with pytest.warns(ModelWarning, match='held at zero.*: head_j0;'):
        assert RobotModel.from_urdf(urdf(*body)).joint_names == model.joint_names


def test_wheels_are_no_part_of_the_arm_and_of_two_arms_one_is_named():
    wheels = (*arm_of(1, 'left', 'base'), *arm_of(1, 'right', 'base'))
    with pytest.warns(ModelWarning, match="no part of the arm: left_j0, right_j0; the arm ends at link 'arm_l2'"):
        model = RobotModel.from_urdf(urdf(link('base'), *wheels, *arm_of(3, 'arm', 'base')))
    assert model.joint_names == ('arm_j0', 'arm_j1', 'arm_j2')
    torso = (link('base'), link('torso'), joint('lift', 'base', 'torso', 'prismatic'), *arm_of(1, 'head', 'torso'))
    both = urdf(*torso, *arm_of(3, 'a', 'torso'), *arm_of(3, 'b', 'torso'))
    with refused(ModelError, name='torso', expected=('a_l2', 'b_l2')):
        RobotModel.from_urdf(both)
    with pytest.warns(ModelWarning, match=r'held at zero.*: b_j0, b_j1, b_j2, head_j0$'):
        assert RobotModel.from_urdf(both, tip='a_l2').joint_names == ('lift', 'a_j0', 'a_j1', 'a_j2')


@pytest.mark.parametrize('wanted', [('b_j0', 'b_j1', 'b_j2'), ('lift', 'b_j2'), ('b_j1',), ('head_j0',)])
def test_of_two_arms_the_one_with_the_joints_that_are_wanted_is_taken(wanted):
    torso = (link('base'), link('torso'), joint('lift', 'base', 'torso', 'prismatic'), *arm_of(1, 'head', 'torso'))
    fingers = (*arm_of(1, 'left', 'b_l2'), *arm_of(1, 'right', 'b_l2'))
    both = urdf(*torso, *arm_of(3, 'a', 'torso'), *arm_of(3, 'b', 'torso'), *fingers)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)  # of the joints that are not
        model = RobotModel.from_urdf(both, joints=wanted)
    assert model.joint_names == wanted
    assert model.tip_name == ('head_l0' if wanted == ('head_j0',) else 'b_l2')


def test_mimic_joints_beside_the_chain_do_no_harm():
    finger = joint('finger', 'b', 'f1', 'prismatic')
    other = joint('other', 'b', 'f2', 'prismatic', LIMIT + '<mimic joint="finger"/>')
    hand = urdf(*TWO, link('f1'), link('f2'), finger, other)
    with pytest.warns(ModelWarning, match='held at zero.*finger, other'):
        model = RobotModel.from_urdf(hand)
    with pytest.warns(ModelWarning, match='held at zero.*finger, other'):  # recorded beside the arm, without the other
        assert RobotModel.from_urdf(hand, along=(*model.joint_names, 'finger')).joint_names == model.joint_names
    assert model.joint_names == ('j1', 'j2')


@pytest.mark.parametrize('kept', list(itertools.combinations(range(4), 2)))
def test_locked_joints_and_branches_are_lumped_as_in_pinocchio(kept):
    kinds = ('revolute', 'prismatic', 'continuous', 'revolute')
    axes = ('0 1 0', '0.6 0 0.8', '0 0 -1', '1 2 3')
    names = ['base', *(f'l{k}' for k in range(4))]
    chain = [joint(f'j{k}', names[k], names[k + 1], kinds[k], axis=axes[k]) for k in range(4)]
    side = [link('side'), link('hook'), joint('rail', 'l1', 'side', 'fixed'), joint('swing', 'side', 'hook')]
    text = urdf(*(link(name) for name in names), *chain, *side)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(text, tip='l3', joints=[f'j{k}' for k in kept])
    q, dq, ddq = motion(2, 6)
    expected = PinocchioArm(model).inverse_dynamics(q, dq, ddq)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), expected, rtol=0, atol=1e-10)


def test_a_base_in_the_middle_starts_the_chain_there():
    whole = arm('ur5')
    part = RobotModel.from_urdf(ARMS['ur5'], base='forearm_link')
    assert part.joint_names == whole.joint_names[3:]
    np.testing.assert_array_equal(part.inertial, whole.inertial[3:])


def test_transmissions_give_gear_ratios_and_rotor_inertias():
    gear = (
        '<transmission><joint name="j1"/><actuator><mechanicalReduction>100</mechanicalReduction></actuator>'
        '</transmission><transmission xmlns:drake="http://drake.mit.edu"><joint name="j2"/><actuator>'
        '<drake:rotor_inertia value="1e-4"/><drake:gear_ratio value="50"/></actuator></transmission>'
    )
    model = RobotModel.from_urdf(urdf(*TWO, gear))
    np.testing.assert_allclose(model.gear_ratio, [100.0, 50.0])
    np.testing.assert_allclose(model.rotor_inertia, [0.0, 0.25])
    rest = np.zeros((1, 2))
    ddq = np.array([[0.0, 2.0]])
    with_rotor, rigid = (inverse_dynamics(model, rest, rest, ddq, rotor_inertia=flag) for flag in (True, False))
    np.testing.assert_allclose(with_rotor - rigid, [[0.0, 0.5]], atol=1e-14)


def test_one_joint_name_in_place_of_a_list_is_refused() -> None:
    with refused(ModelError, name='joints', found='elbow_joint'):
        RobotModel.from_urdf(ARMS['ur5'], joints='elbow_joint')
