# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The exported ros2_control package: its torque law compiled and compared with the identified torque."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from dynamics_helpers import arm
from export_helpers import RAIL, identified

from robotid_ros.errors import ModelWarning
from robotid_ros.export.formats import export
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel

# Reads friction share and speed, effort share, rise time, stiffness, damping, then a row for each update: mode, step,
# q, dq, and the reference's positions, velocities and accelerations. Prints the command, or what is wrong.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include "torque_law.hpp"
using namespace NAME;
static long allocations = 0;
extern "C" void * __libc_malloc(std::size_t);
extern "C" void * malloc(std::size_t size) { ++allocations; return __libc_malloc(size); }
static double next()
{
  double value = 0.0;
  if (std::scanf("%lf", &value) != 1) std::exit(0);
  return value;
}
int main()
{
  static char in[1 << 16], out[1 << 16];
  std::setvbuf(stdin, in, _IOFBF, sizeof in);
  std::setvbuf(stdout, out, _IOFBF, sizeof out);
  TorqueLaw law;
  law.settings.friction_share = next();
  law.settings.friction_speed = next();
  law.settings.effort_share = next();
  law.settings.rise_time = next();
  for (double & value : law.settings.stiffness) value = next();
  for (double & value : law.settings.damping) value = next();
  law.begin();
  for (;;) {
    Values q, dq;
    std::array<Reference, N> reference;
    law.settings.mode = static_cast<Mode>(static_cast<int>(next()));
    const double step = next();
    for (double & value : q) value = next();
    for (double & value : dq) value = next();
    for (Reference & each : reference) each.position = next();
    for (Reference & each : reference) each.velocity = next();
    for (Reference & each : reference) each.acceleration = next();
    const long before = allocations;
    const char * wrong = law.update(step, q, dq, reference);
    if (allocations != before) wrong = "memory was allocated";
    if (wrong) { std::printf("%s\n", wrong); continue; }
    for (double value : law.command) std::printf("%.17g ", value);
    std::printf("\n");
  }
}
"""
Run = Callable[..., list[str]]


def rail() -> RobotModel:
    with pytest.warns(ModelWarning, match='held at zero'):  # the gripper
        return RobotModel.from_urdf(RAIL, tip='hand')


def smooth(model: RobotModel) -> IdentificationResult:
    return identified(model, 'stribeck+load+offset+spring', smooth=True)


@pytest.fixture(scope='module', params=['ur10e', 'rail'])
def law(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[TorquePredictor, Run]:
    """Return the identified torque of an arm, and its compiled torque law."""
    if shutil.which('g++') is None:
        pytest.skip('needs g++')
    model = rail() if request.param == 'rail' else arm(request.param)
    result, folder = smooth(model), tmp_path_factory.mktemp('law')
    package = export(model, result, 'ros2_control', folder)[0][0].parent
    (package / 'main.cpp').write_text(PROGRAM.replace('NAME', package.name), encoding='ascii')
    flags = ['-std=c++17', '-O1', '-Wall', '-Wextra', '-Wpedantic', '-Werror']
    subprocess.run(['g++', *flags, 'main.cpp', '-o', 'law'], cwd=package, check=True)

    def run(settings: list[float], gains: np.ndarray, rows: np.ndarray) -> list[str]:
        text = '\n'.join(' '.join(map(repr, map(float, row))) for row in (settings, gains.ravel(), *rows))
        done = subprocess.run([package / 'law'], input=text, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return TorquePredictor(model, result), run


def parts(predictor: TorquePredictor, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the torque of bodies with what friction models have at rest, and that of friction."""
    rigid = predictor.rigid_torque(q, dq, ddq)
    still = predictor.torque(q, 0.0 * dq, 0.0 * dq) - predictor.rigid_torque(q, 0.0 * dq, 0.0 * dq)
    return rigid + still, predictor.torque(q, dq, ddq) - rigid - still


@pytest.mark.slow
@pytest.mark.parametrize('mode', [0, 1, 2])
def test_the_torque_is_the_identified_one_within_its_limits(law: tuple[TorquePredictor, Run], mode: int) -> None:
    predictor, run = law
    n, rng, count = predictor.model.n, np.random.default_rng(mode), 300
    q, wanted = rng.uniform(-2.0, 2.0, (2, count, n))
    dq, speed, acceleration = rng.uniform(-1.0, 1.0, (3, count, n))
    share, width, effort, rise, step = 0.7, 0.4, 0.8, 0.05, 0.002
    gains = rng.uniform(0.0, 50.0, (2, n))
    rows = np.concatenate([np.tile([mode, step], (count, 1)), q, dq, wanted, speed, acceleration], axis=1)
    got = np.array([line.split() for line in run([share, width, effort, rise], gains, rows)], dtype=float)
    bodies, _ = parts(predictor, q, dq if mode == 2 else 0.0 * dq, acceleration if mode == 2 else 0.0 * dq)
    # Friction by load takes the torque of the bodies in that mode: at the velocities of the friction it is another one.
    load = bodies - (parts(predictor, q, 0.0 * dq, 0.0 * dq)[0] - predictor.rigid_torque(q, 0.0 * dq, 0.0 * dq))
    moving = dq if mode == 0 else speed
    friction = predictor.result.friction
    values = predictor.result.friction_values
    rubs = friction.torque(moving, values, load, q) - friction.torque(0.0 * moving, values, load, q)
    expected = bodies + share * np.clip(2.0 - np.abs(moving) / width, 0.0, 1.0) * rubs
    if mode:
        expected += gains[0] * (wanted - q) + gains[1] * (speed - dq)
    most = effort * predictor.model.limits.effort
    expected = np.clip(expected, -most, most)
    for k in range(1, count):
        change = np.where(np.isfinite(most), most * step / rise, np.inf)
        expected[k] = np.clip(expected[k], expected[k - 1] - change, expected[k - 1] + change)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    if np.isfinite(most).all():
        assert (np.abs(np.diff(got, axis=0)) > 0.99 * most * step / rise).any()  # the limits were met


