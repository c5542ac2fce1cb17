# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Contact detection: false alarms of a simulated hour, delay of a push, joints that stick."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from dynamics_helpers import arm
from export_helpers import identified
from scipy.signal import lfilter

import robotid_ros
from robotid_ros.cli import main
from robotid_ros.data import Recording, write_csv
from robotid_ros.errors import IdentificationError
from robotid_ros.export.identified import identified_model
from robotid_ros.export.source_code import contact_header, write_code
from robotid_ros.identification import TorquePredictor
from robotid_ros.identification.setup import SetUp
from robotid_ros.loads.contact import (
    ContactDetector,
    ContactLevels,
    TorqueMonitor,
    contact_levels,
    smallest_push,
    standstill_friction,
)

RATE, CUTOFF = 100.0, 10.0


@pytest.mark.slow
def test_false_alarms_of_a_simulated_hour_are_as_stated() -> None:
    rate, cutoff, spread = 50.0, 5.0, np.array([2.0, 5.0])
    share = 1.0 - np.exp(-2.0 * np.pi * cutoff / rate)
    noise = np.random.default_rng(0).normal(size=(int(3600 * rate) + 200, 2))
    for _ in range(2):
        noise = lfilter([share], [1.0, share - 1.0], noise, axis=0)
    residual = spread * noise[200:] / noise.std(axis=0)
    detector = ContactDetector(spread=1.5 * spread, bandwidth=cutoff, friction=np.zeros(2), alarms_per_hour=20.0)
    alarms, before, moving = 0, np.zeros(2, dtype=bool), np.ones(2)
    for k, row in enumerate(residual):
        touched = detector.update(k / rate, row, moving)
        alarms += int((touched & ~before).sum())
        before = touched
    # Four standard deviations of a count to either side; samples show fewer crossings than the continuous process has.
    assert 5 <= alarms <= 38
    np.testing.assert_allclose(detector.threshold, spread * np.sqrt(2 * np.log(2 * 2 * cutoff * 3600 / 20)), rtol=0.1)
    rare = ContactDetector(spread=spread, bandwidth=cutoff, friction=np.zeros(2), alarms_per_hour=0.01)
    assert (np.abs(residual) < rare.threshold).all()


def test_a_torque_that_the_identification_turned_is_turned_as_it_comes() -> None:
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous')
    names = [model.joint_names[1], model.joint_names[4]]
    sign = np.where(np.isin(model.joint_names, names), -1.0, 1.0)
    described = SetUp.as_described(model)
    sound, turned = (
        TorqueMonitor(TorquePredictor(model, replace(result, setup=setup)), cutoff=CUTOFF)
        for setup in (described, replace(described, torque=np.diag(sign)))
    )
    rng, found = np.random.default_rng(3), []
    for k in range(40):
        q, dq, torque = rng.normal(size=(3, 6))
        found = [sound.update(k / RATE, q, dq, torque), turned.update(k / RATE, q, dq, sign * torque)]
    one, other = found
    for name in ('measured', 'external', 'predicted'):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert np.abs(one.measured).min() > 0.0


def test_a_push_of_20_n_at_the_tip_is_felt_within_a_tenth_of_a_second() -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous')
    predictor = TorquePredictor(model, result)
    monitor = TorqueMonitor(predictor, cutoff=CUTOFF)
    detector = ContactDetector(
        spread=np.full(6, 2.0), bandwidth=CUTOFF, friction=standstill_friction(result.friction, result.friction_values)
    )
    time = np.arange(int(20 * RATE)) / RATE
    phase, middle = np.arange(6.0), np.array([0.0, -1.2, 1.0, -0.5, 0.5, 0.0])
    q = middle + 0.4 * np.sin(1.5 * time[:, None] + phase)
    dq, ddq = 0.6 * np.cos(1.5 * time[:, None] + phase), -0.9 * np.sin(1.5 * time[:, None] + phase)
    whole = pinocchio.buildModelFromXML(model.source)
    data = whole.createData()
    tip = whole.getFrameId('tool0')
    torque = predictor.torque(q, dq, ddq) + np.random.default_rng(1).normal(0.0, 2.0, q.shape)
    start = int(15 * RATE)
    for k in range(start, len(q)):
        jacobian = pinocchio.computeFrameJacobian(whole, data, q[k], tip, pinocchio.LOCAL_WORLD_ALIGNED)
        torque[k] += jacobian[:3].T @ [0.0, 20.0 * 0.6, 20.0 * 0.8]
    felt = []
    for k in range(len(q)):
        seen = monitor.update(time[k], q[k], dq[k], torque[k])
        if seen is not None and detector.update(time[k], seen.external, seen.velocity).any():
            felt.append(time[k])
    assert felt
    assert 0.0 < felt[0] - time[start] < 0.1


