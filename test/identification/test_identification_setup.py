# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Set-ups that differ from the description, drawn at random: each is named, undone, and nothing else is said."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from identification_helpers import UR10E, dataset, fourier_motion, pinocchio_torque
from scipy.spatial.transform import Rotation

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.errors import ModelWarning
from robotid_ros.identification import IdentificationConfig, identify, setup_search
from robotid_ros.identification import setup as hypotheses
from robotid_ros.identification.evidence import Evidence
from robotid_ros.identification.judge import Decision, Score
from robotid_ros.identification.plausibility import torque_size
from robotid_ros.identification.samples import evenly_weighted
from robotid_ros.identification.setup import Finding, SetUp
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.model import JointLimits, RobotModel
from robotid_ros.model.inertia import inertial_parameters

ARM = RobotModel.from_urdf(UR10E)
SIZES = np.array([8.0, 10.0, 6.0, 2.0, 1.5, 1.0])
# The same arm with its wrist locked, for what does not depend on how many joints there are: a search takes a tenth.
with pytest.warns(ModelWarning, match='joints held at zero'):
    SHORT = RobotModel.from_urdf(UR10E, joints=ARM.joint_names[:3])
# For what is about set-ups and not about the choice of a friction model, which takes most of an identification.
PLAIN = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)


def recorded(seed: int, arm: RobotModel = ARM) -> Dataset:
    """Return a recording of the arm whose links differ from the description by up to a fifth, with friction."""
    rng = np.random.default_rng(seed)
    real = replace(arm, inertial=arm.inertial * rng.uniform(0.8, 1.2, (arm.n, 1)))
    motion, sizes = fourier_motion(arm.n, rng, size=0.8, seconds=12.0), SIZES[: arm.n]
    dq = motion[2]
    torque = pinocchio_torque(real, *motion[1:]) + sizes * np.sign(dq) + 0.5 * sizes * dq
    return dataset(arm, motion, torque + 0.05 * sizes * rng.standard_normal(dq.shape))


def changed(data: Dataset, position: Array, torque: Array) -> Dataset:
    """Return a recording in other coordinates."""
    tau = data.tau @ torque.T
    q, dq, ddq = (x @ position.T for x in (data.q, data.dq, data.ddq))
    return replace(data, q=q, dq=dq, ddq=ddq, tau=tau, tau_filtered=tau)


def kinds(setup: SetUp) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.kind, each.joints) for each in setup.findings]


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
def test_what_is_as_described_stays_so(seed: int) -> None:
    setup, decision = find_setup([recorded(seed)], ARM)
    assert setup.findings == ()
    assert decision.chosen == 'as described'
    assert not setup.changes_coordinates


@pytest.mark.parametrize('kind', [None, 'position', 'torque'])
def test_an_inertia_that_is_described_far_too_large_hides_nothing(kind: str | None) -> None:
    """As of a flange of 1 kg m^2, which many files have; it was taken for known to a thousandth of itself."""
    flange = np.array(SHORT.inertial)
    flange[-1, [0, 3, 5]] = 300.0
    turn = np.diag([1.0, -1.0, 1.0])
    data = recorded(0, SHORT)
    if kind is not None:
        data = changed(data, *((turn, np.eye(3)) if kind == 'position' else (np.eye(3), turn)))
    setup, _ = find_setup([data], replace(SHORT, inertial=flange))
    assert kinds(setup) == ([] if kind is None else [(kind, SHORT.joint_names[1:2])])


@pytest.mark.slow
@pytest.mark.parametrize(('seed', 'arm'), [(0, SHORT), (1, ARM), (2, SHORT)])
def test_any_mount_is_found_to_two_degrees(seed: int, arm: RobotModel) -> None:
    rng = np.random.default_rng(50 + seed)
    gravity = 9.81 * Rotation.random(random_state=rng.integers(1 << 31)).apply([0.0, 0.0, -1.0])
    data = recorded(seed, replace(arm, gravity=gravity))
    setup, _ = find_setup([data], arm)
    assert kinds(setup) == [('gravity', ())]
    assert np.degrees(np.arccos(setup.gravity @ gravity / 9.81**2)) < 2.0
    assert np.linalg.norm(setup.gravity) == pytest.approx(9.81)


@pytest.mark.slow
@pytest.mark.parametrize(('unit', 'factor'), [('degrees', np.degrees(1.0)), ('turns', 0.5 / np.pi)])
def test_positions_in_another_unit_are_found_and_what_else_is_wrong_with_them(unit: str, factor: float) -> None:
    reversed_one = np.diag([1.0, -1.0, 1.0])
    data = changed(recorded(3, SHORT), factor * reversed_one, reversed_one)
    setup, decision = find_setup([data], SHORT)
    assert kinds(setup) == [('position units', SHORT.joint_names), ('axis', SHORT.joint_names[1:2])]
    np.testing.assert_allclose(setup.position, reversed_one / factor)
    assert f'{SHORT.joint_names[2]} are in {unit}: expected rad; convert positions' in setup.obstacle
    assert 'as described' in {each.name for each in decision.alternatives}
    # With limits, these refuse degrees before anything is compared.
    bare = replace(SHORT, limits=JointLimits.unlimited(3))
    plain = identify(changed(recorded(3, SHORT), factor * np.eye(3), np.eye(3)), bare, estimator='wls')
    assert not plain.usable
    assert f'are in {unit}: expected rad; convert positions' in plain.reason
    assert plain.metrics['training'].relative_error_total < 5.0


