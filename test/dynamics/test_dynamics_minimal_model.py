# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Generated minimal models: length, equality of all paths, emitted sources, cache."""

import ctypes
import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from dynamics_helpers import (
    ARMS,
    LWR4_MDH,
    PUMA560_MDH,
    UR10_DH,
    PinocchioArm,
    arm,
    dh_robots,
    motion,
    without_compiler,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.dynamics import base_parameters, full_regressor, inverse_dynamics, minimal_model
from robotid_ros.dynamics.codegen.kernel import cache_directory, compiled_kernel, find_compiler
from robotid_ros.dynamics.codegen.source import SINES_COSINES
from robotid_ros.errors import DataError, ModelError
from robotid_ros.export.source_code import write_code
from robotid_ros.model import RobotModel

DRIVES = {'rotor_inertia': True, 'viscous': True, 'coulomb': True}
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason='no C compiler here')


@pytest.fixture(scope='module')
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp('cache')


@pytest.fixture(autouse=True)
def cache(shared_cache, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(shared_cache))


@pytest.fixture
def empty_cache(cache, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('rows', 'build', 'multiplications', 'additions'),
    [
        (UR10_DH, RobotModel.from_dh, 232, 216),
        (PUMA560_MDH, RobotModel.from_mdh, 242, 230),
        (LWR4_MDH, RobotModel.from_mdh, 277, 267),
    ],
)
def test_it_is_as_short_as_it_has_been(rows, build, multiplications, additions):
    counted = minimal_model(build(rows), **DRIVES).operations
    assert counted[0] <= multiplications
    assert counted[1] <= additions


def test_the_count_is_that_of_the_emitted_code():
    model = minimal_model(RobotModel.from_dh(UR10_DH), **DRIVES)
    body = model.c_source().split('\nvoid inverse_dynamics(')[2].split('\n}\n')[0]
    assert (body.count(' * '), body.count(' + ') + body.count(' - ')) == model.operations
    assert body.count(' = sine') + body.count(' = cosine') == 10


@pytest.mark.slow
@pytest.mark.parametrize('name', ARMS)
def test_real_arms_move_as_pinocchios(name):
    model = arm(name)
    minimal = minimal_model(model, tolerance=1e-11)
    q, dq, ddq = motion(model.n, 21)
    expected = PinocchioArm(model).inverse_dynamics(q, dq, ddq)
    for compiled in (True, False):
        got = minimal.inverse_dynamics(q, dq, ddq, compiled=compiled)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('name', ['ur10', 'panda'])
def test_one_sample_after_the_other_moves_as_pinocchios(name):
    model = arm(name)
    minimal = minimal_model(model, tolerance=1e-11)
    q, dq, ddq = motion(model.n, 21)
    expected = PinocchioArm(model).inverse_dynamics(q, dq, ddq)
    wide = np.asfortranarray(np.stack([q, dq, ddq], axis=1).repeat(2, axis=2))[:, :, ::2]  # not contiguous
    got = [minimal.inverse_dynamics(*row[:, None]) for row in wide]  # the first compiles the function of one sample
    np.testing.assert_allclose(np.concatenate(got), expected, rtol=0, atol=1e-10)
    one = q[:1], dq[:1], ddq[:1]
    for changed in (one[0].astype(np.float32).astype('>f8'), one[0].astype(int), one[0].tolist()):
        mixed = minimal.inverse_dynamics(changed, *one[1:])
        batch = minimal.inverse_dynamics(*(np.repeat(x, 2, axis=0) for x in (changed, *one[1:])))
        np.testing.assert_allclose(mixed[0], batch[1], rtol=0, atol=1e-10)
    for wrong in (one[0].T, one[0][0], one[0][:, :-1], np.repeat(one[0], 2, axis=0), None):
        with pytest.raises(DataError):
            minimal.inverse_dynamics(one[0], wrong, one[2])
    doubled = minimal.with_parameters(2.0 * minimal.parameters)
    for _ in range(2):
        np.testing.assert_allclose(doubled.inverse_dynamics(*one), 2.0 * expected[:1], rtol=0, atol=1e-10)


