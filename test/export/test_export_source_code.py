# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Generated code of identified arms: all friction models, hostile names, results that are not usable."""

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from dynamics_helpers import PUMA560_MDH, random_inertial
from export_helpers import identified, states
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_helpers import UR10E

from robotid_ros.cli import main
from robotid_ros.dynamics.codegen.kernel import find_compiler
from robotid_ros.errors import IdentificationError
from robotid_ros.export.identified import identified_model, require_usable
from robotid_ros.export.source_code import write_code
from robotid_ros.friction import FRICTION_MODELS
from robotid_ros.identification import TorquePredictor
from robotid_ros.model import RobotModel

FRICTION = (
    *FRICTION_MODELS,
    *(f'{name}+load' for name in FRICTION_MODELS),
    *(f'{name}+asymmetric+load+offset+spring+ripple' for name in FRICTION_MODELS),
)
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason='no C compiler here')
ARM = RobotModel.from_mdh(
    PUMA560_MDH[:3], inertial=random_inertial(3, np.random.default_rng(1)), rotor_inertia=np.array([0.5, 1.0, 0.2])
)


@pytest.mark.slow
@pytest.mark.parametrize('smooth', [False, True], ids=['sign', 'tanh'])
@pytest.mark.parametrize('name', FRICTION)
def test_formulas_equal_the_predictor_on_every_friction_model(name: str, smooth: bool) -> None:
    result = identified(ARM, name, smooth=smooth)
    predictor, minimal = TorquePredictor(ARM, result), identified_model(ARM, result)
    q, dq, ddq = states(ARM.n)
    expected = predictor.torque(q, dq, ddq)
    tolerance = {'rtol': 0, 'atol': 1e-12 * np.abs(expected).max()}
    module: dict[str, object] = {}
    exec(minimal.python_source(), module)
    np.testing.assert_allclose(module['inverse_dynamics'](q, dq, ddq), expected, **tolerance)
    np.testing.assert_allclose(minimal.inverse_dynamics(q, dq, ddq, compiled=False), expected, **tolerance)
    rigid = predictor.rigid_torque(q, dq, ddq)
    np.testing.assert_allclose(minimal.rigid_body(q, dq, ddq, compiled=False), rigid, **tolerance)
    np.testing.assert_allclose(minimal.gravity(q, compiled=False), predictor.gravity_torque(q), **tolerance)
    friction = minimal.friction(dq, q=q, load=rigid, compiled=False)
    np.testing.assert_allclose(friction, expected - rigid, **tolerance)
    assert len(minimal.names) == len(minimal.units) == len(minimal.parameters)


@pytest.mark.parametrize('word', ['class', 'and', 'new', 'char8_t', 'co_await', 'std'])
def test_a_word_of_cpp_is_no_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    arguments = ['codegen', '--robot', str(UR10E), '--language', 'cpp', '--prefix', word, '--out', str(tmp_path)]
    assert main(arguments) == 2
    assert f"'{word}' is a word of the language" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize('name', FRICTION[-len(FRICTION_MODELS) :])
def test_compiled_kernels_and_c_files_hold_all_friction(tmp_path: Path, name: str) -> None:
    result = identified(ARM, name, smooth=name.startswith('s'))
    minimal = identified_model(ARM, result)
    q, dq, ddq = states(ARM.n)
    expected = TorquePredictor(ARM, result).torque(q, dq, ddq)
    tolerance = {'rtol': 0, 'atol': 1e-12 * np.abs(expected).max()}
    np.testing.assert_allclose(minimal.inverse_dynamics(q, dq, ddq), expected, **tolerance)
    one = [minimal.inverse_dynamics(q[k : k + 1], dq[k : k + 1], ddq[k : k + 1])[0] for k in range(len(q))]
    np.testing.assert_allclose(one, expected, **tolerance)
    library = compiled(write_code(minimal, tmp_path, 'c', prefix='arm_')[1])
    table = (ctypes.c_double * len(minimal.coefficient_map)).in_dll(library, 'arm_default_coefficients')
    rows = zip(q, dq, ddq, strict=True)
    got = [call(library, 'arm_inverse_dynamics', ARM.n, *row, np.array(table)) for row in rows]
    np.testing.assert_allclose(got, expected, **tolerance)
    header = (tmp_path / 'inverse_dynamics.h').read_text(encoding='ascii')
    assert f'arm_inverse_dynamics returns the torque with friction ({name})' in header
    assert '_positive of joint2 [N*m*s/rad]' in header or name.startswith('coulomb+')


def compiled(source: Path) -> ctypes.CDLL:
    library = source.with_suffix('.so')
    flags = ['-std=c99', '-pedantic', '-Wall', '-Wextra', '-Wconversion', '-Werror', '-O1', '-fPIC', '-shared']
    done = subprocess.run([find_compiler(), *flags, source, '-o', library, '-lm'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, name: str, size: int, *arrays: np.ndarray) -> np.ndarray:
    made = np.empty(size)
    ready = [np.ascontiguousarray(array) for array in (*arrays, made)]
    function = getattr(library, name)
    function.restype = None
    function(*(ctypes.c_void_p(array.ctypes.data) for array in ready))
    return ready[-1]


HOSTILE = (
    'x */ int evil(void){return 1;} /*',
    'a\nimport os\n#',
    '"""\nraise SystemExit(3)\n"""',
    'b\\',
    '??/',
    '\u202efdp\u2029\u0085x',
    "');--",
)


@pytest.mark.slow
@needs_compiler
@settings(max_examples=4, deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12)), min_size=3, max_size=3, unique=True))
def test_hostile_names_define_the_documented_symbols_only(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp('code')
    hostile = replace(ARM, name=names[0], joint_names=tuple(f'{k}{name}' for k, name in enumerate(names)))
    result = identified(hostile, 'coulomb_viscous+load')
    minimal = identified_model(hostile, result)
    source = write_code(minimal, folder, 'c')[1]
    compiled(source)
    listed = subprocess.run(
        ['nm', '-D', '--defined-only', source.with_suffix('.so')], capture_output=True, text=True, check=True
    )
    symbols = {line.split()[-1] for line in listed.stdout.splitlines()} - {'_init', '_fini'}
    functions = {'inverse_dynamics', 'rigid_body', 'gravity', 'friction', 'regressor', 'coefficients'}
    tables = {'default_parameters', 'default_coefficients'}
    assert symbols == {*functions, *tables, 'default_inverse_dynamics'}
    module: dict[str, object] = {}
    exec(minimal.python_source(), module)
    assert set(module) - {'__builtins__', '__doc__', 'np', '_WEIGHTS', 'COEFFICIENTS', 'PARAMETERS'} == functions


def test_a_result_that_is_not_usable_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = RobotModel.from_urdf(UR10E)
    bad = replace(identified(model, 'coulomb_viscous'), usable=False, reason='the arm hardly moved')
    with pytest.raises(IdentificationError, match='the arm hardly moved; --force'):
        require_usable(bad, force=False)
    require_usable(bad, force=True)
    bad.save(tmp_path / 'result.yaml')
    assert yaml.safe_load((tmp_path / 'result.yaml').read_text())['usable'] is False
    command = ['codegen', '--robot', 'ur10e', '--result', str(tmp_path / 'result.yaml'), '--out', str(tmp_path / 'out')]
    assert main(command) == 2
    assert 'not usable: the arm hardly moved' in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()
    assert main([*command, '--force']) == 0
    assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == ['inverse_dynamics.c', 'inverse_dynamics.h']