def test_a_spring_of_a_tenth_of_the_torque_is_a_spring() -> None:
    data = recorded(1, SHORT)
    spring = (data.q[:, 1] - data.q[:, 1].mean()) / data.q[:, 1].std() * 0.1 * np.sqrt(np.mean(data.tau[:, 1] ** 2))
    tau = data.tau + spring[:, None] * [0.0, 1.0, 0.0]
    setup, decision = find_setup([replace(data, tau=tau, tau_filtered=tau)], SHORT)
    assert setup.findings == ()
    described = next(each for each in decision.alternatives if each.name == 'as described')
    assert described.error[1] < 0.15 * spring.std()
    assert 0.8 < described.error[1] / (0.05 * SIZES[1]) < 1.5


def test_a_joint_that_slides_has_a_unit_of_lengths() -> None:
    arm = RobotModel.from_urdf(ACROBOT.replace('type="revolute"', 'type="prismatic"', 1))
    found = list(hypotheses.position_units(SetUp.as_described(arm), arm))
    assert [kinds(each) for each in found] == [
        [('position units', (joint,))] for joint in ('joint2', 'joint2', 'joint1')
    ]
    for each, row in zip(found, ([1.0, np.pi / 180.0], [1.0, 2.0 * np.pi], [1e-3, 1.0]), strict=True):
        np.testing.assert_allclose(each.position, np.diag(row))
        left = [other.findings[-1].joints for other in hypotheses.position_units(each, arm)]
        assert left == ([('joint1',)] if each.findings[0].joints == ('joint2',) else [('joint2',)] * 2)


GANTRY = (
    '<robot name="gantry"><link name="base"/>'
    + ''.join(
        f"""<link name="link{k}"><inertial><origin xyz="{x} 0 -0.2"/><mass value="{mass}"/>
<inertia ixx="0.05" iyy="0.06" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint{k}" type="{joint}"><parent link="{parent}"/><child link="link{k}"/><origin xyz="0 0 0.1"/>
<axis xyz="{axis}"/><limit lower="-9" upper="9" velocity="9" effort="99"/></joint>"""
        for k, (parent, joint, axis, mass, x) in enumerate(
            [
                ('base', 'prismatic', '1 0 0', 6.0, 0.0),
                ('link0', 'prismatic', '0 0.6 0.8', 4.0, 0.1),
                ('link1', 'revolute', '0 1 0', 2.0, 0.15),
            ]
        )
    )
    + '</robot>'
)


@pytest.mark.parametrize(('unit', 'factors'), [('mm', [1e3, 1e3, 1.0]), ('degrees', [1.0, 1.0, np.degrees(1.0)])])
def test_positions_of_an_arm_that_slides_and_turns_are_told_in_their_unit(unit: str, factors: list[float]) -> None:
    arm, rng = RobotModel.from_urdf(GANTRY), np.random.default_rng(4)
    motion = fourier_motion(3, rng, size=0.4, seconds=12.0)
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    truth = pinocchio.buildModelFromXML(GANTRY)
    torque = np.array([pinocchio.rnea(truth, truth.createData(), *row) for row in zip(*motion[1:], strict=True)])
    torque += 3.0 * np.sign(motion[2]) + motion[2]
    data = dataset(arm, motion, torque + 0.05 * rng.standard_normal(torque.shape))
    assert find_setup([data], arm)[0].findings == ()
    setup, _ = find_setup([changed(data, np.diag(factors), np.eye(3))], arm)
    assert kinds(setup) == [('position units', arm.joint_names[:2] if unit == 'mm' else arm.joint_names[2:])]
    assert f'are in {unit}' in setup.obstacle


@pytest.mark.slow
def test_efforts_that_the_driver_has_taken_gravity_out_of_are_told() -> None:
    """The links are up to a fifth off the description, and the driver's gravity up to a tenth."""
    data = recorded(1)
    share, still = np.random.default_rng(1).uniform(0.9, 1.1, 6), np.zeros_like(data.q)
    torque = data.tau - pinocchio_torque(ARM, data.q, still, still) * share
    setup, _ = find_setup([replace(data, tau=torque, tau_filtered=torque)], ARM)
    assert kinds(setup) == [('gravity', ())]
    assert not setup.gravity.any()
    (note,) = setup.notes
    assert note.startswith('set-up: the efforts hold no gravity, and do hold what motion needs')
    assert 'find out whether the driver adds the weight' in note
    assert 'set gravity: [0, 0, 0] in the configuration' in note
    assert setup.obstacle == ''


def test_described_centres_of_mass_in_wrong_places_are_not_taken_for_torque_without_gravity() -> None:
    """One body for all links, its centre on the joint's axis; bodies of any masses have the weight."""
    body = inertial_parameters(3.0, np.array([0.0, 0.0, 0.02]), 0.05 * np.eye(3))
    setup, _ = find_setup([recorded(3)], replace(ARM, inertial=np.tile(body, (6, 1))))
    assert setup.findings == ()


@pytest.mark.slow
def test_slow_motion_of_links_with_wrong_inertias_is_not_taken_for_torque_without_gravity() -> None:
    rng = np.random.default_rng(1)
    time, q, dq, ddq = fourier_motion(3, rng, size=0.8, seconds=12.0)
    motion, still = (4.0 * time, q, 0.25 * dq, ddq / 16.0), np.zeros_like(q)
    weight = pinocchio_torque(SHORT, q, still, still)
    torque = weight + 8.0 * (pinocchio_torque(SHORT, *motion[1:]) - weight)
    setup, _ = find_setup([dataset(SHORT, motion, torque + 0.01 * rng.standard_normal(q.shape))], SHORT)
    assert setup.gravity.any()


@pytest.mark.slow
@pytest.mark.parametrize('size', [9.81, 0.0])
def test_gravity_is_found_where_none_is_described_and_there_is_some(size: float) -> None:
    down = np.array([0.0, 0.0, -size])
    data = recorded(3, replace(SHORT, gravity=down))
    setup, _ = find_setup([data], replace(SHORT, gravity=np.zeros(3)))
    assert kinds(setup) == [('gravity', ())] * bool(size)
    np.testing.assert_allclose(setup.gravity, down, atol=0.01)
    assert not setup.lost
    assert all('where the description has none' in note for note in setup.notes)


