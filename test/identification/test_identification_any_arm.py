# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Arms drawn at random, from a few centimetres to many metres, moved by Pinocchio: each is usable at once.

Turning and sliding joints in any order and direction, masses right, scaled or not told, friction from next to nothing
to more than the rest, with and without Stribeck's, noise of 0.1 to 3 %, and a delay.
"""

from dataclasses import replace
from functools import cache, partial
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset, Recording, process_recording
from robotid_ros.identification import identify
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.model import RobotModel

LINK = """<link name="link{k}"><inertial><origin xyz="{c[0]} {c[1]} {c[2]}"/><mass value="{m}"/>
<inertia ixx="{i[0]}" iyy="{i[1]}" izz="{i[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint{k}" type="{kind}"><parent link="{parent}"/><child link="link{k}"/>
<origin xyz="0 0 {length}" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/><axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>
<limit lower="{low}" upper="{high}" velocity="{speed}" effort="1e6"/></joint>"""


def description(rng: np.random.Generator) -> str:
    """Return the URDF of an arm of one to six joints."""
    n, size = int(rng.integers(1, 7)), 10 ** rng.uniform(-1.3, 0.8)
    mass = 10 ** rng.uniform(0.3, 2.3) * size**3
    text = '<robot name="any"><link name="base"/>'
    for k in range(n):
        length, m = size * rng.uniform(0.3, 1.2), mass * rng.uniform(0.3, 2.0) * 0.8**k
        slides = n > 1 and rng.random() < 0.15
        reach, turn = (1.5 * size, size) if slides else (rng.uniform(1.5, 3.1), 1.0)
        text += LINK.format(
            k=k,
            c=length * np.array([*rng.uniform(-0.2, 0.2, 2), rng.uniform(0.2, 0.8)]),
            m=m,
            i=m * length**2 * np.array([0.1, 0.08, 0.06]) * rng.uniform(0.5, 1.2),
            kind='prismatic' if slides else 'revolute',
            parent=f'link{k - 1}' if k else 'base',
            length=length if k else 0.1 * length,
            rpy=rng.uniform(-3.0, 3.0, 3),
            axis=Rotation.random(random_state=rng.integers(1 << 31)).apply([0.0, 0.0, 1.0]),
            low=-reach,
            high=reach,
            speed=turn * 10 ** rng.uniform(-0.5, 0.7),
        )
    return text + '</robot>'


def motion(rng: np.random.Generator, model: RobotModel, time: Array) -> tuple[Array, Array, Array]:
    """Return positions, velocities and accelerations within the limits, of frequencies that share no period."""
    omega = 2.0 * np.pi * 0.12 * np.arange(1, 6) * rng.uniform(0.6, 1.4, (model.n, 5))
    phase = time[:, None, None] * omega + rng.uniform(0.0, 2.0 * np.pi, (model.n, 5))
    size = rng.uniform(0.3, 1.0, (model.n, 5)) / np.arange(1, 6)
    q, dq = np.sum(size * np.sin(phase), axis=2), np.sum(size * omega * np.cos(phase), axis=2)
    ddq = -np.sum(size * omega**2 * np.sin(phase), axis=2)
    limits = model.limits
    scale = np.minimum(0.8 * limits.upper / np.abs(q).max(axis=0), 0.8 * limits.velocity / np.abs(dq).max(axis=0))
    return scale * q, scale * dq, scale * ddq


@cache
def drawn(seed: int) -> tuple[RobotModel, list[Dataset], float]:
    """Return an arm as it is described, two recordings of the real one, and their noise [%]."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    rng = np.random.default_rng(seed)
    text = description(rng)
    arm, model = pinocchio.buildModelFromXML(text), RobotModel.from_urdf(text)
    inner = arm.createData()
    rate = float(rng.choice([50.0, 100.0, 250.0]))
    time = np.arange(int(20.0 * rate)) / rate
    moved = [motion(rng, model, time) for _ in range(2)]
    rigid = [np.array([pinocchio.rnea(arm, inner, *row).copy() for row in zip(*each, strict=True)]) for each in moved]
    size = np.sqrt(np.mean(rigid[0] ** 2, axis=0)) + 1e-3 * np.sqrt(np.mean(rigid[0] ** 2))
    speed = np.sqrt(np.mean(moved[0][1] ** 2, axis=0))
    coulomb, viscous = size * 10 ** rng.uniform(-1.5, 0.0, (2, model.n))
    stribeck = coulomb * rng.uniform(0.0, 0.6, model.n) * (rng.random() < 0.5)
    noise, delay = 10 ** rng.uniform(-3.0, -1.5), float(rng.choice([0.0, 0.004]))
    datasets = []
    for (q, dq, _), tau in zip(moved, rigid, strict=True):
        sign = np.tanh(dq / (0.02 * speed))
        rubs = coulomb * sign + 0.3 * viscous * dq / speed + stribeck * np.exp(-((dq / (0.1 * speed)) ** 2)) * sign
        whole = np.stack([np.interp(time - delay, time, column) for column in (tau + rubs).T], axis=1)
        whole += noise * np.sqrt(np.mean(whole**2, axis=0)) * rng.standard_normal(whole.shape)
        seen = q + 1e-5 * np.ptp(q, axis=0) * rng.standard_normal(q.shape)
        datasets.append(
            process_recording(Recording(joint_names=model.joint_names, time=time, position=seen, effort=whole))
        )
    masses = rng.choice(['right', 'scaled', 'none'])
    factor = {'right': 1.0, 'scaled': 10 ** rng.uniform(-0.15, 0.15, (model.n, 1)), 'none': 0.0}[masses]
    return replace(model, inertial=factor * model.inertial), datasets, 100.0 * noise