def test_a_joint_that_sticks_may_hold_its_friction_and_no_more() -> None:
    result = identified(arm('ur10e'), 'stribeck')
    level = standstill_friction(result.friction, result.friction_values)
    static = result.friction_values[:, result.friction_names.index('static')]
    coulomb = result.friction_values[:, result.friction_names.index('coulomb')]
    assert (level >= 0.95 * np.minimum(static, coulomb)).all()
    assert (level < 1.2 * np.maximum(static, coulomb) + 0.2).all()
    detector = ContactDetector(spread=np.full(6, 0.1), bandwidth=CUTOFF, friction=level)
    limit = detector.threshold
    assert not detector.update(0.0, 0.9 * (level + limit), np.zeros(6)).any()
    assert detector.update(0.01, 1.1 * (level + limit), np.zeros(6)).all()
    assert detector.update(0.02, 0.6 * (level + limit), np.zeros(6)).all()  # it has not ended
    assert not detector.update(0.03, 0.4 * (level + limit), np.zeros(6)).any()
    assert not detector.update(0.04, 1.1 * limit, np.ones(6)).any()  # it has just left its standstill
    assert detector.update(0.2, 1.1 * limit, np.ones(6)).all()  # a joint in motion has no such allowance
    np.testing.assert_array_equal(detector.threshold, limit)  # contacts and standstill teach nothing


@pytest.mark.parametrize('seconds', [60.0, 300.0])
def test_levels_of_recordings_are_passed_no_more_than_stated(seconds: float) -> None:
    """Exponential tails, far heavier than a normal distribution's; judged by their own law, on 40 draws."""
    rng = np.random.default_rng(0)
    spread, rate = np.array([1.0, 4.0]), 10.0  # of independent samples
    expected = []
    for _ in range(40):
        runs = [(rate, rng.laplace(0.0, spread, (int(seconds * rate), 2))) for _ in range(2)]
        found = contact_levels(runs, ('a', 'b'), 5.0, alarms_per_hour=1.0)
        assert found.seconds == pytest.approx(2.0 * seconds)
        expected.append(float(np.sum(3600.0 * rate * np.exp(-found.levels / spread))))
    assert np.median(expected) < 1.0
    assert np.mean(np.array(expected) > 1.0) < 0.4  # two minutes tell a tail only so well
    exact = spread * np.log(2.0 * 3600.0 * rate)  # with that, one false alarm an hour in all
    assert (found.levels < 2.5 * exact).all()  # and it says something


def test_a_recording_that_errs_more_raises_the_levels() -> None:
    rng = np.random.default_rng(1)
    quiet, loud = ((100.0, size * rng.normal(size=(3000, 2))) for size in (1.0, np.array([1.0, 3.0])))
    alone = contact_levels([quiet], ('a', 'b'), 10.0)
    both = contact_levels([quiet, loud], ('a', 'b'), 10.0)
    assert both.levels[1] > 2.0 * alone.levels[1]
    assert both.levels[0] < 1.5 * alone.levels[0]
    # as one recording, they are compared with nothing; as two, the loud one passes the level of the quiet one
    one = contact_levels([(100.0, np.concatenate([quiet[1], loud[1]]))], ('a', 'b'), 10.0)
    passes = np.abs(loud[1][:, 1]).max() / alone.levels[1]
    assert both.levels[1] == pytest.approx(one.levels[1] * passes)
    again = ContactLevels.from_dict(both.to_dict())
    np.testing.assert_array_equal(again.levels, both.levels)
    for wrong in (None, {}, {'levels': {'a': 1.0}}, {**both.to_dict(), 'cutoff': 'fast'}):
        with pytest.raises(IdentificationError, match='no levels of robotid contact'):
            ContactLevels.from_dict(wrong)
    with pytest.raises(IdentificationError, match='at least 5 s without contact, got 1 s'):
        contact_levels([(100.0, quiet[1][:100])], ('a', 'b'), 10.0)