@pytest.mark.slow
@needs_compiler
def test_one_sample_in_several_threads_at_once():
    model = arm('ur10')
    minimal = minimal_model(model)
    q, dq, ddq = motion(model.n, 4)
    expected = minimal.inverse_dynamics(q, dq, ddq)

    def largest(row):
        return max(
            float(np.abs(minimal.inverse_dynamics(*(x[row : row + 1] for x in (q, dq, ddq))) - expected[row]).max())
            for _ in range(3000)
        )

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(largest, range(4))) < 1e-10


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(dh_robots(), st.tuples(*[st.booleans()] * 3))
def test_all_paths_agree_on_random_arms(robot, flags):
    options = dict(zip(DRIVES, flags, strict=True))
    minimal = minimal_model(robot, **options)
    q, dq, ddq = motion(robot.n, 10, seed=7)
    full = full_regressor(robot, q, dq, ddq, **options)
    delta = np.random.default_rng(8).normal(size=full.shape[2])
    beta = minimal.base.map @ delta
    expected = full @ delta
    atol = 1e-10 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(minimal.inverse_dynamics(q, dq, ddq, beta, compiled=False), expected, atol=atol)
    np.testing.assert_allclose(minimal.regressor(q, dq, ddq) @ beta, expected, atol=atol)
    zero = np.zeros_like(q)
    at_rest = full_regressor(robot, q, zero, zero, **options) @ delta
    np.testing.assert_allclose(minimal.gravity(q, beta, compiled=False), at_rest, atol=atol)
    # The emitted module, and the model's own parameters through the recursion.
    module: dict[str, object] = {}
    exec(minimal.python_source(), module)
    torques = module['inverse_dynamics'](q, dq, ddq)
    np.testing.assert_allclose(torques, inverse_dynamics(robot, q, dq, ddq), atol=atol)


@pytest.mark.slow
@needs_compiler
@settings(max_examples=4, deadline=None, derandomize=True)
@given(dh_robots(largest=4))
def test_compiled_and_numpy_kernels_agree(robot):
    minimal = minimal_model(robot, viscous=True, coulomb=True, offset=True)
    for count in (1, 1, 7, 8, 19):  # from the second call on, one sample has a function of its own
        q, dq, ddq = motion(robot.n, count, seed=9)
        one, other = (minimal.inverse_dynamics(q, dq, ddq, compiled=compiled) for compiled in (True, False))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, float(np.abs(other).max(initial=0.0))))
        weights = np.random.default_rng(1).normal(size=minimal.regressor(q, dq, ddq).shape)
        slopes = [minimal.base.regressor_vjp(q, dq, ddq, weights, compiled=compiled) for compiled in (True, False)]
        for one, other in zip(*slopes, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, float(np.abs(other).max(initial=0.0))))


@needs_compiler
@pytest.mark.parametrize('angle', [1e3, 9.9e4, 1.1e5, -3e7, 1e12])
def test_compiled_sines_hold_for_large_angles(angle):
    minimal = minimal_model(RobotModel.from_dh(UR10_DH, inertial=arm('ur10').inertial))
    q = np.full((9, 6), angle) + np.linspace(-3, 3, 54).reshape(9, 6)
    zero = np.zeros_like(q)
    compiled, plain = (minimal.inverse_dynamics(q, zero, zero, compiled=c) for c in (True, False))
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-12 * np.abs(plain).max())


@needs_compiler
@pytest.mark.parametrize('start', [0, 1, 3])
def test_large_regressors_are_written_past_the_caches_wherever_they_begin(start):
    base = base_parameters(arm('ur5'))
    q, dq, ddq = motion(6, 6007)
    shape = (6007, 6, len(base.independent))
    store = np.full(start + int(np.prod(shape)) + 3, np.nan)
    out = store[start : start + int(np.prod(shape))].reshape(shape)
    base.regressor(q, dq, ddq, out=out)
    with without_compiler():
        np.testing.assert_allclose(out, base.regressor(q, dq, ddq), rtol=0, atol=1e-12)
    assert np.isnan(store[:start]).all()
    assert np.isnan(store[-3:]).all()