@pytest.mark.parametrize(
    ('gain', 'nats', 'independent', 'found'),
    [
        (0.25, 0.0, 1e3, 'true'),  # a fifth of the error in states left out
        (0.09, 0.0, 1e3, 'neither'),
        (0.15, 0.0, 1e3, 'doubtful'),  # a tenth
        (0.09, 50.0, 1e3, 'doubtful'),
        (0.09, 120.0, 1e3, 'true'),  # or so much less of it that bodies become so much less strange
        (-0.01, 300.0, 1e3, 'neither'),  # which the error has to confirm
        (0.09, 4.0, 10.0, 'neither'),  # a prior that a hundredth of all set-ups breaks by chance
        (0.09, 5.0, 10.0, 'true'),
    ],
)
def test_a_set_up_is_contradicted_by_the_error_and_by_bodies_that_are_strange(gain, nats, independent, found) -> None:
    described = SetUp.as_described(ARM)
    mounted = hypotheses.mounted(described, -ARM.gravity, ARM.gravity)
    spread = np.linspace(-0.05, 0.05, 10)[:, None]

    def score(setup: SetUp, *_: object, **__: object) -> Score:
        squares = np.exp(-2.0 * (gain + spread)) if setup is mounted else np.ones((10, 1))
        return Score(squares=squares * np.ones(ARM.n), count=np.ones((10, ARM.n)))

    def cost(setup: SetUp, *, free: bool = False) -> float:
        return -1.0 if setup is mounted else 0.0

    def strangeness(setup: SetUp) -> float:
        return 7.0 if setup is mounted else 7.0 + nats

    test = SimpleNamespace(cost=cost, strangeness=strangeness, score=score, described=ARM, independent=independent)
    search = setup_search._Search(test, test, np.zeros(10, dtype=int))
    taken = search.challenger([(-1.0, mounted)], described, score(described))
    assert (taken is not None, search.doubt(described) is not None) == (found == 'true', found == 'doubtful')
    assert search.doubt(mounted) is None  # which has been found by then


@pytest.mark.parametrize(('others', 'taken'), [('torque', True), ('gravity', False)])
def test_hypotheses_count_within_their_kind(others: str, taken: bool) -> None:
    """The best of a thousand gains something by chance; what else might be wrong with the arm adds no chance."""
    described = SetUp.as_described(ARM)
    mounted = hypotheses.mounted(described, -ARM.gravity, ARM.gravity)
    other = next(each for each in hypotheses.reversals(described, ARM) if each.findings[-1].kind == 'torque')
    other = replace(other, findings=(replace(other.findings[-1], kind=others),))
    falls = np.linspace(-0.1, 0.7, 10)[:, None]

    def score(setup: SetUp, *_: object, **__: object) -> Score:
        squares = np.exp(-2.0 * falls) if setup is mounted else np.ones((10, 1))
        return Score(squares=squares * np.ones(ARM.n), count=np.ones((10, ARM.n)))

    def cost(setup: SetUp, *, free: bool = False) -> float:
        return -1.0 if setup is mounted else 0.0

    test = SimpleNamespace(cost=cost, strangeness=lambda setup: 7.0, score=score, described=ARM, independent=1e3)
    search = setup_search._Search(test, test, np.zeros(10, dtype=int))
    found = search.challenger([(-1.0, mounted), *[(0.0, other)] * 1000], described, score(described))
    assert (found is not None) == taken


@pytest.mark.parametrize(('independent', 'taken'), [(100.0, False), (1e4, True)])
def test_factors_of_units_cost_as_much_as_their_number_says(independent: float, taken: bool) -> None:
    described = SetUp.as_described(ARM)
    units = hypotheses.several_units(described, ARM, np.array([3.0, 1.0, 1.0, 1.0, 1.0, 1.0 / 3.0]))

    def score(setup: SetUp, *_: object, **__: object) -> Score:
        squares = np.full((10, ARM.n), np.exp(-0.5 if setup is units else 0.0))  # L falls by a quarter
        return Score(squares=squares, count=np.ones((10, ARM.n)))

    def cost(setup: SetUp, *, free: bool = False) -> float:
        return -1.0 if setup is units else 0.0

    test = SimpleNamespace(
        cost=cost, strangeness=lambda setup: 7.0, score=score, described=ARM, independent=independent
    )
    search = setup_search._Search(test, test, np.zeros(10, dtype=int))
    found = search.challenger([(0.0, units)], described, score(described))
    assert (found is not None) == taken


def test_efforts_in_known_units_are_as_probable_and_leave_as_much_as_torques() -> None:
    bare = replace(SHORT, inertial=np.zeros_like(SHORT.inertial))
    data = recorded(0, SHORT)
    factors = np.array([4.0, 1.0, 0.3])
    factors *= np.linalg.norm(data.tau) / np.linalg.norm(data.tau * factors)  # as large as before
    tests = [
        Evidence(evenly_weighted([each], bare, None).thinned(400), bare)
        for each in (data, changed(data, np.eye(3), np.diag(factors)))
    ]
    as_they_are = SetUp.as_described(bare)
    known = hypotheses.several_units(as_they_are, bare, 1.0 / factors)
    torques, efforts = tests[0].cost(as_they_are), tests[1].cost(known)
    assert efforts - torques == pytest.approx(tests[0].independent / 3 * np.log(factors).sum(), rel=1e-3)
    label = setup_search.groups(tests[0].samples, 10)
    left = [test.score(setup, label).rmse for test, setup in zip(tests, (as_they_are, known), strict=True)]
    np.testing.assert_allclose(left[1], factors * left[0], rtol=1e-3)


