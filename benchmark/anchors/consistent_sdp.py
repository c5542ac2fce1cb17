# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Physically consistent parameters as a semidefinite program, in CVXPY and solved by an interior-point solver."""

import time
from typing import Any

import cvxpy
import numpy as np


def solve(given: dict[str, Any]) -> dict[str, Any]:
    """Minimise |R M x - c|: pseudo-inertias positive semidefinite, rotor inertias not negative, friction free.

    ``root`` R and ``target`` c are of the normal equations of base and friction parameters, ``grouping`` gives base
    parameters from standard ones, ``pseudo`` (16, 10) the pseudo-inertia of a link.
    """
    grouping, root, pseudo = given['grouping'], given['root'], given['pseudo']
    links, base = given['links'], len(grouping)
    processor = time.process_time()
    standard, friction = cvxpy.Variable(grouping.shape[1]), cvxpy.Variable(len(given['target']) - base)
    residual = root[:, :base] @ grouping @ standard + root[:, base:] @ friction - given['target']
    constraints = [
        cvxpy.reshape(pseudo @ standard[10 * k : 10 * k + 10], (4, 4), order='C') >> 1e-9 * np.eye(4)
        for k in range(links)
    ]
    constraints.append(standard[10 * links :] >= 0.0)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(residual)), constraints)
    problem.solve(solver=given['solver'])
    return {
        'name': f'CVXPY {cvxpy.__version__}, Clarabel, no prior, {problem.status}',
        'misfit': float(problem.value) ** 2,
        'processor': time.process_time() - processor,
    }
