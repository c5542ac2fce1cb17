# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What the emitters of C and Python share: the functions, their parameters, names and units."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.base_parameter_set import BaseParameters
from robotid_ros.dynamics.codegen.expression import Op
from robotid_ros.dynamics.codegen.function import GraphFunction
from robotid_ros.model.inertia import INERTIAL_NAMES, INERTIAL_UNITS

__all__ = ['GeneratedCode', 'joint_units', 'parameter_unit', 'used_inputs']


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCode:
    """Everything that goes into a source file.

    Attributes
    ----------
    base : BaseParameters
    coefficient_map : ndarray, shape (m, b)
    functions : mapping of str to GraphFunction
        ``inverse_dynamics``, ``gravity``, ``friction`` and ``regressor``.
    parameters : ndarray, shape (b,)
        Values for the tables.
    """

    base: BaseParameters
    coefficient_map: Array
    functions: Mapping[str, GraphFunction]
    parameters: Array

    @property
    def coefficients(self) -> Array:
        """Values of the coefficients, shape (m,)."""
        return np.asarray(self.coefficient_map @ self.parameters)


def used_inputs(function: GraphFunction) -> set[int]:
    """Return which input blocks a function reads."""
    graph = function.graph
    return {function.input_places[graph.first[node]][0] for node in function.schedule if graph.kind[node] == Op.INPUT}


def joint_units(base: BaseParameters) -> list[tuple[str, str, str, str, str]]:
    """Return for each joint its name and the units of q, dq, ddq and tau."""
    model = base.model
    units = {'revolute': ('rad', 'rad/s', 'rad/s^2', 'N*m'), 'prismatic': ('m', 'm/s', 'm/s^2', 'N')}
    return [(name, *units[kind]) for name, kind in zip(model.joint_names, model.joint_types, strict=True)]


def parameter_unit(base: BaseParameters, k: int) -> str:
    """Return the unit of base parameter k."""
    n, column = base.model.n, int(base.independent[k])
    if column < 10 * n:
        return dict(zip(INERTIAL_NAMES, INERTIAL_UNITS, strict=True))[INERTIAL_NAMES[column % 10]]
    symbol = base.columns[column].rstrip('0123456789')
    prismatic = base.model.joint_types[(column - 10 * n) % n] == 'prismatic'
    revolute_units = {'Ia': 'kg*m^2', 'Fv': 'N*m*s/rad', 'Fc': 'N*m', 'offset': 'N*m'}
    prismatic_units = {'Ia': 'kg', 'Fv': 'N*s/m', 'Fc': 'N', 'offset': 'N'}
    return (prismatic_units if prismatic else revolute_units)[symbol]