@needs_compiler
def test_a_nan_stays_in_its_sample():
    minimal = minimal_model(arm('ur5'))
    q, dq, ddq = motion(6, 9)
    q[4, 2] = np.nan
    torques = minimal.inverse_dynamics(q, dq, ddq)
    assert np.isnan(torques[4, 1:3]).all()
    assert np.isfinite(np.delete(torques, 4, axis=0)).all()


def test_friction_alone():
    base = arm('ur5')
    robot = base.with_inertial(base.inertial, damping=np.arange(6.0), friction=np.full(6, 0.5))
    minimal = minimal_model(robot, **DRIVES)
    rate = motion(6, 5)[1]
    np.testing.assert_allclose(minimal.friction(rate), np.arange(6.0) * rate + 0.5 * np.sign(rate), atol=1e-14)


@pytest.mark.slow
def test_rough_right_angles_can_be_taken_for_right():
    exact, snapped = (
        minimal_model(arm('xarm7'), snap=snap, tolerance=tol) for snap, tol in ((1e-12, 1e-9), (1e-4, 1e-4))
    )
    assert sum(snapped.operations) < 0.8 * sum(exact.operations)
    q, dq, ddq = motion(7, 20)
    difference = snapped.inverse_dynamics(q, dq, ddq) - exact.inverse_dynamics(q, dq, ddq)
    assert np.abs(difference).max() < 1e-3


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('source_of', ['ur10', 'panda', 'prismatic'])
def test_emitted_c_is_clean_and_right(tmp_path, source_of):
    if source_of == 'prismatic':
        rng = np.random.default_rng(3)
        robot = RobotModel.from_mdh(
            rng.normal(size=(4, 4)), types=['prismatic', 'revolute', 'prismatic', 'revolute'], inertial=np.ones((4, 10))
        )
    else:
        robot = arm(source_of)
    minimal = minimal_model(robot, **DRIVES)
    count = len(minimal.base.independent)
    beta = np.random.default_rng(4).normal(size=count)
    files = write_code(minimal.with_parameters(beta), tmp_path, 'c')
    assert sorted(path.name for path in files) == ['inverse_dynamics.c', 'inverse_dynamics.h']
    library = tmp_path / 'arm.so'
    warn = ['-std=c99', '-pedantic', '-Wall', '-Wextra', '-Wconversion', '-Wmissing-prototypes', '-Werror']
    flags = [*warn, '-O1', '-fPIC', '-shared']
    done = subprocess.run(
        [find_compiler(), *flags, tmp_path / 'inverse_dynamics.c', '-o', library, '-lm'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    compiled = ctypes.CDLL(str(library))
    n = robot.n

    def call(name: str, size: int, *arrays: np.ndarray) -> np.ndarray:
        result = np.empty(size)
        function = getattr(compiled, name)
        function.restype = None
        contiguous = [np.ascontiguousarray(a) for a in arrays]
        function(*(ctypes.c_void_p(a.ctypes.data) for a in (*contiguous, result)))
        return result

    coefficients = call('coefficients', len(minimal.coefficient_map), beta)
    np.testing.assert_allclose(coefficients, minimal.coefficients(beta), atol=1e-13)
    table = (ctypes.c_double * len(coefficients)).in_dll(compiled, 'default_coefficients')
    np.testing.assert_allclose(list(table), coefficients, atol=1e-13)
    for q, dq, ddq in zip(*motion(n, 5), strict=True):
        row = [x[None] for x in (q, dq, ddq)]
        rows = call('regressor', n * count, q, dq, ddq).reshape(n, count)
        np.testing.assert_allclose(rows, minimal.base.regressor(*row)[0], rtol=0, atol=1e-12 * np.abs(rows).max())
        expected = rows @ beta
        scale = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(call('inverse_dynamics', n, q, dq, ddq, coefficients), expected, rtol=0, atol=scale)
        np.testing.assert_allclose(call('default_inverse_dynamics', n, q, dq, ddq), expected, rtol=0, atol=scale)
        np.testing.assert_allclose(
            call('gravity', n, q, coefficients), minimal.gravity(row[0], beta)[0], rtol=0, atol=scale
        )
        friction = minimal.friction(row[1], beta)[0]
        np.testing.assert_allclose(call('friction', n, q, dq, 0 * q, coefficients), friction, rtol=0, atol=scale)
        rigid = call('rigid_body', n, q, dq, ddq, coefficients)
        np.testing.assert_allclose(rigid + friction, expected, rtol=0, atol=scale)
        np.testing.assert_allclose(rigid, minimal.rigid_body(*row, beta)[0], rtol=0, atol=scale)


def compiled_sines(folder: Path, *flags: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the sines and cosines of generated code, seven at a time as an arm's."""
    lines = ['#include <float.h>', '#include <math.h>', '#include <string.h>', SINES_COSINES]
    loop = 'for (int k = 0; k < n; k += 7) sines_cosines(7, x + k, s + k, c + k);'
    lines.append(f'void all(int n, const double *x, double *s, double *c) {{ {loop} }}')
    (folder / 'sines.c').write_text('\n'.join(lines), encoding='ascii')
    command = [
        find_compiler(),
        '-std=c99',
        *flags,
        '-fPIC',
        '-shared',
        folder / 'sines.c',
        '-o',
        folder / 'sines.so',
        '-lm',
    ]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(folder / 'sines.so')).all

    def call(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sines, cosines = np.empty_like(angles), np.empty_like(angles)
        function(len(angles), *(ctypes.c_void_p(x.ctypes.data) for x in (angles, sines, cosines)))
        return sines, cosines

    return call


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('flags', [('-O0',), ('-O2',), ('-O3', '-march=native'), ('-O3', '-ffp-contract=off')])
def test_sines_and_cosines_of_generated_code_are_those_of_long_double(tmp_path, flags):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip('needs a long double of 64 bits')
    rng, whole = np.random.default_rng(0), 2000 * np.pi
    quarters = np.arange(-4000, 4001) * (np.pi / 2)
    near = np.concatenate([np.nextafter(quarters, way) for way in (-np.inf, np.inf)])
    angles = np.concatenate(
        [
            rng.uniform(-whole, whole, 140_000),
            rng.uniform(-4.0, 4.0, 140_000),
            quarters,
            near,
            quarters * (1.0 + rng.normal(scale=1e-9, size=len(quarters))),
            10.0 ** rng.uniform(-300, 0, 7000),
            [0.0, -0.0],
        ]
    )
    angles = np.concatenate([angles, np.zeros(-len(angles) % 7)])
    function = compiled_sines(tmp_path, *flags)
    made = function(angles)
    for got, exact in zip(
        made, (np.sin(angles.astype(np.longdouble)), np.cos(angles.astype(np.longdouble))), strict=True
    ):
        unit = np.maximum(np.spacing(np.abs(exact).astype(float)), 5e-324)
        assert float((np.abs(got - exact) / unit).max()) < 0.9
    beyond = np.array([6285.0, -1e5, 1e22, 0.5, -7e3, 1e300, 2.0])
    for got, exact in zip(function(beyond), (np.sin(beyond), np.cos(beyond)), strict=True):
        np.testing.assert_allclose(got, exact, rtol=3e-16)
    for wrong in (np.nan, np.inf, -np.inf):
        with np.errstate(invalid='ignore'):
            assert np.isnan(function(np.full(7, wrong))).all()


@needs_compiler
def test_the_source_stands_alone_and_takes_a_prefix(tmp_path):
    minimal = minimal_model(arm('ur5'))
    path = tmp_path / 'alone.c'
    path.write_text(minimal.c_source('ur5_'), encoding='ascii')
    flags = ['-std=c99', '-pedantic', '-Wall', '-Wextra', '-Wconversion', '-Werror', '-c']
    subprocess.run([find_compiler(), *flags, path, '-o', tmp_path / 'alone.o'], check=True)
    assert 'void ur5_inverse_dynamics(const double q[6]' in path.read_text(encoding='ascii')
    with pytest.raises(ModelError, match='prefix'):
        minimal.c_source('5 ur')


def test_the_python_file_runs_on_its_own(tmp_path):
    model = arm('ur5')
    minimal = minimal_model(model, viscous=True)
    (path,) = write_code(minimal, tmp_path, 'python')
    q, dq, ddq = motion(6, 4)
    np.savez(tmp_path / 'motion.npz', q=q, dq=dq, ddq=ddq)
    program = (
        'import numpy, inverse_dynamics as d; m = numpy.load("motion.npz");'
        'numpy.savez("torque.npz", tau=d.inverse_dynamics(m["q"], m["dq"], m["ddq"]),'
        'one=d.inverse_dynamics(m["q"][0], m["dq"][0], m["ddq"][0]),'
        'rows=d.regressor(m["q"], m["dq"], m["ddq"]) @ d.PARAMETERS, rest=d.gravity(m["q"]))'
    )
    assert path.name == 'inverse_dynamics.py'
    subprocess.run([sys.executable, '-c', program], cwd=tmp_path, check=True)
    made = np.load(tmp_path / 'torque.npz')
    expected = inverse_dynamics(model, q, dq, ddq)
    np.testing.assert_allclose(made['tau'], expected, atol=1e-10)
    np.testing.assert_allclose(made['one'], expected[0], atol=1e-10)
    np.testing.assert_allclose(made['rows'], expected, atol=1e-10)
    np.testing.assert_allclose(made['rest'], inverse_dynamics(model, q, 0 * q, 0 * q), atol=1e-10)


def test_an_unknown_language_is_refused(tmp_path):
    with pytest.raises(ModelError, match="'c', 'cpp', 'python'"):
        write_code(minimal_model(arm('ur5')), tmp_path, 'fortran')
    assert not list(tmp_path.iterdir())


def test_it_works_without_a_compiler(monkeypatch):
    monkeypatch.setenv('ROBOTID_NO_COMPILER', '1')
    model = arm('ur5')
    q, dq, ddq = motion(6, 4)
    minimal = minimal_model(model)
    assert compiled_kernel('gravity', 'key', lambda: '', 'gravity') is None
    np.testing.assert_allclose(
        minimal.inverse_dynamics(q, dq, ddq), inverse_dynamics(model, q, dq, ddq), rtol=0, atol=1e-11
    )


def test_it_works_where_the_compiler_fails(empty_cache, monkeypatch, tmp_path):
    broken = tmp_path / 'cc'
    broken.write_text('#!/bin/sh\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv('CC', str(broken))
    model = arm('ur5')
    q, dq, ddq = motion(6, 4)
    np.testing.assert_allclose(
        minimal_model(model).inverse_dynamics(q, dq, ddq), inverse_dynamics(model, q, dq, ddq), rtol=0, atol=1e-11
    )


def test_it_works_where_no_cache_can_be_written(monkeypatch, tmp_path):
    blocked = tmp_path / 'file'
    blocked.write_text('')
    monkeypatch.setenv('XDG_CACHE_HOME', str(blocked))
    assert cache_directory() is None
    model = arm('ur5')
    q, dq, ddq = motion(6, 4)
    np.testing.assert_allclose(
        minimal_model(model).inverse_dynamics(q, dq, ddq), inverse_dynamics(model, q, dq, ddq), rtol=0, atol=1e-11
    )


def test_a_cache_that_others_can_write_is_not_trusted(empty_cache):
    directory = cache_directory()
    assert directory is not None
    directory.chmod(0o777)
    assert cache_directory() is None


def test_the_second_use_comes_from_the_cache_and_damage_to_it_is_repaired(empty_cache):
    model = arm('ur5')
    first = minimal_model(model, viscous=True)
    q, dq, ddq = motion(6, 4)
    expected = first.inverse_dynamics(q, dq, ddq)
    files = {path.name: path.stat().st_mtime_ns for path in cache_directory().iterdir()}
    said: list[str] = []
    second = minimal_model(model, viscous=True, progress=lambda fraction, text: said.append(text))
    np.testing.assert_array_equal(second.inverse_dynamics(q, dq, ddq), expected)
    assert {path.name: path.stat().st_mtime_ns for path in cache_directory().iterdir()} == files
    assert said == ['minimal model ready']
    for path in cache_directory().glob('*.npz'):
        path.write_bytes(path.read_bytes()[:100])
    third = minimal_model(model, viscous=True)
    np.testing.assert_allclose(third.inverse_dynamics(q, dq, ddq), expected, atol=1e-11)


PROGRAM = (
    'import sys, numpy as np; sys.path.insert(0, sys.argv[1]);'
    'from dynamics_helpers import PUMA560_MDH, motion, random_inertial;'
    'from robotid_ros.dynamics import inverse_dynamics, minimal_model;'
    'from robotid_ros.model import RobotModel;'
    'robot = RobotModel.from_mdh(PUMA560_MDH[:2], inertial=random_inertial(2, np.random.default_rng(1)));'
    'tau = [f(*motion(2, 9)) for f in (minimal_model(robot).inverse_dynamics, lambda *x: inverse_dynamics(robot, *x))];'
    'print(np.abs(tau[0] - tau[1]).max() < 1e-11 * np.abs(tau[1]).max())'
)


def runs(cache_folder, count=1):
    """Start as many fresh processes at once and return what they print."""
    environment = {**os.environ, 'XDG_CACHE_HOME': str(cache_folder)}
    command = [sys.executable, '-c', PROGRAM, str(Path(__file__).parents[1])]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [process.communicate(timeout=120)[0].strip() for process in started]


@pytest.mark.slow
@needs_compiler
def test_processes_that_compile_at_once_and_damaged_or_foreign_libraries(tmp_path):
    assert runs(tmp_path, 2) == ['True', 'True']
    folder = tmp_path / 'robotid_ros'
    libraries = sorted(folder.glob('*.so'))
    assert [path.name.split('-')[0] for path in libraries] == ['inverse_dynamics', 'recursion']
    assert not list(folder.glob('*.tmp'))
    sound = [path.read_bytes() for path in libraries]
    other = b'not a library'
    # One was cut off, one has its hash and is none; then one has the right hash and not the function, being the other.
    for bad in ((sound[0][:2000], other + hashlib.sha256(other).digest()), (sound[1], sound[1][:2000])):
        for path, content in zip(libraries, bad, strict=True):
            path.unlink()
            path.write_bytes(content)
            path.chmod(0o600)
        assert runs(tmp_path) == ['True']
        assert [path.read_bytes()[:4] for path in libraries] == [b'\x7fELF'] * 2
        assert all(path.read_bytes() != content for path, content in zip(libraries, bad, strict=True))


def test_it_travels_to_other_processes():
    minimal = minimal_model(arm('ur5'))
    q, dq, ddq = motion(6, 4)
    expected = minimal.inverse_dynamics(q, dq, ddq)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(minimal)).inverse_dynamics(q, dq, ddq), expected)


def test_wrong_parameters_and_settings_are_refused():
    minimal = minimal_model(arm('ur5'))
    q, dq, ddq = motion(6, 4)
    with pytest.raises(ModelError, match=r'parameters: expected shape \(36\)'):
        minimal.inverse_dynamics(q, dq, ddq, np.zeros(35))
    with pytest.raises(ModelError, match='snap'):
        minimal_model(arm('ur5'), snap=0.0)
