# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The recursions without a C compiler: Python generated from the traced formulas, made once per arm."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import Graph, Number
from robotid_ros.dynamics.codegen.function import GraphFunction, InputBlock
from robotid_ros.dynamics.codegen.kernel import NumpyKernel
from robotid_ros.dynamics.codegen.minimal_frames import minimal_chain
from robotid_ros.dynamics.codegen.minimal_recursion import PSEUDO_NAMES, Form, TorqueTracer, pseudo_parameter_map
from robotid_ros.dynamics.codegen.symbolic_regressor import combined, motion_inputs, regressor_function
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import transform_inertial_parameters


@lru_cache(maxsize=32)
def torque_kernel(model: RobotModel, falls: bool) -> tuple[NumpyKernel, Array]:
    """Return a function of q, dq, ddq and parameters to the torques of the rigid links, and the model's parameters."""
    model, n = model if falls else _weightless(model), model.n
    chain, graph = minimal_chain(model), Graph()
    motion = [combined(model.coupling, graph.inputs(k * n, n)) for k in range(3)]
    links: list[dict[str, Number]] = [
        dict(zip(PSEUDO_NAMES, graph.inputs(3 * n + 10 * k, 10), strict=True)) for k in range(n)
    ]
    form = Form((0,) * len(chain.groups), (False,) * n, (True,) * n, (False,) * n)
    torques = TorqueTracer(graph, chain, form, motion, links).torques()
    at_joints = combined(model.coupling.T, [torque + graph.constant(0.0) for torque in torques])
    function = GraphFunction(
        name='torque',
        graph=graph,
        inputs=(*motion_inputs(n), InputBlock('parameters', 10 * n, shared=True)),
        references=tuple(torque.reference for torque in at_joints),
    )
    own = [
        transform_inertial_parameters(pi, frame[:3, :3], frame[:3, 3])
        for pi, frame in zip(model.inertial, chain.frames, strict=True)
    ]
    return NumpyKernel(function), np.ravel(np.array(own) @ pseudo_parameter_map().T)


@lru_cache(maxsize=32)
def regressor_kernel(model: RobotModel, columns: tuple[int, ...], drives: tuple[str, ...], falls: bool) -> NumpyKernel:
    """Return a function of q, dq and ddq to some columns of the full regressor, row by row; arguments as above."""
    return NumpyKernel(regressor_function(model if falls else _weightless(model), drives, columns))


def _weightless(model: RobotModel) -> RobotModel:
    return replace(model, gravity=np.zeros(3))
