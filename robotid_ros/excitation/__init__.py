"""Exciting trajectories: Fourier series, criteria, limits, and their optimisation."""

from robotid_ros.excitation.fourier import FourierTrajectory

__all__ = ['FourierTrajectory']
