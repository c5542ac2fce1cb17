"""Joint friction: models by name, options that combine with any of them, dissipative fits."""

from robotid_ros.friction.factory import FRICTION_MODELS, FRICTION_OPTIONS, friction_model
from robotid_ros.friction.fit import dissipative_least_squares, initial_guess
from robotid_ros.friction.protocol import FrictionBasis, FrictionModel, unit_of

__all__ = [
    'FRICTION_MODELS',
    'FRICTION_OPTIONS',
    'FrictionBasis',
    'FrictionModel',
    'dissipative_least_squares',
    'friction_model',
    'initial_guess',
    'unit_of',
]
