# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""C that CasADi generates from the textbook recursion, beside generated C of ours, in one program at -O3."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import casadi
import numpy as np

HERE = Path(__file__).parent


def per_call(given: dict[str, Any]) -> dict[str, Any]:
    """Return nanoseconds per call, medians of rounds that take turns, and the largest difference of the torques.

    ``source`` is our C, which stands alone, with the prefix ``robotid_``; placements, axes, mass, com, inertia and
    gravity those of the arm, whose joints all turn.
    """
    function = recursion(given)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / 'robotid.c').write_text(given['source'], encoding='ascii')
        _generate(function, folder)
        flags = ['-O3', '-march=native', '-w']
        n = f'-DN={len(given["axes"])}'
        for name in ('casadi', 'robotid'):
            _run(['gcc', *flags, '-c', f'{name}.c', '-o', f'{name}.o'], folder)
        _run(['gcc', *flags, n, str(HERE / 'casadi_speed.c'), 'casadi.o', 'robotid.o', '-o', 'speed', '-lm'], folder)
        return {'version': casadi.__version__, **json.loads(_run(['./speed'], folder))}


def recursion(given: dict[str, Any]) -> casadi.Function:
    """Return Luh, Walker and Paul's recursion as CasADi would be given it, all numbers of the arm constants."""
    n = len(given['axes'])
    q, dq, ddq = (casadi.SX.sym(name, n) for name in ('q', 'dq', 'ddq'))
    turns, levers, forces, moments = [], [], [], []
    w, dw, a = casadi.SX.zeros(3), casadi.SX.zeros(3), casadi.SX(casadi.DM(-given['gravity']))
    for k, (place, axis) in enumerate(zip(given['placements'], given['axes'], strict=True)):
        place, axis = (np.where(np.abs(x) < 1e-14, 0.0, x) for x in (place, axis))
        cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
        turn = casadi.SX(casadi.DM(np.outer(axis, axis)))
        turn += casadi.cos(q[k]) * casadi.DM(np.eye(3) - np.outer(axis, axis)) + casadi.sin(q[k]) * casadi.DM(cross)
        turn = casadi.sparsify(casadi.SX(casadi.DM(place[:3, :3]))) @ casadi.sparsify(turn)
        lever = casadi.DM(place[:3, 3])
        a = turn.T @ (a + casadi.cross(dw, lever) + casadi.cross(w, casadi.cross(w, lever)))
        w, dw = turn.T @ w, turn.T @ dw
        dw = dw + casadi.cross(w, axis * dq[k]) + axis * ddq[k]
        w = w + axis * dq[k]
        com, inertia = casadi.DM(given['com'][k]), casadi.DM(given['inertia'][k])
        at_com = a + casadi.cross(dw, com) + casadi.cross(w, casadi.cross(w, com))
        force = float(given['mass'][k]) * at_com
        forces.append(force)
        moments.append(inertia @ dw + casadi.cross(w, inertia @ w) + casadi.cross(com, force))
        turns.append(turn)
        levers.append(lever)
    tau, force, moment = [None] * n, casadi.SX.zeros(3), casadi.SX.zeros(3)
    for k in reversed(range(n)):
        force, moment = force + forces[k], moment + moments[k]
        tau[k] = casadi.dot(casadi.DM(given['axes'][k]), moment)
        force = turns[k] @ force
        moment = turns[k] @ moment + casadi.cross(levers[k], force)
    return casadi.Function('casadi_recursion', [q, dq, ddq], [casadi.vertcat(*tau)], {'cse': True})


def _generate(function: casadi.Function, folder: Path) -> None:
    code = casadi.CodeGenerator('casadi.c')
    code.add(function)
    code.generate(f'{folder}/')


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f'{command[0]}: {done.stderr[-2000:]}')
    return done.stdout
