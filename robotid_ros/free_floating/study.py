# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Designs with wrong priors: the condition number expected and the one reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robotid_ros.excitation.criteria import CriterionName
from robotid_ros.free_floating.design import design_excitation, predicted_conditions
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.progress import Progress

PRIORS: dict[str, tuple[float, float, float]] = {
    'exact': (1.0, 1.0, 1.0),
    'mass': (0.5, 1.0, 1.0),
    'center of mass': (1.0, 0.5, 1.0),
    'inertia': (1.0, 1.0, 0.5),
    'all three': (0.5, 0.5, 0.5),
}
"""Wrong priors: factors on mass, centre of mass and inertia."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorCase:
    """One design with a wrong prior.

    Attributes
    ----------
    criterion : str
    prior : str
        What was wrong.
    expected_si, expected_scaled : float
        Condition numbers the design expected, with the prior.
    true_si, true_scaled : float
        Those that the trajectory has on the true robot.
    """

    criterion: CriterionName
    prior: str
    expected_si: float
    expected_scaled: float
    true_si: float
    true_scaled: float


def study_priors(
    robot: FreeFloatingRobot,
    *,
    criteria: Sequence[CriterionName] = ('condition-scaled', 'condition'),
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> list[PriorCase]:
    """Design with priors that are 50 % off and evaluate the trajectories on the true robot.

    Parameters
    ----------
    robot : FreeFloatingRobot
        With the true body n; the factors of :data:`PRIORS` apply to it.
    criteria : sequence of str
    seed : int
        Of every design.
    progress : callable, optional
    **settings
        Of :func:`robotid_ros.free_floating.design_excitation`: start, limits, period, ...

    Returns
    -------
    list of PriorCase
    """
    cases: list[PriorCase] = []
    total = len(criteria) * len(PRIORS)
    for criterion in criteria:
        for prior, (mass, center, inertia) in PRIORS.items():
            if progress is not None:
                progress(len(cases) / total, f'{criterion}, prior off in: {prior}')
            assumed = robot.with_body(robot.body.scaled(mass=mass, center_of_mass=center, inertia=inertia))
            design = design_excitation(assumed, criterion=criterion, seed=seed, **settings)
            si, scaled = predicted_conditions(robot, design.trajectory)
            cases.append(
                PriorCase(
                    criterion=criterion,
                    prior=prior,
                    expected_si=design.excitation.condition,
                    expected_scaled=design.excitation.condition_scaled,
                    true_si=si,
                    true_scaled=scaled,
                )
            )
    return cases