def test_a_doubt_about_the_set_up_is_told_and_kept() -> None:
    doubt = hypotheses.mounted(SetUp.as_described(ARM), -ARM.gravity, ARM.gravity).findings[0]
    setup = replace(SetUp.as_described(ARM), doubt=doubt)
    assert SetUp.from_dict(setup.to_dict(), 6).doubt == doubt
    (note,) = setup.notes
    assert note.startswith('set-up, not certain: gravity acts along')
    assert 'and if it is so, set gravity: [' in note
    assert not setup.obstacle
    assert not setup.changes_coordinates


@pytest.mark.slow
def test_a_doubt_ends_with_what_it_was_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the ceiling is looked for, much else helps; with the ceiling found, nothing does."""
    data, doubts = recorded(3, replace(SHORT, gravity=-SHORT.gravity)), []
    clear = setup_search._Search.challenger

    def doubtful(search, candidates, setup, held):
        if not setup.findings:
            search.doubts.append((1.0, hypotheses.reversed_alike(setup, SHORT, 'axis', [2]).findings[0]))
            doubts.append(setup)
        return clear(search, candidates, setup, held)

    monkeypatch.setattr(setup_search._Search, 'challenger', doubtful)
    setup, _ = find_setup([data], SHORT)
    assert doubts
    assert kinds(setup) == [('gravity', ())]
    assert setup.doubt is None


@pytest.mark.slow
def test_a_mount_and_a_reversed_axis_are_found_together() -> None:
    """A direction of gravity bends to what a reversed axis leaves; in the end it is that of the mount."""
    gravity = 9.81 * Rotation.from_rotvec(np.random.default_rng(70).normal(size=3)).apply([0.0, 0.0, -1.0])
    turn = np.diag([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    setup, _ = find_setup([changed(recorded(0, replace(ARM, gravity=gravity)), turn, turn)], ARM)
    assert sorted(kinds(setup)) == [('axis', ARM.joint_names[1:2]), ('gravity', ())]
    assert np.degrees(np.arccos(setup.gravity @ gravity / 9.81**2)) < 2.0


@pytest.mark.slow
@pytest.mark.parametrize('where', ['training', 'validation', 'both', 'neither'])
def test_recordings_of_different_set_ups_are_told_apart(where: str) -> None:
    tilted = Rotation.from_rotvec([0.5, 0.3, 0.0]).apply([0.0, 0.0, -9.81])
    standing = replace(SHORT, gravity=tilted)
    data = [
        recorded(seed, standing if where in (name, 'both') else SHORT)
        for seed, name in enumerate(('training', 'validation'))
    ]
    notes = identify(data[0], SHORT, validation=data[1], config=PLAIN).notes
    assert any('another set-up: gravity acts along' in note for note in notes) == (where == 'validation')
    assert any('in which this is not so: gravity acts along' in note for note in notes) == (where == 'training')
    assert any(note.startswith('set-up: gravity acts along') for note in notes) == (where in ('training', 'both'))


@pytest.mark.slow
def test_a_load_that_only_the_recording_to_judge_by_has_is_told_and_spoils_gravity_compensation() -> None:
    loaded = np.array(SHORT.inertial)
    loaded[-1] += inertial_parameters(8.0, np.array([-0.5, 0.0, 0.1]), 0.05 * np.eye(3))
    data = []
    for seed, bodies in enumerate((SHORT.inertial, loaded)):
        rng = np.random.default_rng(seed)
        motion = fourier_motion(3, rng, size=0.8, seconds=12.0)
        torque = pinocchio_torque(replace(SHORT, inertial=bodies), *motion[1:]) + SIZES[:3] * np.sign(motion[2])
        data.append(dataset(SHORT, motion, torque + 0.05 * SIZES[:3] * rng.standard_normal(torque.shape)))
    good = {}
    for judged_by in data:
        result = identify(data[0], SHORT, validation=judged_by, config=PLAIN)
        told = any('another set-up: the load of the arm changed half way' in note for note in result.notes)
        good[told] = {use.name: use.good for use in result.good_for}['gravity compensation']
    assert good == {False: True, True: False}


@pytest.mark.slow
def test_torques_are_compared_with_the_masses_of_an_arm_as_it_stands() -> None:
    """On a ceiling, gravity turns round: beside the description as it is, all torques would look reversed."""
    data = recorded(0, replace(ARM, gravity=-ARM.gravity))
    assert 'have the opposite sign' in torque_size([data], ARM).doubt
    result = identify(data, ARM, config=PLAIN)
    assert [note for note in result.notes if 'gravity acts along' in note]
    assert not [note for note in result.notes if 'reversed' in note]
    assert result.usable


@pytest.mark.slow
def test_a_finding_that_the_whole_model_does_not_need_is_dropped(monkeypatch) -> None:
    """Real arms were refused for a set-up that only the simple friction of the search had shown."""
    data, turn = recorded(1, SHORT), np.diag([1.0, 1.0, -1.0])
    false, decision = find_setup([changed(data, turn, turn)], SHORT)
    assert false.findings
    way = [SetUp.as_described(SHORT), false]
    monkeypatch.setattr('robotid_ros.identification.steps.find_setups', lambda *_, **_only: ([*way], decision))
    wrong, true = (identify(each, SHORT, config=PLAIN) for each in (data, changed(data, turn, turn)))
    assert wrong.setup.findings == ()
    assert wrong.usable
    assert not [note for note in wrong.notes if 'set-up' in note]
    (said,) = [each.chosen for each in wrong.decisions if each.subject == 'set-up']
    assert said.startswith('as described: ')
    assert said.endswith(decision.chosen)
    assert kinds(true.setup) == kinds(false)


@pytest.mark.parametrize('factor', [1.03, 3.0])
def test_findings_are_confirmed_one_after_the_other_and_a_refusal_has_to_be_worth_it(
    monkeypatch, factor: float
) -> None:
    """The axis is reversed; one effort is a little off, which costs less than a refusal, or in another unit."""
    turn, gain = np.diag([1.0, 1.0, -1.0]), np.diag([1.0, factor, 1.0])
    data = changed(recorded(1, SHORT), turn, gain @ turn)
    axis = hypotheses.reversed_alike(SetUp.as_described(SHORT), SHORT, 'axis', [2])
    units = hypotheses.several_units(axis, SHORT, factor ** np.array([1 / 3, -2 / 3, 1 / 3]))
    way, decision = [SetUp.as_described(SHORT), axis, units], Decision(subject='set-up', chosen='both')
    monkeypatch.setattr('robotid_ros.identification.steps.find_setups', lambda *_, **_only: ([*way], decision))
    result = identify(data, SHORT, config=PLAIN)
    assert kinds(result.setup) == kinds(axis if factor < 2.0 else units)
    assert result.setup.lost == (factor == 3.0)
    assert np.array_equal(result.setup.torque, np.eye(3) if result.setup.lost else turn)
    assert ('not torques in one unit' in result.reason) == result.setup.lost


@pytest.mark.slow
def test_a_finding_that_is_dropped_but_predicts_as_well_stays_a_doubt(monkeypatch) -> None:
    """A quarter of a turn of a vertical first axis has no consequence."""
    stated = SetUp.as_described(SHORT)
    turned = next(hypotheses.zeros(stated, SHORT))
    assert turned.findings[0].joints == SHORT.joint_names[:1]
    decision = Decision(subject='set-up', chosen=turned.findings[0].text)
    way = [stated, turned]
    monkeypatch.setattr('robotid_ros.identification.steps.find_setups', lambda *_, **_only: ([*way], decision))
    result = identify(recorded(1, SHORT), SHORT, config=PLAIN)
    assert result.usable
    assert result.setup.findings == ()
    assert result.setup.doubt == turned.findings[0]
    (said,) = [note for note in result.notes if 'set-up, not certain: ' in note]
    assert turned.findings[0].text in said


@pytest.mark.slow
@pytest.mark.parametrize(('kind', 'position', 'torque', 'joint'), [
    ('axis', -1, -1, 1),
    ('axis', -1, -1, 3),
    ('position', -1, 1, 2),
    ('torque', 1, -1, 2),
])  # fmt: skip
def test_a_reversed_joint_is_found(kind: str, position: int, torque: int, joint: int) -> None:
    arm = ARM if joint > 2 else SHORT
    turn = np.where(np.arange(arm.n) == joint, -1.0, 1.0)
    p, t = (np.diag(turn) if sign < 0 else np.eye(arm.n) for sign in (position, torque))
    setup, _ = find_setup([changed(recorded(joint, arm), p, t)], arm)
    assert kinds(setup) == [(kind, (arm.joint_names[joint],))]
    np.testing.assert_array_equal(setup.position @ p, np.eye(arm.n))
    np.testing.assert_array_equal(setup.torque @ t, np.eye(arm.n))


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'kind', 'joints'), [
    (ARM, 'axis', (3, 4)),
    (ARM, 'axis', (0, 1, 3, 4)),
    (SHORT, 'torque', (0, 2)),
    (ARM, 'torque', (1, 2, 3, 4, 5)),
])  # fmt: skip
def test_several_joints_that_are_reversed_alike_are_found_together(
    arm: RobotModel, kind: str, joints: tuple[int, ...]
) -> None:
    """Each of the axes alone makes it worse; and of a real TIAGo five of eight torques are reversed."""
    turn = np.diag(np.where(np.isin(np.arange(arm.n), joints), -1.0, 1.0))
    data = changed(recorded(sum(joints), arm), turn if kind == 'axis' else np.eye(arm.n), turn)
    setup, _ = find_setup([data], arm)
    assert kinds(setup) == [(kind, tuple(arm.joint_names[j] for j in joints))]
    np.testing.assert_array_equal(setup.torque, turn)
    np.testing.assert_array_equal(setup.position, turn if kind == 'axis' else np.eye(arm.n))


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'pair', 'whole'), [(ARM, (1, 3), True), (SHORT, (0, 2), False)])
def test_exchanged_columns_are_found(arm: RobotModel, pair: tuple[int, int], whole: bool) -> None:
    """A driver that tells its joints in alphabetical order, and a file that names them from the base on."""
    order = np.eye(arm.n)
    order[list(pair)] = order[list(pair[::-1])]
    setup, _ = find_setup([changed(recorded(sum(pair), arm), order if whole else np.eye(arm.n), order)], arm)
    assert kinds(setup) == [('order', tuple(arm.joint_names[j] for j in pair))]
    np.testing.assert_array_equal(setup.position, order if whole else np.eye(arm.n))
    np.testing.assert_array_equal(setup.torque, order)
    assert 'are exchanged' in setup.obstacle


@pytest.mark.slow
@pytest.mark.parametrize(('joint', 'ratio'), [(2, -1.0), (4, -0.8), (2, 1.6)])
def test_positions_of_coupled_motors_are_found(joint: int, ratio: float) -> None:
    arm = ARM if joint > 2 else SHORT
    motors = np.eye(arm.n)
    motors[joint, joint - 1] = ratio
    data = recorded(joint, arm)
    setup, _ = find_setup([changed(data, motors, np.linalg.inv(motors).T)], arm)
    assert kinds(setup) == [('coordinates', arm.joint_names[joint - 1 : joint + 1][::-1])]
    np.testing.assert_allclose(setup.position @ motors, np.eye(arm.n), atol=1e-12 if abs(ratio) == 1.0 else 0.02)


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'ratio'), [(SHORT, 1.0), (ARM, -1.0), (SHORT, 2.0)])
def test_friction_at_coupled_motors_is_found(arm: RobotModel, ratio: float) -> None:
    """Of the last joint but one of the whole arm, of the last of the short one."""
    rng, n = np.random.default_rng(4), arm.n
    drives, sizes, joint = np.eye(n), SIZES[:n], 4 if n == 6 else 2
    drives[joint, joint - 1] = ratio
    real = replace(arm, inertial=arm.inertial * rng.uniform(0.8, 1.2, (n, 1)))
    motion = fourier_motion(n, rng, size=0.8, seconds=12.0)
    motors = motion[2] @ drives.T
    friction = (2.0 * sizes * np.sign(motors) + 0.5 * sizes * motors) @ drives
    torque = pinocchio_torque(real, *motion[1:]) + friction + 0.05 * sizes * rng.standard_normal(motors.shape)
    setup, _ = find_setup([dataset(arm, motion, torque)], arm)
    assert kinds(setup) == [('drives', arm.joint_names[joint - 1 : joint + 1][::-1])]
    np.testing.assert_allclose(setup.drives, drives, rtol=1e-12 if abs(ratio) == 1.0 else 0.03)


@pytest.mark.slow
@pytest.mark.parametrize(('rubs', 'first'), [((6.0, 1.0), 1), ((1.0, 20.0), 2)])
def test_efforts_of_two_coupled_pairs_are_found(rubs: tuple[float, float], first: int) -> None:
    """Motor 3 turns with joint 2, and motor 2 with joint 1; the pair whose friction is larger is found first."""
    rng, drives = np.random.default_rng(6), np.eye(3)
    drives[1, 0], drives[2, 1] = 1.0, -1.0
    sizes = SIZES[:3] * [1.0, *rubs]
    real = replace(SHORT, inertial=SHORT.inertial * rng.uniform(0.8, 1.2, (3, 1)))
    motion = fourier_motion(3, rng, size=0.8, seconds=12.0)
    motors = motion[2] @ drives.T
    torque = pinocchio_torque(real, *motion[1:]) @ np.linalg.inv(drives)
    torque += sizes * np.sign(motors) + 0.5 * sizes * motors + 0.05 * SIZES[:3] * rng.standard_normal(motors.shape)
    setup, _ = find_setup([dataset(SHORT, motion, torque)], SHORT)
    assert kinds(setup) == [('coordinates', SHORT.joint_names[k - 1 : k + 1][::-1]) for k in (first, 3 - first)]
    np.testing.assert_array_equal(setup.drives, drives)
    np.testing.assert_allclose(setup.torque, drives.T, atol=1e-12)


ACROBOT = (
    '<robot name="acrobot"><link name="base"/>'
    + ''.join(
        f"""<link name="link{k}"><inertial><origin xyz="0 0 -0.15"/><mass value="0.6"/>
