# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parts of generated source files: functions, parameters, names and units; shared by C, C++ and Python."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import Op
from robotid_ros.dynamics.codegen.function import GraphFunction, with_numbers
from robotid_ros.model import RobotModel

SUMMARY = {
    'inverse_dynamics': 'Joint torques that make the arm move as given, {friction}.',
    'default_inverse_dynamics': 'The same of the parameters of the tables, with all that is constant folded: faster.',
    'rigid_body': 'The same without friction and offsets: inertia, Coriolis and centrifugal forces, gravity.',
    'gravity': 'Joint torques that hold the arm at rest against gravity.',
    'friction': 'Joint torques of friction and offsets alone; load is the torque of rigid_body.',
    'recorded_torque': 'The measured torque: with the friction of joints at rest, against their last direction.',
    'regressor': 'Regressor of the base parameters, which come first among the parameters.',
}

REST = (
    'recorded_torque is inverse_dynamics with the friction of joints at rest, which measured torque contains and a',
    'feed-forward should not. direction: 1 or -1, in which the joint last moved at its rest_speed or faster, 0 before;',
    'the caller keeps it.',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCode:
    """Contents of a source file.

    Attributes
    ----------
    model : RobotModel
    names, units : tuple of str, length p
        Of the parameters: base parameters, then those of friction.
    parameters : ndarray, shape (p,)
        Values for the tables.
    base : int
        Number of base parameters among them.
    coefficient_map : ndarray, shape (m, p)
    functions : mapping of str to GraphFunction
        By the names in SUMMARY.
    friction : str
        "with friction (...)" or "without friction".
    rest : ndarray, shape (n, 2), optional
        Of joints at rest: see :class:`~robotid_ros.dynamics.codegen.minimal_model.JointFriction`.
    """

    model: RobotModel
    names: tuple[str, ...]
    units: tuple[str, ...]
    parameters: Array
    base: int
    coefficient_map: Array
    functions: Mapping[str, GraphFunction]
    friction: str
    rest: Array | None = None

    @property
    def c_functions(self) -> dict[str, GraphFunction]:
        """The functions of C and C++: these, and the inverse dynamics of the arm's own parameters."""
        name, whole = 'default_inverse_dynamics', self.functions['inverse_dynamics']
        folded = with_numbers(whole, name, self.coefficients)
        return {'inverse_dynamics': whole, name: folded, **self.functions}

    @property
    def coefficients(self) -> Array:
        """Values of the coefficients, shape (m,)."""
        return np.asarray(self.coefficient_map @ self.parameters)

    def summary(self, function: str) -> str:
        """Return a sentence that says what a function returns."""
        return SUMMARY[function].format(friction=self.friction)


def as_comment(text: str) -> str:
    """Return a name that is safe in a comment or a string: letters, digits and some signs."""
    return re.sub(r'[^A-Za-z0-9_ .,:+()\[\]-]', '_', text)[:200]


def used_inputs(function: GraphFunction) -> set[int]:
    """Return which input blocks a function reads."""
    graph = function.graph
    return {function.input_places[graph.first[node]][0] for node in function.schedule if graph.kind[node] == Op.INPUT}


def joint_units(model: RobotModel) -> list[str]:
    """Return for each joint a line with its name and the units of q, dq, ddq and tau."""
    units = {
        'revolute': 'q [rad], dq [rad/s], ddq [rad/s^2], tau [N*m]',
        'prismatic': 'q [m], dq [m/s], ddq [m/s^2], tau [N]',
    }
    names = (as_comment(name) for name in model.joint_names)
    return [f'{name}: {units[kind]}' for name, kind in zip(names, model.joint_types, strict=True)]
