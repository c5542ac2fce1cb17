# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Formulas of joints from those of motors, where a motor turns with more than its own joint."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import Expression, Graph, Op
from robotid_ros.dynamics.codegen.function import GraphFunction
from robotid_ros.dynamics.codegen.symbolic_regressor import combined


def at_joints(function: GraphFunction, drives: Array) -> GraphFunction:
    """Return a function of the joints' motion from one of the motors'.

        tau(q, dq, ddq) = C^T tau_motor(C q, C dq, C ddq)

    Parameters
    ----------
    function : GraphFunction
        Inputs: any of q, dq, ddq, the load (a torque), the direction of the motors' last motion, and shared ones;
        outputs: the n torques, or n rows that give them.
    drives : ndarray, shape (n, n)
        C, positions of the motors over those of the joints.
    """
    graph, n = Graph(), len(drives)
    turned: dict[str, Array] = {'load': np.asarray(np.linalg.inv(drives).T)}
    slots: list[Expression] = []
    for block in function.inputs:
        given = graph.inputs(len(slots), block.width)
        kept = block.shared or block.name == 'direction'  # the direction is that of the motor
        slots += given if kept else combined(turned.get(block.name, drives), given)
    old, made = function.graph, dict[int, int]()
    for node in function.schedule:
        parts = [made[a >> 1] ^ (a & 1) for a in old.arguments(node)]
        is_input = old.kind[node] == Op.INPUT
        made[node] = slots[old.first[node]].reference if is_input else old.copied(node, parts, graph)
    at_motors = np.array([made[a >> 1] ^ (a & 1) for a in function.references]).reshape(n, -1)
    columns = [combined(drives.T, [Expression(graph, int(a)) for a in column]) for column in at_motors.T]
    references = tuple(column[row].reference for row in range(n) for column in columns)
    return GraphFunction(name=function.name, graph=graph, inputs=function.inputs, references=references)