<inertia ixx="0.006" iyy="0.006" izz="0.0005" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/><origin xyz="0 0 {z}"/>
<axis xyz="0 1 0"/><limit lower="-9" upper="9" velocity="9" effort="9"/></joint>"""
        for k, parent, z in ((1, 'base', 0.0), (2, 'link1', -0.3))
    )
    + '</robot>'
)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
def test_a_joint_without_a_motor_is_not_coupled_to_one_that_has_one(seed: int) -> None:
    """A set-up that gave it a share of the other's torque would be judged by one that nobody measured."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    real, rng, step = pinocchio.buildModelFromXML(ACROBOT), np.random.default_rng(seed), 2e-3
    for inertia in real.inertias:
        inertia.mass *= rng.uniform(0.8, 1.2)
    data, q, dq, rows = real.createData(), np.array([0.3, 0.5]), np.zeros(2), []
    omega = rng.uniform(2.0, 5.0, 2)
    for k in range(6000):
        torque = np.array([0.0, 0.5 * np.sin(omega * step * k).sum()])
        ddq = pinocchio.aba(real, data, q, dq, torque - [0.0, 0.1 * np.tanh(dq[1] / 0.05) + 0.02 * dq[1]])
        rows.append([*q, *dq, *ddq, 0.0, torque[1] + 0.4 * rng.standard_normal()])
        dq = dq + step * ddq
        q = q + step * dq
    arm, motion = RobotModel.from_urdf(ACROBOT), np.array(rows[::5])
    time = 5.0 * step * np.arange(len(motion))
    recording = dataset(arm, (time, *np.split(motion[:, :6], 3, axis=1)), motion[:, 6:])  # type: ignore[arg-type]
    assert find_setup([recording], arm)[0].findings == ()


