"""Exciting trajectories: Fourier series, criteria, limits, and their optimisation."""

from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.optimizer import check_excitation, optimize_excitation
from robotid_ros.excitation.storage import load_excitation, save_excitation

__all__ = [
    'ExcitationConfig',
    'ExcitationDesign',
    'FourierTrajectory',
    'check_excitation',
    'load_excitation',
    'optimize_excitation',
    'save_excitation',
]