def test_the_smallest_push_is_that_of_statics() -> None:
    """A push is felt from the force on at which Pinocchio's torque of some joint reaches its level."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = arm('ur10e')
    levels = np.array([10.0, 12.0, 7.0, 2.0, 2.0, 1.0])
    q = np.random.default_rng(2).uniform(-1.5, 1.5, (40, 6))
    whole = pinocchio.buildModelFromXML(model.source)
    data, tip = whole.createData(), whole.getFrameId(model.tip_name)
    directions = np.random.default_rng(3).normal(size=(400, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    force = []
    for row in q:
        jacobian = pinocchio.computeFrameJacobian(whole, data, row, tip, pinocchio.LOCAL_WORLD_ALIGNED)[:3]
        force.append(1.0 / np.max(np.abs(directions @ jacobian) / levels, axis=1))
    median, most = smallest_push(model, levels, q)
    assert median == pytest.approx(np.median(force), rel=0.05)
    assert most == pytest.approx(np.quantile(force, 0.9), rel=0.08)


@pytest.mark.slow
def test_the_header_feels_what_the_monitor_feels(tmp_path: Path) -> None:
    """The generated C++ gives the external torque of the live monitor, sample by sample, and the same contacts."""
    compiler = shutil.which('g++') or shutil.which('c++')
    if compiler is None:
        pytest.skip('needs a C++ compiler')
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous')
    predictor = TorquePredictor(model, result)
    rng = np.random.default_rng(4)
    time = np.cumsum(rng.uniform(0.001, 0.003, 1500))
    q = 0.5 * np.sin(time[:, None] + np.arange(6.0))
    dq, ddq = 0.5 * np.cos(time[:, None] + np.arange(6.0)), -0.5 * np.sin(time[:, None] + np.arange(6.0))
    torque = predictor.torque(q, dq, ddq) + rng.normal(0.0, 0.5, q.shape)
    torque[900:1200, 2] += 30.0
    levels = ContactLevels(
        joint_names=model.joint_names, cutoff=CUTOFF, alarms_per_hour=1.0, seconds=60.0, levels=np.full(6, 8.0)
    )
    monitor, seen = TorqueMonitor(predictor, cutoff=CUTOFF), {}
    detector = ContactDetector(spread=np.ones(6), bandwidth=CUTOFF, friction=np.zeros(6), levels=levels)
    for k in range(len(time)):
        found = monitor.update(time[k], q[k], dq[k], torque[k])
        if found is not None:
            seen[k] = (found.external, detector.update(time[k], found.external, found.velocity))
    write_code(identified_model(model, result), tmp_path, 'cpp')
    (tmp_path / 'contact.hpp').write_text(contact_header(levels, 'ur10e_dynamics'))
    rows = np.hstack([np.diff(time, prepend=time[0] - 1.0)[:, None], q, dq, torque])
    np.savetxt(tmp_path / 'rows.txt', rows, fmt='%.17g')
    (tmp_path / 'main.cpp').write_text(
        """#include <cstdio>
#include "contact.hpp"
int main() {
  ur10e_dynamics::Contact contact;
  double row[19];
  for (;;) {
    for (double & x : row) if (std::scanf("%lf", &x) != 1) return 0;
    contact.update(row[0], row + 1, row + 7, row + 13);
    for (int i = 0; i < 6; ++i) std::printf("%.17g %d ", contact.external[i], contact.touched[i] ? 1 : 0);
    std::printf("\\n");
  }
}
"""
    )
    subprocess.run(
        [compiler, '-std=c++11', '-O1', '-Wall', '-Wextra', '-Werror', 'main.cpp', '-o', 'main'],
        cwd=tmp_path,
        check=True,
    )
    with open(tmp_path / 'rows.txt') as rows_file:
        text = subprocess.run([tmp_path / 'main'], stdin=rows_file, capture_output=True, text=True, check=True).stdout
    table = np.array([line.split() for line in text.splitlines()], dtype=float).reshape(-1, 6, 2)
    compared = [k for k in seen if k > 500]
    for k in compared:
        np.testing.assert_allclose(table[k, :, 0], seen[k][0], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(table[k, :, 1] > 0.5, seen[k][1])
    assert table[1100, 2, 1] == 1.0
    assert not table[800, :, 1].any()


def test_the_command_writes_levels_and_counts_alarms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous')
    result.save(tmp_path / 'result.yaml')
    predictor = TorquePredictor(model, result)
    for name, push in (('one', 0.0), ('two', 0.0), ('pushed', 40.0)):
        time = np.arange(0.0, 10.0, 0.01)
        phase = np.arange(6.0) + len(name)
        q, dq = 0.5 * np.sin(time[:, None] + phase), 0.5 * np.cos(time[:, None] + phase)
        torque = predictor.torque(q, dq, -q) + np.random.default_rng(len(name)).normal(0.0, 0.5, q.shape)
        torque[600:700, 2] += push
        write_csv(
            tmp_path / f'{name}.csv', Recording(joint_names=model.joint_names, time=time, position=q, effort=torque)
        )
    free = [str(tmp_path / 'one.csv'), str(tmp_path / 'two.csv')]
    robot = ['--robot', str(Path(robotid_ros.__file__).parent / 'robots' / 'ur10e.urdf')]
    start = ['contact', str(tmp_path / 'result.yaml'), *robot, '--with', *free, '--out', str(tmp_path / 'out')]
    assert main([*start, '--judge', str(tmp_path / 'pushed.csv')]) == 0
    said = capsys.readouterr().out
    assert 'pushed.csv: 1 alarms in 10 s' in said
    assert 'smallest push at' in said
    content = yaml.safe_load((tmp_path / 'out' / 'contact.yaml').read_text())
    assert ContactLevels.from_dict(content['contact']).joint_names == model.joint_names
    assert (tmp_path / 'out' / 'contact.hpp').is_file()
    for wrong, says in (
        (['--alarms', '0'], 'expected a positive number'),
        (['--filter', '-1'], 'expected a positive'),
        (['--filter', '60'], 'expected less than half the rate of'),
    ):
        assert main([*start, *wrong]) == 2
        assert says in capsys.readouterr().err