@pytest.mark.slow
@pytest.mark.parametrize('seed', [1, 3, 4, 6])
def test_any_arm_is_usable_at_once_and_predicts_another_motion(seed: int) -> None:
    model, (training, other), noise = drawn(seed)
    result = identify(training, model, validation=other)
    assert result.usable, result.reason
    assert result.setup is not None
    assert result.setup.findings == ()
    assert 0.9 * noise < result.metrics['validation'].relative_error_total < 2.0 * noise + 2.5
    if seed == 1:
        assert identify(training, model).usable


@cache
def errors_as_described(seed: int) -> Array:
    model, (data, _), _ = drawn(seed)
    return find_setup([data], model)[1].alternatives[0].error


@pytest.mark.slow
@pytest.mark.parametrize(
    ('seed', 'kind'),
    [(100, 'axis'), (101, 'torque'), (101, 'position'), (102, 'axis'), (102, 'position'), (103, 'torque')],
)
def test_a_reversed_joint_of_any_arm_is_named(seed: int, kind: str) -> None:
    model, (data, _), _ = drawn(seed)
    joint = seed % model.n
    turn = np.where(np.arange(model.n) == joint, -1.0, 1.0)
    turned = partial(np.multiply, turn)
    if kind != 'position':
        data = replace(data, tau=turned(data.tau), tau_filtered=turned(data.tau_filtered))
    if kind != 'torque':
        data = replace(data, q=turned(data.q), dq=turned(data.dq), ddq=turned(data.ddq))
    data = replace(data, unfiltered=None)
    setup, decision = find_setup([data], model)
    if model.joint_names[joint] not in ' '.join([setup.obstacle, *setup.notes]):
        # Another arm that could be described so moves alike.
        assert (decision.alternatives[0].error < 1.3 * errors_as_described(seed)).all(), setup.notes


def error(arm: RobotModel, *recordings: Dataset) -> Array:
    """Return what is left of the second of two recordings after an identification from the first."""
    training, judge = (replace(each, unfiltered=None) for each in recordings)
    return identify(training, arm, validation=judge).metrics['validation'].rmse