def test_what_the_controller_cannot_know_ends_it(law: tuple[TorquePredictor, Run]) -> None:
    predictor, run = law
    n = predictor.model.n
    row = np.zeros(2 + 5 * n)
    row[:2] = 1, 0.002
    late, blind, lost, endless = (row.copy() for _ in range(4))
    late[1], blind[2], lost[n + 1], endless[1] = 0.021, np.nan, np.inf, np.nan
    first = late.copy()  # has no update before it
    first[1] = 2.0
    lines = run([0.0, 0.5, 1.0, 0.05], np.ones((2, n)), np.array([first, row, late, row, blind, lost, endless]))
    assert [line.split()[0] for line in lines[2::2]] == ['the', 'a', 'the']
    assert lines[5] == 'a position or velocity is not finite'
    assert all(len(lines[k].split()) == n and float(lines[k].split()[0]) is not None for k in (0, 1, 3))


def test_an_arm_is_held_where_it_was_led_by_hand(law: tuple[TorquePredictor, Run]) -> None:
    predictor, run = law
    n = predictor.model.n
    rows = np.full((4, 2 + 5 * n), np.nan)  # nothing leads it
    rows[:, 1], rows[:, 2 : 2 + 2 * n] = 0.002, 0.0
    rows[1:3, 2 : 2 + n] = 0.3
    rows[3, 2 : 2 + n] = 0.2
    stiff = np.tile([[10.0], [0.0]], (1, n))
    rest = predictor.torque(rows[:, 2 : 2 + n], np.zeros((4, n)), np.zeros((4, n)))
    most = predictor.model.limits.effort
    for before, held in ((0, 0.3), (1, 0.0)):  # led by hand, and held from the start
        rows[:, 0] = before, before, 1, 1
        got = [line.split() for line in run([0.0, 0.5, 1.0, 1e-9], stiff, rows)]
        expected = np.clip(rest + 10.0 * (held - np.array([[0.0], [0.3], [0.3], [0.2]])), -most, most)
        np.testing.assert_allclose(np.array(got, float)[2:], expected[2:], rtol=0, atol=1e-11 * np.abs(rest).max())


def test_ripple_is_not_fed_back(tmp_path: Path) -> None:
    model = arm('ur10e')
    result = identified(model, 'coulomb_viscous+ripple')
    names = [k for k, name in enumerate(result.friction_names) if name.startswith('ripple')]
    values = result.friction_values.copy()
    values[:, names] = 0.0
    other = replace(result, friction_values=values)
    one, two = (
        export(model, each, 'ros2_control', tmp_path / name)[0][0] for name, each in (('a', result), ('b', other))
    )
    assert one.read_text() == two.read_text()


def test_a_package_has_its_names_and_limits_however_hostile(tmp_path: Path) -> None:
    model = arm('ur10e')
    hostile = replace(model, joint_names=('a"; evil(); "', *model.joint_names[1:]))
    paths, _ = export(hostile, identified(hostile, 'stribeck'), 'ros2_control', tmp_path)
    folder = paths[0].parent
    assert sorted(path.name for path in paths) == sorted(path.name for path in folder.iterdir())
    text = (folder / 'description.hpp').read_text(encoding='ascii')
    assert '"a\\042; evil(); \\042", "shoulder_lift_joint"' in text
    law = (folder / 'torque_law.hpp').read_text(encoding='ascii')
    assert f'{{{", ".join(map(repr, model.limits.effort.tolist()))}}}' in law
    assert not any(re.search('@[A-Z]+@', path.read_text(encoding='ascii')) for path in paths)
    for name, kind in (('plugin', 'TorqueController'), ('solver', 'Solver')):
        assert ElementTree.parse(folder / f'{name}.xml').find('class').get('type') == f'ur10e_torque::{kind}'
    assert ElementTree.parse(folder / 'package.xml').findtext('name') == folder.name == 'ur10e_torque'


@pytest.mark.parametrize('name', ['ur10e', 'rail'])
def test_a_package_builds_and_passes_its_tests_where_ros2_control_is(name: str, tmp_path: Path) -> None:
    prefixes = [Path(p) for p in os.environ.get('AMENT_PREFIX_PATH', '').split(':') if p]
    if not any((prefix / 'share' / 'controller_interface').is_dir() for prefix in prefixes):
        pytest.skip('needs ros2_control')
    model = rail() if name == 'rail' else arm(name)
    source, build = export(model, smooth(model), 'ros2_control', tmp_path)[0][0].parent, tmp_path / 'build'
    tests = any((prefix / 'share' / 'ament_cmake_gtest').is_dir() for prefix in prefixes)
    flags = [f'-DBUILD_TESTING={"ON" if tests else "OFF"}', '-DCMAKE_CXX_FLAGS=-O0 -Werror']
    subprocess.run(['cmake', '-S', source, '-B', build, *flags], check=True)
    subprocess.run(['cmake', '--build', build], check=True)
    assert (build / f'lib{source.name}.so').is_file()
    subprocess.run(['ctest', '--test-dir', build, '--output-on-failure'], check=True)
