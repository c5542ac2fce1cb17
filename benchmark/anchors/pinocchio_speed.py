# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""C++ Pinocchio in one program with generated C: compiled with -O3 from the headers of the wheels pin and casadi."""

import importlib.util
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

HERE = Path(__file__).parent
# As Pinocchio's own CMake target asks for.
DEFINITIONS = [
    '-DBOOST_MPL_LIMIT_LIST_SIZE=30',
    '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30',
    '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS',
    '-DBOOST_FUSION_INVOKE_MAX_ARITY=12',
]
FLAGS = ['-std=c++20', '-O3', '-DNDEBUG', '-march=native', '-w']


def per_call(given: dict[str, Any]) -> dict[str, Any]:
    """Return nanoseconds per call, and the largest difference of the torques.

    ``header`` and ``source`` are the generated C with the prefix ``robotid_``; placements, axes, mass, com, inertia
    and gravity those of the arm, whose joints all turn.
    """
    eigen = next((path for path in ('/usr/include/eigen3', '/usr/local/include/eigen3') if Path(path).is_dir()), None)
    if eigen is None or shutil.which('g++') is None:
        raise RuntimeError('needs g++ and the headers of Eigen (libeigen3-dev)')
    include = Path(pinocchio.__file__).parents[4] / 'include'
    headers = ['-I', str(include), '-I', eigen, *DEFINITIONS]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / 'arm.hpp').write_text(_arm(given), encoding='ascii')
        (folder / 'robotid.h').write_text(given['header'], encoding='ascii')
        (folder / 'robotid.c').write_text(given['source'], encoding='ascii')
        objects, define = ['robotid.o'], []
        _run(['gcc', '-std=c99', '-O3', '-march=native', '-c', 'robotid.c', '-o', 'robotid.o'], folder)
        found = importlib.util.find_spec('casadi')
        if found is not None and found.origin is not None:
            casadi = Path(found.origin).parent
            here = ['-I', str(casadi / 'include'), '-L', str(casadi), f'-Wl,-rpath,{casadi}', '-I', '.']
            program = [str(HERE / 'pinocchio_generate.cpp'), '-o', 'generate', '-lcasadi']
            plain = ['-std=c++20', '-O0', '-w', '-DPINOCCHIO_WITH_CASADI_SUPPORT']
            _run(['g++', *plain, *headers, *here, *program], folder)
            _run(['./generate'], folder)
            _run(['gcc', '-O3', '-march=native', '-w', '-c', 'pinocchio_generated.c', '-o', 'generated.o'], folder)
            objects, define = [*objects, 'generated.o'], ['-DWITH_CASADI']
        program = [str(HERE / 'pinocchio_speed.cpp'), *objects, '-o', 'speed', '-lm']
        _run(['g++', *FLAGS, *define, *headers, '-I', '.', *program], folder)
        values = json.loads(_run(['./speed'], folder))
    return {'version': pinocchio.__version__, **values}


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f'{command[0]}: {done.stderr[-2000:]}')
    return done.stdout


def _arm(arrays: dict[str, np.ndarray]) -> str:
    """Return a header that builds the arm for any scalar; axes along x, y or z get Pinocchio's fast joints."""
    lines = [
        '#pragma once',
        '#include <pinocchio/multibody.hpp>',
        'template<class S> pinocchio::ModelTpl<S> arm() {',
        '  using namespace pinocchio;',
        '  using V = typename SE3Tpl<S>::Vector3; using M = typename SE3Tpl<S>::Matrix3;',
        '  ModelTpl<S> model; JointIndex parent = 0; M r, inertia;',
        f'  model.gravity.linear() = V({_spell(arrays["gravity"])});',
    ]
    for k, (place, axis) in enumerate(zip(arrays['placements'], arrays['axes'], strict=True)):
        aligned = np.flatnonzero(np.abs(axis - 1.0) < 1e-12)
        kind = f'Tpl<S, 0, {aligned[0]}>' if len(aligned) else 'UnalignedTpl<S>'
        joint = f'JointModelRevolute{kind}'
        lines += [
            f'  r << {_spell(place[:3, :3])};',
            f'  parent = model.addJoint(parent, {joint}({"" if len(aligned) else f"V({_spell(axis)})"}),',
            f'    SE3Tpl<S>(r, V({_spell(place[:3, 3])})), "joint{k}");',
            f'  inertia << {_spell(arrays["inertia"][k])};',
            f'  model.appendBodyToJoint(parent, InertiaTpl<S>(S({_spell(arrays["mass"][k])}),',
            f'    V({_spell(arrays["com"][k])}), Symmetric3Tpl<S>(inertia)), SE3Tpl<S>::Identity());',
        ]
    return '\n'.join([*lines, '  return model;', '}', ''])


def _spell(values: Any) -> str:
    return ', '.join(repr(float(value)) for value in np.ravel(values))