@pytest.mark.slow
@pytest.mark.parametrize('zero', [np.pi / 2, -np.pi / 2, np.pi])
def test_another_zero_is_found(zero: float) -> None:
    data = recorded(7, SHORT)
    shift = zero * (np.arange(3) == 1)
    setup, _ = find_setup([replace(data, q=data.q - shift)], SHORT)
    assert kinds(setup) == [('zero', (SHORT.joint_names[1],))]
    np.testing.assert_allclose(np.cos(setup.zero - shift), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'share'), [(SHORT, 0.3), (ARM, 0.6)])
def test_a_payload_that_is_taken_up_half_way_is_told_with_its_time(arm: RobotModel, share: float) -> None:
    rng = np.random.default_rng(9)
    motion = fourier_motion(arm.n, rng, size=0.8, seconds=12.0)
    heavier = np.array(arm.inertial)
    heavier[-1] += np.array([0.05, 0, 0, 0.05, 0, 0.005, 0, 0, 0.3, 2.5])
    later = motion[0] > share * motion[0][-1]
    parts = [pinocchio_torque(replace(arm, inertial=each), *motion[1:]) for each in (arm.inertial, heavier)]
    torque = np.where(later[:, None], parts[1], parts[0]) + SIZES[: arm.n] * np.sign(motion[2])
    data = dataset(arm, motion, torque + 0.05 * SIZES[: arm.n] * rng.standard_normal(torque.shape))
    setup, _ = find_setup([data], arm)
    assert [each.kind for each in setup.findings] == ['change']
    assert setup.obstacle
    told = re.search(r'from about ([\d.]+) s', setup.findings[0].text)
    assert told is not None
    assert float(told.group(1)) == pytest.approx(share * motion[0][-1], abs=1.0)
    late = replace(data, time=data.time + 20.0)  # what the arm stood before was left out
    moments = [setup_search._moments([each], evenly_weighted([each], arm, None).thinned(400)) for each in (data, late)]
    np.testing.assert_allclose([b[1] - a[1] for a, b in zip(*moments, strict=True)], 20.0)