@pytest.mark.slow
@pytest.mark.parametrize(('seed', 'factor'), [(200, 1e-7), (202, 1e8)])
def test_neither_the_unit_of_mass_nor_that_of_length_changes_what_is_found(seed: int, factor: float) -> None:
    """Without known masses, an arm may have any size: other units of torque and length are the same arm."""
    model, (data, other), _ = drawn(seed)
    model = replace(model, inertial=0.0 * model.inertial)
    length = factor**0.25
    placements, tip = np.array(model.placements), np.array(model.tip)
    placements[:, :3, 3] *= length
    tip[:3, 3] *= length
    large = replace(model, placements=placements, tip=tip, gravity=length * model.gravity)

    def in_other_units(each: Dataset) -> Dataset:
        return replace(each, tau=factor * each.tau, tau_filtered=factor * each.tau_filtered)

    found = error(large, in_other_units(data), in_other_units(other)) / factor
    np.testing.assert_allclose(found, error(model, data, other), rtol=1e-2)


def _numbers(element: ElementTree.Element, name: str) -> Array:
    return np.array([float(x) for x in element.get(name, '0 0 0').split()])


def _put(element: ElementTree.Element, **values: Array) -> None:
    for name, value in values.items():
        element.set(name, ' '.join(map(repr, value.tolist())))


def described_otherwise(text: str, rng: np.random.Generator) -> tuple[str, Array, Array]:
    """Return the URDF of the same arm with other link frames, signs and zeros of joints, and these, shapes (n,)."""
    root, signs, zeros, before = ElementTree.fromstring(text), [], [], Rotation.identity()
    links = {link.get('name'): link for link in root.iter('link')}
    for joint in root.iter('joint'):
        parts = {part.tag: part for part in joint}
        turns = joint.get('type') == 'revolute'
        sign, zero = (float(rng.choice([-1.0, 1.0])), float(rng.uniform(-1.0, 1.0))) if turns else (1.0, 0.0)
        about, origin = _numbers(parts['axis'], 'xyz'), parts['origin']
        frame = Rotation.from_euler('xyz', _numbers(origin, 'rpy'))
        frame *= Rotation.from_rotvec(zero * about / np.linalg.norm(about))
        other = Rotation.random(random_state=rng.integers(1 << 31))
        turned = (before.inv() * frame * other).as_euler('xyz')
        _put(origin, xyz=before.inv().apply(_numbers(origin, 'xyz')), rpy=turned)
        _put(parts['axis'], xyz=other.inv().apply(sign * about))
        ends = [sign * (float(parts['limit'].get(name, '')) - zero) for name in ('lower', 'upper')]
        parts['limit'].set('lower', repr(min(ends)))
        parts['limit'].set('upper', repr(max(ends)))
        place = next(links[parts['child'].get('link')].iter('origin'))
        _put(place, xyz=other.inv().apply(_numbers(place, 'xyz')), rpy=other.inv().as_euler('xyz'))
        before = other
        signs.append(sign)
        zeros.append(zero)
    return ElementTree.tostring(root, encoding='unicode'), np.array(signs), np.array(zeros)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [303, 305])  # one of which slides
def test_neither_frames_nor_signs_nor_zeros_change_what_is_found(seed: int) -> None:
    """The same arm, with springs: a real one was taken for its mirror image when it counted otherwise."""
    model, (data, other), _ = drawn(seed)
    text = description(np.random.default_rng(seed))
    told, sign, zero = described_otherwise(text, np.random.default_rng(seed))
    masses = model.inertial[:, 9:] / RobotModel.from_urdf(text).inertial[:, 9:]
    arm = RobotModel.from_urdf(told)
    arm = replace(arm, inertial=masses * arm.inertial)

    size = np.std(data.tau, axis=0)

    def sprung(each: Dataset) -> Dataset:
        spring = size * np.sin(3.0 * (each.q - data.q[0]))
        return replace(each, tau=each.tau + spring, tau_filtered=each.tau_filtered + spring)

    data, other = sprung(data.select(np.arange(len(data) // 3))), sprung(other)  # of which a motion tells little

    def counted(each: Dataset) -> Dataset:
        signals = {name: sign * getattr(each, name) for name in ('dq', 'ddq', 'tau', 'tau_filtered')}
        return replace(each, q=sign * (each.q - zero), **signals)

    np.testing.assert_allclose(error(arm, counted(data), counted(other)), error(model, data, other), rtol=1e-3)
