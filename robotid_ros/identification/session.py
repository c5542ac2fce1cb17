# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification while recordings come in, for the node and other live users."""

from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.errors import IdentificationError
from robotid_ros.identification.calibrated import calibrated_urdf
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.recursive import RecursiveEstimate, RecursiveIdentifier
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.selection import SelectionConfig
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress


def averaged_period(
    joints: tuple[str, ...],
    time: Array,
    position: Array,
    velocity: Array | None,
    acceleration: Array | None,
    effort: Array | None,
    source: str,
) -> Dataset:
    """Return one averaged period as a dataset.

    Parameters
    ----------
    joints : tuple of str
    time : ndarray, shape (N,)
        [s]
    position, velocity, acceleration, effort : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2, N m]
    source : str
        A name for the run.

    Raises
    ------
    IdentificationError
        If a quantity is missing or there are too few samples.
    """
    if velocity is None or acceleration is None or effort is None:
        raise IdentificationError(
            'the averaged recording needs velocities, accelerations and effort in every point; some are missing'
        )
    if len(time) < 4:
        raise IdentificationError(f'the averaged recording has {len(time)} points; at least 4 are needed')
    step = float(np.median(np.diff(time)))
    if not step > 0.0:
        raise IdentificationError('the times of the averaged recording do not increase')
    return Dataset(
        joint_names=joints,
        time=time,
        q=position,
        dq=velocity,
        ddq=acceleration,
        tau=effort,
        rate=1.0 / step,
        cutoff=0.5 / step,
        sources=(source,),
        provenance={'source': source, 'points': len(time)},
    )


@dataclass(slots=True)
class IdentificationSession:
    """Datasets by key, the running estimate, and the full identification on demand."""

    model: RobotModel
    datasets: dict[str, Dataset] = field(default_factory=dict)
    validation: dict[str, Dataset] = field(default_factory=dict)
    strokes: dict[str, FrictionStrokes] = field(default_factory=dict)
    _recursive: RecursiveIdentifier | None = None

    def add(self, key: str, dataset: Dataset, config: IdentificationConfig | None = None) -> RecursiveEstimate | None:
        """Take a dataset in, in place of an earlier one of the same key, and return the running estimate.

        Parameters
        ----------
        key : str
        dataset : Dataset
        config : IdentificationConfig, optional
            Says whether the estimate has rotor inertias.

        Raises
        ------
        IdentificationError
            If it cannot be used.
        """
        recursive = self._running(config)
        recursive.add(key, dataset)
        self.datasets[key] = dataset
        return recursive.estimate()

    def base_names(self, config: IdentificationConfig) -> tuple[str, ...]:
        """Return the names of the base parameters that are identified."""
        return self._running(config).base.names

    def _running(self, config: IdentificationConfig | None) -> RecursiveIdentifier:
        """Return the running estimate; it is made anew where rotor inertias are switched on or off."""
        rotor_inertia = (config or IdentificationConfig()).rotor_inertia
        if self._recursive is None or self._recursive.rotor_inertia != rotor_inertia:
            self._recursive = RecursiveIdentifier(self.model, rotor_inertia)
            for key, dataset in self.datasets.items():
                self._recursive.add(key, dataset)
        return self._recursive

    def clear(self) -> None:
        """Forget all datasets and friction data."""
        self.datasets.clear()
        self.validation.clear()
        self.strokes.clear()
        if self._recursive is not None:
            self._recursive.clear()

    def identify(
        self,
        config: IdentificationConfig | None = None,
        selection: SelectionConfig | None = None,
        progress: Progress | None = None,
    ) -> tuple[IdentificationResult, str | None]:
        """Return the result from all datasets, and the calibrated URDF where the robot came from one.

        Friction sweeps are used too; runs for validation judge the result.

        Parameters
        ----------
        config : IdentificationConfig, optional
        selection : SelectionConfig, optional
            Whether to select among the recordings.
        progress : callable, optional

        Raises
        ------
        IdentificationError
            If there is no dataset, or no model can be computed.
        """
        if not self.datasets:
            raise IdentificationError(
                'no recording yet: run an excitation with the recorder on, or wait for its first averaged period'
            )
        selection = selection or SelectionConfig()
        result = selection.method(
            list(self.datasets.values()),
            self.model,
            friction_data=list(self.strokes.values()),
            validation=list(self.validation.values()),
            config=config or IdentificationConfig(),
            progress=progress,
        )
        return result, None if self.model.source is None else calibrated_urdf(self.model, result)