@pytest.mark.slow
def test_magnitudes_are_told_and_a_torque_that_gravity_keeps_positive_is_not() -> None:
    data = recorded(3, SHORT)
    setup, _ = find_setup([replace(data, tau=np.abs(data.tau), tau_filtered=np.abs(data.tau))], SHORT)
    assert [each.kind for each in setup.findings] == ['magnitude']
    assert 'without sign' in setup.obstacle
    for offset in (400.0, -data.tau.min(axis=0)):  # which friction models have
        lifted = data.tau + offset
        assert find_setup([replace(data, tau=lifted, tau_filtered=lifted)], SHORT)[0].findings == ()


@pytest.mark.slow
@pytest.mark.parametrize('factor', [1e-3, 1e3])
def test_the_size_of_the_efforts_does_not_matter(factor: float) -> None:
    turn = np.where(np.arange(3) == 2, -1.0, 1.0)
    data = changed(recorded(1, SHORT), np.eye(3), factor * np.diag(turn))
    assert kinds(find_setup([data], SHORT)[0]) == [('torque', (SHORT.joint_names[2],))]


@pytest.mark.slow
@pytest.mark.parametrize(('factor', 'masses'), [(1e-2, 0.0), (1e2, 0.0), (1e2, 1.0)])
def test_the_size_of_the_arm_does_not_matter(factor: float, masses: float) -> None:
    """Lengths and gravity a hundred times as large make the same motion, with torques that grow by the square."""
    data, arm = recorded(1), replace(ARM, inertial=masses * ARM.inertial)
    placements, tip, inertial = np.array(arm.placements), np.array(arm.tip), np.array(arm.inertial)
    placements[:, :3, 3] *= factor
    tip[:3, 3] *= factor
    inertial[:, :6] *= factor**2
    inertial[:, 6:9] *= factor
    large = replace(
        arm,
        placements=placements,
        tip=tip,
        inertial=inertial,
        rotor_inertia=factor**2 * arm.rotor_inertia,
        gravity=factor * arm.gravity,
    )
    tau = factor**2 * data.tau
    before, after = (
        find_setup([each], of, units_only=True)[1].alternatives[0]  # as described; others may tie
        for each, of in ((data, arm), (replace(data, tau=tau, tau_filtered=tau), large))
    )
    np.testing.assert_allclose(after.error, factor**2 * before.error, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'joint'), [(SHORT, 1), (ARM, 4), (SHORT, 2)])
def test_friction_that_drives_a_joint_is_no_reversed_torque(arm: RobotModel, joint: int) -> None:
    """A description is contradicted only by what predicts better than anything fitted to the recording as it is."""
    rng, sizes = np.random.default_rng(joint), np.where(np.arange(arm.n) == joint, -3.0, 3.0) * SIZES[: arm.n]
    motion = fourier_motion(arm.n, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(arm, *motion[1:]) + sizes * np.sign(motion[2])
    torque += 0.05 * SIZES[: arm.n] * rng.standard_normal(torque.shape)
    assert find_setup([dataset(arm, motion, torque)], arm)[0].findings == ()


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'seed', 'friction'), [(SHORT, 1, 1.0), (ARM, 3, 0.03)])
def test_torques_that_are_all_reversed_are_no_friction_that_drives(arm: RobotModel, seed: int, friction: float) -> None:
    """Bodies of negative mass, and friction that drives every joint, explain them as well; two of them explain less."""
    rng, sizes = np.random.default_rng(seed), SIZES[: arm.n]
    motion = fourier_motion(arm.n, rng, size=0.15, seconds=12.0)
    noise = 0.05 * sizes * rng.standard_normal((1200, arm.n))
    torque = pinocchio_torque(arm, *motion[1:]) + friction * sizes * np.sign(motion[2]) + noise
    setup, _ = find_setup([dataset(arm, motion, -torque)], arm)
    assert kinds(setup) == [('torque', arm.joint_names)]


