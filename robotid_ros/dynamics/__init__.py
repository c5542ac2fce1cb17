"""Dynamics of serial arms: inverse dynamics, regressors, base parameters, generated minimal models."""

from robotid_ros.dynamics.base_parameters import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.dynamics.inverse_dynamics import inverse_dynamics
from robotid_ros.dynamics.minimal_model import MinimalModel, minimal_model
from robotid_ros.dynamics.regressor import (
    column_names,
    full_regressor,
    observation_matrix,
    regressor,
    standard_parameters,
)

__all__ = [
    'DATA_TOLERANCE',
    'BaseParameters',
    'MinimalModel',
    'base_parameters',
    'column_names',
    'full_regressor',
    'inverse_dynamics',
    'minimal_model',
    'observation_matrix',
    'regressor',
    'standard_parameters',
]