ROLLING = """<robot name="rolling"><link name="base"/>
<joint name="tilt" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="1 0 0"/>
<limit lower="-3" upper="3" velocity="3" effort="100"/></joint>
<link name="arm"><inertial><origin xyz="0 0.15 0"/><mass value="6"/>
<inertia ixx="0.05" iyy="0.01" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="roll" type="revolute"><parent link="arm"/><child link="hand"/><origin xyz="0 0.3 0"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" velocity="3" effort="100"/></joint>
<link name="hand"><inertial><origin xyz="0.05 0.1 0"/><mass value="3"/>
<inertia ixx="0.02" iyy="0.01" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


@pytest.mark.parametrize('seed', range(2))
def test_magnitudes_of_a_single_joint_are_told(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = RobotModel.from_urdf(ROLLING.replace('name="roll" type="revolute"', 'name="roll" type="fixed"'))
    time, omega = np.arange(3000) / 100.0, np.array([1.3, 2.1 + 0.1 * seed])
    swing = 0.6 * np.stack([np.sin(np.outer(omega, time)), np.cos(np.outer(omega, time))])
    q, dq = swing[0].sum(axis=0), omega @ swing[1]
    ddq = -(omega**2) @ swing[0]
    dq, motion = dq[:, None], (time, q[:, None] - 0.5 * np.pi, dq[:, None], ddq[:, None])  # about where it hangs
    torque = pinocchio_torque(arm, *motion[1:]) + 1.0 * np.sign(dq)
    torque = np.abs(torque + 0.05 * rng.standard_normal(torque.shape))
    (finding,) = find_setup([dataset(arm, motion, torque)], arm)[0].findings
    assert finding.kind == 'magnitude'


@pytest.mark.parametrize('least', [0.4, -0.4])
def test_a_torque_of_one_joint_that_keeps_its_sign_is_no_magnitude(least: float) -> None:
    """A load in one direction, with what no model knows: it stays away from zero, or passes it now and then."""
    rng = np.random.default_rng(0)
    arm = RobotModel.from_urdf(ROLLING.replace('name="roll" type="revolute"', 'name="roll" type="fixed"'))
    time, swing = np.arange(3000) / 100.0, np.outer(np.arange(3000) / 100.0, [1.3, 2.1])
    q, dq = 0.02 * np.sin(swing).sum(axis=1), 0.02 * np.cos(swing) @ [1.3, 2.1]
    motion = (time, q[:, None], dq[:, None], -0.02 * (np.sin(swing) @ [1.3**2, 2.1**2])[:, None])
    unknown = np.interp(np.arange(3000), np.arange(0, 3000, 20), rng.standard_normal(150))[:, None]
    torque = unknown - unknown.min()
    torque += least * np.sqrt(np.mean(torque**2))
    assert find_setup([dataset(arm, motion, torque)], arm)[0].findings == ()


@pytest.mark.parametrize(('sign', 'found'), [(1.0, ['magnitude']), (-1.0, [])])
def test_a_parked_joint_of_both_signs_shows_that_efforts_have_them(sign: float, found: list[str]) -> None:
    """The other joint's load keeps its sign and comes down to nothing, as where an arm is lowered until it hangs."""
    rng = np.random.default_rng(0)
    arm, swing = RobotModel.from_urdf(ROLLING), np.outer(np.arange(3000) / 100.0, [1.3, 2.1])
    motion = np.zeros((3, 3000, 2))
    motion[0, :, 0] = 0.02 * np.sin(swing).sum(axis=1)
    motion[1, :, 0] = 0.02 * np.cos(swing) @ [1.3, 2.1]
    motion[2, :, 0] = -0.02 * np.sin(swing) @ [1.3**2, 2.1**2]
    unknown = np.interp(np.arange(3000), np.arange(0, 3000, 20), rng.standard_normal(150))
    torque = 0.1 * np.abs(rng.standard_normal((3000, 2)))
    torque[::2] *= sign
    torque[:, 0] = unknown - unknown.min()
    data = dataset(arm, (np.arange(3000) / 100.0, *motion), torque)
    assert [each.kind for each in find_setup([data], arm)[0].findings] == found


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
def test_faults_that_no_motion_tells_apart_are_both_named(seed: int) -> None:
    # Mirrored, a hand that rolls about the arm's own axis has another sign of position, or of torque. Gravity may keep
    # both torques positive, which makes them no magnitudes.
    arm = RobotModel.from_urdf(ROLLING)
    rng = np.random.default_rng(seed)
    motion = fourier_motion(2, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(arm, *motion[1:]) + 0.3 * np.sign(motion[2])
    data = dataset(arm, motion, torque + 0.02 * rng.standard_normal(torque.shape))
    (finding,) = find_setup([changed(data, np.eye(2), np.diag([1.0, -1.0]))], arm)[0].findings
    assert finding.joints == ('roll',)
    assert 'the torque of roll' in finding.text
    assert 'the position of roll' in finding.text
    assert 'does not tell apart' in finding.text


PLANAR = """<robot name="planar"><link name="base"/>
<joint name="first" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" velocity="3" effort="100"/></joint>
<link name="one"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="second" type="revolute"><parent link="one"/><child link="two"/><origin xyz="0 0 0.3"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="3" effort="100"/></joint>
<link name="two"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


@pytest.mark.slow
def test_a_reversed_torque_is_found_without_masses_and_links_without_a_lever() -> None:
    # Rods from joint to joint would lie on the axes, and need no torque.
    arm = RobotModel.from_urdf(PLANAR)
    rng = np.random.default_rng(1)
    motion = fourier_motion(2, rng, size=0.8, seconds=12.0)
    q, dq, ddq = motion[1:]
    torque = np.stack([0.9 * ddq[:, 0] + 0.4 * ddq[:, 1], 0.4 * ddq[:, 0] + 0.4 * ddq[:, 1]], axis=1) + 0.3 * np.sign(
        dq
    )
    data = dataset(arm, motion, torque + 0.02 * rng.standard_normal(q.shape))
    assert find_setup([data], arm)[0].findings == ()
    setup, _ = find_setup([changed(data, np.eye(2), np.diag([1.0, -1.0]))], arm)
    assert 'the torque of' in setup.findings[0].text


def test_a_set_up_is_written_and_read() -> None:
    described = SetUp.as_described(ARM)
    finding = Finding(kind='axis', joints=('elbow_joint',), text='reversed', remedy='turn it')
    setup = replace(described, zero=np.arange(6.0), findings=(finding,))
    again = SetUp.from_dict(setup.to_dict(), 6)
    assert again.to_dict() == setup.to_dict()
    assert again.notes == ('set-up: reversed; turn it',)
    position, velocity, torque = setup.state(np.ones(6), np.ones(6), np.ones(6))
    np.testing.assert_array_equal(position, np.ones(6) + np.arange(6.0))
    np.testing.assert_array_equal([velocity, torque], np.ones((2, 6)))
